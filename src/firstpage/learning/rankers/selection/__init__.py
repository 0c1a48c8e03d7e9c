"""Choose parameters and rankers on validation data and over folds."""
