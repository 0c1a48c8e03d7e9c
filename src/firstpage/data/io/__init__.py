"""Plain and compressed files, and JSON files with a header and a checksum."""
