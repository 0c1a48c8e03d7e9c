"""Lan, Guo, Niu, Cheng: Is Top-k Sufficient for Ranking? (CIKM 2013).

Both figures, and the same curves on simulated lists with a known tail and on orders drawn from
grades; `theorems` has the bounds of section 5.
"""
