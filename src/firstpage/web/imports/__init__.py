"""Queries and documents from files; a bad line is told as file:line."""
