"""Narrow a type in the middle of an expression; a value of another type fails the test."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

T = TypeVar("T")


def present(value: T | None) -> T:
    """Return a value that is not None."""
    assert value is not None
    return value


def instance(kind: type[T], value: object) -> T:
    """Return a value of a class."""
    assert isinstance(value, kind), type(value)
    return value


def dense(values: object) -> np.ndarray:
    """Return values that are a dense array."""
    assert isinstance(values, np.ndarray), type(values)
    return values
