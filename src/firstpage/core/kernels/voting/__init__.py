"""Pairwise votes of rankers, Kemeny cost, and searches for orders of low cost."""
