"""From other programs: models, judgments, feature logs, clicks."""
