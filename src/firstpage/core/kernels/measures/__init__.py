"""Kernels of measures per query, of resampling over queries, and of ties."""
