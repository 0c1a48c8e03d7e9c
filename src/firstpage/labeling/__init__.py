"""Labeling: an ordered top k per query from few judgments, without web server or database."""
