"""What other programs write and read."""
