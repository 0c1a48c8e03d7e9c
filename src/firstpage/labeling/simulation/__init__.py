"""Simulation of labeling strategies with simulated assessors and recorded votes."""
