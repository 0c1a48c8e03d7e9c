"""Decisions about systems: gates, plans, segments, groups and the completeness of judgments."""
