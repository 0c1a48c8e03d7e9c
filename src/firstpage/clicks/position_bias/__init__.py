"""Position bias: what clicks can tell about examination, and estimates of it."""
