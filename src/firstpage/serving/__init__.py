"""A model behind an address: candidates in, their order, scores and reasons out."""
