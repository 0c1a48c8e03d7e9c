"""Exchange with other programs: export of models, and readers of foreign files."""
