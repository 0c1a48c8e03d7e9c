"""Fitting on a GPU: complete passes over features and losses, by PyTorch and Triton."""
