"""Objectives and boosting over shards, with the sums of those in memory."""
