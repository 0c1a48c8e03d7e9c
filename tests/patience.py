"""How long tests wait for other processes: a hang ends, and a busy machine is not a failure."""

import os

EMULATED = "FIRSTPAGE_CROSS_COMPILER" in os.environ  # by tests/emulated.sh: 20 to 40 times slower
PATIENCE = 300.0 * (30 if EMULATED else 1)  # seconds
