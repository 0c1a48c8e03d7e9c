"""What judgments say: progress, effort, agreement, truth, the learned measure."""
