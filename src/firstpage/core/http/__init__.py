"""Sockets, connections and request bodies of all HTTP servers, with limits on number and time."""
