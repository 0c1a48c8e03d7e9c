"""The labeling application: pages, accounts, storage."""
