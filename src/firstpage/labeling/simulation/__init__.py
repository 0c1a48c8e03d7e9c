"""Strategies tried on simulated assessors and recorded votes."""
