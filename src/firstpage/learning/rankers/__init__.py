"""Estimators named as in the papers, and the files that hold what they learned."""
