"""How long tests wait for other processes: a hang ends, and a busy machine is no failure."""

PATIENCE = 300.0  # seconds
