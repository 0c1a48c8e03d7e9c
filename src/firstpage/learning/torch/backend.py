"""PyTorch, or one line that says how to install it."""

from __future__ import annotations

from firstpage.core import missing_dependency

try:
    import torch
except ImportError as error:
    raise missing_dependency("torch", "torch", "fp.torch") from error

__all__ = ["torch"]
