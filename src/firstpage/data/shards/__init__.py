"""Data in shards of whole queries: read, written, checked."""
