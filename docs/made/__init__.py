"""Pages that are made from the code."""
