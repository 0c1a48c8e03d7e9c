"""Labelling strategies: from questions asked to the ordered top k."""
