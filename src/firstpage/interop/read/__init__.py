"""Readers of files of other programs: models, judgments, feature logs, clicks."""
