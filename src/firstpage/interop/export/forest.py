"""Trees of any origin in one form: a split sends x <= threshold to the left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.types import Array, Floats, Ints

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


DEEPEST = 300  # splits one below the other: files are written and read by recursion


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes from the root, 0, on; a leaf has the feature -1."""

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats

    @classmethod
    def of(cls, nodes: Iterable[tuple[int, float, int, int, float]]) -> Tree:
        feature, threshold, left, right, value = zip(*nodes, strict=True)
        whole = (np.array(part, np.int64) for part in (feature, left, right))
        f, lo, hi = whole
        return cls(f, np.array(threshold, np.float64), lo, hi, np.array(value, np.float64))

    @classmethod
    def leaf(cls, value: float) -> Tree:
        return cls.of([(-1, 0.0, -1, -1, value)])

    def leaves(self, X: Any) -> Ints:
        """The node where each row ends."""
        at = np.zeros(len(X), np.int64)
        rows = np.arange(len(X))
        while len(rows):
            rows = rows[self.feature[at[rows]] >= 0]
            node = at[rows]
            goes = X[rows, self.feature[node]] <= self.threshold[node]
            at[rows] = np.where(goes, self.left[node], self.right[node])
        return at

    def depth(self) -> int:
        """Splits on the longest way."""
        found, now = 0, np.zeros(1, np.int64)
        while len(now := now[self.feature[now] >= 0]):
            found, now = found + 1, np.concatenate([self.left[now], self.right[now]])
        return found

    def pruned(self) -> Tree:
        """Without splits that send all numbers to one side."""
        nodes: list[tuple[int, float, int, int, float]] = []

        def add(at: int) -> int:
            while self.feature[at] >= 0 and np.isinf(self.threshold[at]):
                at = int(self.left[at] if self.threshold[at] > 0 else self.right[at])
            number = len(nodes)
            nodes.append((-1, 0.0, -1, -1, float(self.value[at])))
            if self.feature[at] >= 0:
                left, right = add(int(self.left[at])), add(int(self.right[at]))
                split = int(self.feature[at]), float(self.threshold[at])
                nodes[number] = (*split, left, right, 0.0)
            return number

        add(0)
        return Tree.of(nodes)


@dataclass(frozen=True, eq=False)
class Forest:
    """A sum of trees.

    single   features are rounded to float32 first and the leaves added in float32, as XGBoost does
    """

    trees: tuple[Tree, ...]
    single: bool = False

    def scores(self, X: Any) -> Floats:
        rows = X.astype(np.float32) if self.single else np.asarray(X)
        rows = rows.astype(np.float64)  # comparisons in float64 are right for float32 too
        total: Array = np.zeros(len(rows), np.float32 if self.single else np.float64)
        for tree in self.trees:
            total += tree.value[tree.leaves(rows)].astype(total.dtype)
        return total.astype(np.float64)

    def sizes(self, X: Any) -> Floats:
        """The sum of the sizes of the leaves: what rounding is measured by."""
        total = np.zeros(len(X))
        for tree in self.trees:
            total += np.abs(tree.value[tree.leaves(np.asarray(X, np.float64))])
        return total

    @cached_property
    def _splits(self) -> dict[int, Floats]:
        """Different thresholds by feature."""
        feature = np.concatenate([tree.feature for tree in self.trees])
        threshold = np.concatenate([tree.threshold for tree in self.trees])
        order = np.argsort(feature, kind="stable")
        found, starts = np.unique(feature[order], return_index=True)
        parts = np.split(threshold[order], starts[1:])
        return {int(f): np.unique(p) for f, p in zip(found, parts, strict=True) if f >= 0}

    def used(self) -> list[int]:
        """The features that are split on."""
        return list(self._splits)

    def thresholds(self, feature: int) -> Floats:
        return self._splits.get(feature, np.empty(0))

    def with_thresholds(self, change: Any) -> Forest:
        """With other thresholds: change(features, thresholds); splits that do nothing go."""
        found = []
        for tree in self.trees:
            split = tree.feature >= 0
            threshold = tree.threshold.copy()
            if split.any():
                threshold[split] = change(tree.feature[split], tree.threshold[split])
            found.append(replace(tree, threshold=threshold).pruned())
        return replace(self, trees=tuple(found))
