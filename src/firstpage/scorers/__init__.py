"""Scorers: from features to scores, and from slopes of scores back to parameters."""
