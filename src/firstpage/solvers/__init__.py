"""Solvers: they see an objective, and neither features nor truth."""
