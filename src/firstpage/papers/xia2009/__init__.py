"""Xia, Liu, Li: Statistical Consistency of Top-k Ranking (NIPS 2009).

`study` has all six tables, `theorems` the theory.
"""
