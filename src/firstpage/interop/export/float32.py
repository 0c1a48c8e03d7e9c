"""Conversion of models for programs that compute in float32, with equivalent thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints, warn
from firstpage.learning.scorers import Forest, Tree

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MAX_FLOAT32 = float(np.finfo(np.float32).max)
MIN_MAGNITUDE = 1e-30  # smaller absolute values lose digits in float32
MANY_TREES = 200  # above which float32 and float64 sums differ by about 1e-6


def floor32(values: ArrayLike) -> Array:
    """Return the greatest float32 that is not above each number; infinities beyond its range.

    For a float32 x, x <= t if and only if x <= floor32(t).
    """
    exact = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        nearest = exact.astype(np.float32)
    below = np.nextafter(nearest, np.float32(-np.inf))
    return np.where(nearest.astype(np.float64) > exact, below, nearest)


def above32(value: float) -> float:
    """Return the next float32 above a number: x <= t if and only if x < above32(t)."""
    return float(np.nextafter(np.float32(value), np.float32(np.inf)))


def float32_text(value: float) -> str:
    """Return a float32 with all digits, so that it is read back exactly."""
    return repr(float(np.float32(value)))


def unscaled(threshold: Floats, shift: Floats, scale: Floats) -> Array:
    """Return the greatest float32 x with float32((x - shift) / scale) not above a threshold.

    Scaling is monotone in x, including rounding, so bisection finds it in 32 steps.  Returns -inf
    where there is no such x, and inf where all are.
    """
    low = np.full(len(threshold), _rank(-MAX_FLOAT32), np.int64) - 1
    high = np.full(len(threshold), _rank(MAX_FLOAT32), np.int64)
    while (low < high).any():
        middle = low + (high - low + 1) // 2
        x = _number(middle).astype(np.float64)
        with np.errstate(over="ignore"):
            fits = ((x - shift) / scale).astype(np.float32).astype(np.float64) <= threshold
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    largest = _rank(MAX_FLOAT32)
    finite = np.where(low == largest, np.inf, _number(low))
    return np.where(low < -largest, -np.inf, finite).astype(np.float32)


def _rank(value: float) -> int:
    """Return the index of a float32 in the order of all: 0 for zero, -1 for the next below."""
    bits = int(np.float32(value).view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


def _number(ranks: Ints) -> Array:
    """Return the float32 numbers of these indices."""
    bits = np.where(ranks >= 0, ranks, 0x80000000 - ranks).astype(np.int64)
    numbers: Array = bits.astype(np.uint32).view(np.float32)
    return numbers


def single_weights(weights: Floats, source: str, engine: str) -> Floats:
    """Return weights rounded to float32; raise an error where they are out of its range."""
    with np.errstate(over="ignore"):
        rounded = weights.astype(np.float32)
    largest = float(np.abs(weights).max(initial=0.0))
    if not np.isfinite(rounded).all() or 0 < largest < MIN_MAGNITUDE:
        raise DataError(
            f"{source}: a weight of {largest:g} is out of the float32 range of {engine}; scale "
            "the features before training, or export to onnx, numpy or vespa."
        )
    return rounded.astype(np.float64)


def _single(_: Ints, threshold: Floats) -> Floats:
    """Return thresholds as float32 numbers; inf where no number is above."""
    return np.where(threshold >= MAX_FLOAT32, np.inf, floor32(threshold).astype(np.float64))


def forest32(forest: Forest, source: str) -> Forest:
    """Return trees with float32 thresholds that split float32 numbers as the model does.

    Where the model sums in float64, the smallest trees come first: float32 sums then lose least.
    """
    rounded = forest.with_thresholds(_single)
    check_leaves(rounded, source)
    warn_of_rounding(rounded, True)
    return rounded if rounded.single else replace(rounded, trees=_smallest_first(rounded.trees))


def _smallest_first(trees: Sequence[Tree]) -> tuple[Tree, ...]:
    """Return the trees by their mean absolute leaf value."""
    return tuple(sorted(trees, key=lambda t: float(np.abs(t.value[t.feature < 0]).mean())))


def warn_of_rounding(forest: Forest, single: bool) -> None:
    """Warn if a target sums many trees in another type than the model does."""
    if forest.single == single or len(forest.trees) <= MANY_TREES:
        return
    theirs, ours = ("float32", "float64") if single else ("float64", "float32")
    warn(
        f"the target sums {len(forest.trees)} trees in {theirs}, and predict in {ours}: scores may "
        "differ by a relative error of 1e-6 or 2e-6."
    )


def check_leaves(forest: Forest, source: str) -> None:
    """Raise an error for trees whose sums are out of the range of float32."""
    largest = [float(np.abs(tree.value[tree.feature < 0]).max()) for tree in forest.trees]
    if sum(largest) > MAX_FLOAT32 or 0 < max(largest) < MIN_MAGNITUDE:
        raise DataError(
            f"{source}: a leaf of {max(largest):g} is out of the float32 range, in which the "
            "target sums trees; scale the labels before training, or export to numpy or vespa."
        )
