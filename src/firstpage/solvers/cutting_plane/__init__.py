"""Cutting planes for convex losses with corners."""
