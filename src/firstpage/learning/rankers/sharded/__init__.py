"""Training over shards, in threads or on a Dask cluster."""
