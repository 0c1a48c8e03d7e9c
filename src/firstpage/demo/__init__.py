"""The demo: the whole loop on the embedded collection, one file per step."""
