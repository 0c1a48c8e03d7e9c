"""Texts: documents, queries, their index and their features."""
