"""Files as bytes and JSON, the cache of parsed files, and folders written atomically."""
