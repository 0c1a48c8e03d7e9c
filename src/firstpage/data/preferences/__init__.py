"""Preferences over rankings, their files, and utilities learned from them."""
