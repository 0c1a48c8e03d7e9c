"""Measures of rankings: each one a value with a text, computed over ranked lists."""
