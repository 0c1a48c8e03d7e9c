"""What is taken out: truth, the raw log, the assignment, the study, the measure."""
