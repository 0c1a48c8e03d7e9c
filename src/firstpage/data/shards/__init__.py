"""Shards of complete queries: reading, writing and checking."""
