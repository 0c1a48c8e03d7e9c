"""What is kept: people, projects, texts, tasks, the log of judgments; SQLite or PostgreSQL."""
