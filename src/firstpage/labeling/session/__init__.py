"""One assessor labels one query: the event log and the session that replays it."""
