"""Xia, Liu, Li: Statistical Consistency of Top-k Ranking (NIPS 2009).  All six tables; the theory
is in `theorems`."""
