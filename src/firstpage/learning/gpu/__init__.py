"""Triton kernels, and whether a device can run them; Triton itself is not imported here."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec


def has_kernels(device: str) -> bool:
    """Return whether kernels can run there: by Triton on CUDA, or by its interpreter."""
    return (device.startswith("cuda") or _is_interpreted()) and _has_triton()


def _is_interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
