"""The same objectives and boosting statistics, summed over shards."""
