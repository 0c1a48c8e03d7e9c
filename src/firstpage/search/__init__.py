"""From texts to features: documents, an index, candidates, features of query and document."""
