"""Boosted trees: our losses in LightGBM and XGBoost, and LambdaMART."""
