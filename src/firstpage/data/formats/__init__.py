"""Readers and writers of file formats: LETOR, TREC, tables, rows and scores."""
