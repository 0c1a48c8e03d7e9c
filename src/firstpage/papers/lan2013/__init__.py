"""Lan, Guo, Niu, Cheng: Is Top-k Sufficient for Ranking? (CIKM 2013).  Both figures, and the same
curves where the truth of the tail is known, or drawn from grades."""
