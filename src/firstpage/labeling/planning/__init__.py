"""Assignment of queries to assessors and tools, in folds."""
