"""Labeling strategies: algorithms that ask questions until they know the ordered top k."""
