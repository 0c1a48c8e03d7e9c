"""Import of queries and documents from files; errors name file:line."""
