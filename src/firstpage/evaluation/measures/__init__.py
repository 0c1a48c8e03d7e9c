"""Measures of rankings: immutable values with a text, computed over ranked lists."""
