"""Statistics of assessors: agreement, consistency and effort."""
