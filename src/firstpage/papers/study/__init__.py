"""What the studies share: runner, claims, pages."""
