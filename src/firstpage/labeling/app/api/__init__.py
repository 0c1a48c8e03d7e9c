"""The JSON API under /api/v1: one file per subject."""
