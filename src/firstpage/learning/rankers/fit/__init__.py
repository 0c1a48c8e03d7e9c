"""From the arguments of `fit` to fitted models: validation, training data, solvers, records."""
