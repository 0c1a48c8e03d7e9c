"""Boosting over weak rankers."""
