"""Pairwise votes of rankers, Kemeny's cost, and searches for orders of low cost."""
