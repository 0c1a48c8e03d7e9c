"""The store: people, projects, texts, tasks and the log of judgments, in SQLite or PostgreSQL."""
