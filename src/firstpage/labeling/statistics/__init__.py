"""What judgments say of their assessors: agreement, consistency, effort."""
