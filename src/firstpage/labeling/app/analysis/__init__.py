"""Analysis of judgments: progress, effort, agreement, truth, the learned measure."""
