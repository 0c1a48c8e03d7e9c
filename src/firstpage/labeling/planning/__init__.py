"""Who judges what: folds, assessors and tools."""
