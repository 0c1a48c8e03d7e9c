"""Labeling strategies: from questions asked to the ordered top k."""
