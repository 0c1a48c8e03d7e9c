"""Labeling: few judgments, trustworthy truth.  Pure: no web, no database."""
