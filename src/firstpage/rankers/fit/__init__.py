"""From what a user gives to `fit` to fitted weights."""
