"""Measures per query, resampling over queries, ties."""
