"""The demo: the whole loop on the embedded collection, one room a step."""
