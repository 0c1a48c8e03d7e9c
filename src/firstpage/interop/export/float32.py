"""Numbers of programs that compute in float32: thresholds that split alike, and what they lose."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from firstpage.errors import DataError, FirstpageWarning
from firstpage.scorers.forest import Forest, Tree
from firstpage.types import Array, Floats, Ints

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MOST = float(np.finfo(np.float32).max)
LEAST = 1e-30  # numbers that are all nearer to zero lose digits in float32
MANY = 200  # trees, beyond which sums in float32 and in float64 are a millionth apart


def floor32(values: ArrayLike) -> Array:
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
    low = np.full(len(threshold), _rank(-MOST), np.int64) - 1
    high = np.full(len(threshold), _rank(MOST), np.int64)
    while (low < high).any():
        middle = low + (high - low + 1) // 2
        x = _number(middle).astype(np.float64)
        with np.errstate(over="ignore"):
            fits = ((x - shift) / scale).astype(np.float32).astype(np.float64) <= threshold
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    found = _number(low)
    most = _rank(MOST)
    return np.where(low < -most, -np.inf, np.where(low == most, np.inf, found)).astype(np.float32)


def _rank(value: float) -> int:
    """The place of a float32 among all: 0 for zero, -1 for the one below."""
    bits = int(np.float32(value).view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


def _number(ranks: Ints) -> Array:
    """The float32 numbers of these places."""
    bits = np.where(ranks >= 0, ranks, 0x80000000 - ranks).astype(np.int64)
    found: Array = bits.astype(np.uint32).view(np.float32)
    return found


def single_weights(weights: Floats, source: str, engine: str) -> Floats:
    """Weights as float32 has them; refused where it cannot hold them."""
    with np.errstate(over="ignore"):
        found = weights.astype(np.float32)
    largest = float(np.abs(weights).max(initial=0.0))
    if not np.isfinite(found).all() or 0 < largest < LEAST:
        raise DataError(
            f"{source}: a weight of {largest:g} is beyond the float32 numbers of {engine}; scale "
            "the features before training, or export to onnx, numpy or vespa."
        )
    return found.astype(np.float64)


def _single(_: Ints, threshold: Floats) -> Floats:
    """As float32 numbers; what no number is above, as infinite."""
    return np.where(threshold >= MOST, np.inf, floor32(threshold).astype(np.float64))


def forest32(forest: Forest, source: str) -> Forest:
    """Trees whose thresholds are float32 numbers and split those as the model does.

    The smallest come first where the model adds in float64: float32 sums lose least that way.
    """
    found = forest.with_thresholds(_single)
    single_leaves(found, source)
    note_sums(found, True)
    return found if found.single else replace(found, trees=_smallest_first(found.trees))


def _smallest_first(trees: Sequence[Tree]) -> tuple[Tree, ...]:
    return tuple(sorted(trees, key=lambda t: float(np.abs(t.value[t.feature < 0]).mean())))


def note_sums(forest: Forest, single: bool) -> None:
    """Say where a target adds many trees up in another type than the model does."""
    if forest.single == single or len(forest.trees) <= MANY:
        return
    there, here = ("float32", "float64") if single else ("float64", "float32")
    warnings.warn(
        f"{len(forest.trees)} trees are added up in {there} there, and in {here} by predict: "
        "scores may be off by a millionth or two.",
        FirstpageWarning,
        stacklevel=5,
    )


def single_leaves(forest: Forest, source: str) -> None:
    """Refuse trees whose sums are no float32 numbers: too large, or lost near zero."""
    largest = [float(np.abs(tree.value[tree.feature < 0]).max()) for tree in forest.trees]
    if sum(largest) > MOST or 0 < max(largest) < LEAST:
        raise DataError(
            f"{source}: a leaf of {max(largest):g} is beyond float32 numbers, in which trees are "
            "added up there; scale the labels before training, or export to numpy or vespa."
        )
