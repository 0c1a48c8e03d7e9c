"""A run's top k reordered by an assessor that compares documents: questions, belief, cache."""
