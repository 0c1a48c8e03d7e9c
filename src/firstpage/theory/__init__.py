"""The papers' theorems as checks that run: what is true as printed, what is not, and how mended."""
