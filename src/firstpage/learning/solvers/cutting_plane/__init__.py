"""Cutting planes for convex losses that are not smooth."""
