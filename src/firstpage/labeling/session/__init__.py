"""One assessor, one query: the log of events and the session that replays it."""
