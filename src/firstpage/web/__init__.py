"""The labelling application: pages, accounts, storage."""
