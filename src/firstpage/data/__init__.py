"""Collections of documents, their ground truth, and the files they are stored in."""
