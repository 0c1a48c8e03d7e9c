"""PyTorch, and tensors on a device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from firstpage.core import Array, DataError, missing_dependency

if TYPE_CHECKING:
    from torch import Tensor


@cache
def torch() -> ModuleType:
    """Return PyTorch; raise an error that says how to install it if it is missing."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise missing_dependency("torch", "torch", "fitting on a device") from error


def on(device: str, array: Array) -> Tensor:
    """Return a writable copy of an array as a tensor on the device."""
    return checked(device, lambda: torch().tensor(array, device=device))


def checked(device: str, create: Callable[[], Tensor]) -> Tensor:
    """Return the created tensor; PyTorch's errors about the device become one line."""
    try:
        return create()
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"device {device!r} cannot be used ({reason}).") from error
