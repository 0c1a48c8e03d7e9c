"""What judgments say: progress, effort, agreement, truth."""
