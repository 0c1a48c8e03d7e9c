"""Rank aggregation: ballots, methods, Kemeny costs; `aggregate` combines them."""
