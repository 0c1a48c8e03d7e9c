"""Numbers of engines that compute in float32, and thresholds that split its numbers as ours do."""

from __future__ import annotations

from typing import Any

import numpy as np

from firstpage.types import Array, Floats

MOST = float(np.finfo(np.float32).max)


def floor32(values: Any) -> Array:
    """The greatest float32 that is not above each number; -inf or inf beyond its range.

    For a float32 x, x <= t just where x <= floor32(t).
    """
    given = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        near = given.astype(np.float32)
    down = np.nextafter(near, np.float32(-np.inf))
    return np.where(near.astype(np.float64) > given, down, near)


def above32(value: float) -> float:
    """The next float32 above one: x <= t just where x < above32(t)."""
    return float(np.nextafter(np.float32(value), np.float32(np.inf)))


def written(value: float) -> str:
    """All digits of a float32, so that any reader finds the same one."""
    return repr(float(np.float32(value)))


def unscaled(threshold: Floats, shift: Floats, scale: Floats) -> Array:
    """The greatest float32 x for which (x - shift) / scale, as float32, is not above a threshold.

    Scaling rises with x, rounding and all, so that halving finds it: 2^32 numbers, 32 steps.
    -inf where there is none, inf where all are.
    """
    low = np.full(len(threshold), _rank(np.float32(-MOST)), np.int64) - 1
    high = np.full(len(threshold), _rank(np.float32(MOST)), np.int64)
    while (low < high).any():
        middle = low + (high - low + 1) // 2
        x = _number(middle).astype(np.float64)
        with np.errstate(over="ignore"):
            fits = ((x - shift) / scale).astype(np.float32).astype(np.float64) <= threshold
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    found = _number(low)
    most = _rank(np.float32(MOST))
    return np.where(low < -most, -np.inf, np.where(low == most, np.inf, found)).astype(np.float32)


def _rank(value: Any) -> int:
    """The place of a float32 among all: 0 for zero, -1 for the one below."""
    bits = int(np.float32(value).view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


def _number(ranks: Any) -> Array:
    """The float32 numbers of these places."""
    bits = np.where(ranks >= 0, ranks, 0x80000000 - ranks).astype(np.int64)
    found: Array = bits.astype(np.uint32).view(np.float32)
    return found
