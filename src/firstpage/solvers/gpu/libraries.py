"""PyTorch and Triton, found when they are needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from firstpage.errors import DataError, missing_dependency
from firstpage.types import Array

if TYPE_CHECKING:
    from torch import Tensor


@cache
def torch() -> ModuleType:
    try:
        return import_module("torch")
    except ImportError as error:
        raise missing_dependency("torch", "torch", "fitting on a device") from error


def on(device: str, array: Array) -> Tensor:
    """An array as a tensor of the device, which may be written to."""
    return checked(device, lambda: torch().tensor(array, device=device))


def checked(device: str, make: Callable[[], Tensor]) -> Tensor:
    """What PyTorch says of a device that it has not got, in a line."""
    try:
        return make()
    except (RuntimeError, AssertionError, TypeError) as error:
        said = str(error).splitlines()[0]
        raise DataError(f"device {device!r} cannot be used ({said}).") from error


def has_kernels(device: str) -> bool:
    """Whether the losses can be computed there: by Triton on CUDA, or by its interpreter."""
    if not (device.startswith("cuda") or os.environ.get("TRITON_INTERPRET") == "1"):
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True
