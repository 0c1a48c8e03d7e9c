"""Exports: truth, raw log, assignment, study report, learned measure."""
