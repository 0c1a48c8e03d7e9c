"""Where work runs.  Results do not depend on it."""
