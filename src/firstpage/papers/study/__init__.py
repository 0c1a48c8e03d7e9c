"""Code shared by the studies: runner, claims and reports."""
