"""Readers and writers of files: LETOR, TREC, tables, rows, scores."""
