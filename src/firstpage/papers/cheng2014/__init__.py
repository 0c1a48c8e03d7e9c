"""Cheng, Sun, Xie: TopRank: A Novel Top-k Ranking Method Based on Rank Aggregation (2014).

Figures 2 to 4, and variants of TopRank.
"""
