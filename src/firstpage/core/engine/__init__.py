"""Engines: where work on shards runs.  Results do not depend on it."""
