"""Fitting on a GPU: whole passes over features and losses, by PyTorch and Triton."""
