"""Solvers, which minimize an objective; they see neither features nor truth."""
