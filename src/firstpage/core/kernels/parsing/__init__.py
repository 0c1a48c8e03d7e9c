"""Parsers of text files to arrays: LETOR, TREC, decimal numbers, identifiers."""
