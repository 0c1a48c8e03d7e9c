"""Scores of documents: linear, stumps, forests."""
