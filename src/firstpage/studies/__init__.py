"""Published experiments, run again: the paper's numbers and words beside ours, and a verdict."""
