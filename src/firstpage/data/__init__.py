"""Data: what is in a collection, how its truth reads, and the files it comes in."""
