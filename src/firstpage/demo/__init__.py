"""The demo: label, train, compare, learn a measure and aggregate on an embedded collection."""
