"""A sum of threshold stumps, stored as one step function per feature."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints
from firstpage.core.kernels import step_scores
from firstpage.learning.scorers.forest import Forest, Node, Tree
from firstpage.learning.scorers.scoring_base import (
    Contributions,
    Importances,
    JsonObject,
    ScoringBase,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from firstpage.data import Features

CHUNK_ROWS = 1 << 14  # rows of sparse features that are made dense at a time


@dataclass(frozen=True, eq=False)
class StumpsScoring(ScoringBase):
    """A sum of stumps: step[i] is added to the score where feature[i] is above threshold[i].

    Stumps are sorted by feature and threshold, and each pair occurs once.  Features are compared in
    float64, as in training, so that a float32 feature is on the same side of every threshold.
    """

    n_features: int
    feature: Ints
    threshold: Floats
    step: Floats
    export_kinds: ClassVar[tuple[str, ...]] = ("trees",)

    def __repr__(self) -> str:
        return f"StumpsScoring({len(self.step)} stumps, {self.n_features} features)"

    @classmethod
    def from_stumps(
        cls, n_features: int, feature: ArrayLike, threshold: ArrayLike, step: ArrayLike
    ) -> StumpsScoring:
        """Create a scoring from stumps in any order.

        Steps of the same feature and threshold are summed; sums of 0 are dropped.
        """
        keys = np.array([feature, threshold], np.float64).reshape(2, -1)
        pairs, inverse = np.unique(keys, axis=1, return_inverse=True)
        steps = np.bincount(inverse.ravel(), np.asarray(step, np.float64), pairs.shape[1])
        nonzero = steps != 0
        features = pairs[0, nonzero].astype(np.int64)
        return cls(n_features, features, pairs[1, nonzero], steps[nonzero])

    @property
    def params(self) -> Floats:
        """An array of feature, threshold and step, one row per stump."""
        return np.column_stack([self.feature, self.threshold, self.step]).astype(np.float64)

    @cached_property
    def _functions(self) -> tuple[Ints, Ints, Floats]:
        """The used features, where their thresholds begin, and the levels of their functions."""
        columns, starts = np.unique(self.feature, return_index=True)
        firsts = np.append(starts, len(self.feature)).astype(np.int64)
        levels = [
            np.concatenate([[0.0], np.cumsum(self.step[lo:hi])]) for lo, hi in pairwise(firsts)
        ]
        return columns, firsts, np.concatenate([np.empty(0), *levels])

    def predict(
        self, X: Features, threads: int | None = None, offsets: Ints | None = None
    ) -> Floats:
        """Return one score per document; one thread is used."""
        columns, firsts, levels = self._functions
        out = np.empty(X.shape[0])
        if isinstance(X, np.ndarray):
            step_scores(X, columns, firsts, self.threshold, levels, out)
            return out
        all_columns = np.arange(len(columns))
        for lo in range(0, X.shape[0], CHUNK_ROWS):
            rows: Array = np.ascontiguousarray(X[lo : lo + CHUNK_ROWS][:, columns].toarray())
            step_scores(
                rows, all_columns, firsts, self.threshold, levels, out[lo : lo + CHUNK_ROWS]
            )
        return out

    def functions(self) -> dict[int, tuple[Floats, Floats]]:
        """Return, by feature, its thresholds and its levels from below the first threshold upward,
        of which there is one more."""
        columns, firsts, levels = self._functions
        return {
            int(c): (
                self.threshold[firsts[i] : firsts[i + 1]],
                levels[firsts[i] + i : firsts[i + 1] + i + 1],
            )
            for i, c in enumerate(columns)
        }

    def explain(self) -> Importances:
        """Return the range of each feature's step function."""
        functions = self.functions()
        ranges = np.zeros(self.n_features)
        for feature, (_, levels) in functions.items():
            ranges[feature] = levels.max() - levels.min()
        return Importances("range of steps", ranges, steps=functions)

    def contributions(self, X: Array, offsets: Ints | None = None) -> Contributions:
        """Return the level of each feature's step function at each document."""
        values = np.zeros(X.shape)
        for feature, (thresholds, levels) in self.functions().items():
            column = X[:, feature].astype(np.float64)
            values[:, feature] = levels[np.searchsorted(thresholds, column, side="left")]
        return Contributions("level of steps", values, np.zeros(len(X)))

    def forest(self, source: str) -> Forest:
        """Return one balanced tree per feature, which needs the fewest comparisons."""
        functions = self.functions().items()
        return Forest.from_trees(
            [_balanced_tree(feature, *function) for feature, function in functions]
        )

    def to_dict(self) -> JsonObject:
        return {
            "kind": "stumps",
            "n_features": self.n_features,
            "feature": self.feature.tolist(),
            "threshold": self.threshold.tolist(),
            "step": self.step.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> StumpsScoring:
        size = stored["n_features"]
        feature = np.array(stored["feature"], object)
        if type(size) is not int or not all(type(f) is int and 0 <= f < size for f in feature):
            raise DataError("a feature of the stumps is not the number of a feature")
        threshold, step = (np.array(stored[n], np.float64) for n in ("threshold", "step"))
        if not feature.shape == threshold.shape == step.shape or feature.ndim != 1:
            raise DataError("the stumps do not have one feature, threshold and step each")
        if not (np.isfinite(threshold).all() and np.isfinite(step).all()):
            raise DataError("the thresholds and steps of the stumps are not finite")
        number = feature.astype(np.int64)
        ascending = (np.diff(number) > 0) | ((np.diff(number) == 0) & (np.diff(threshold) > 0))
        if not ascending.all():
            raise DataError("the stumps are not sorted by feature and threshold")
        return cls(size, number, threshold, step)


def _balanced_tree(feature: int, thresholds: Floats, levels: Floats) -> Tree:
    """Return the step function of one feature as a balanced tree."""
    nodes: list[Node] = []

    def add(lo: int, hi: int) -> int:
        number = len(nodes)
        nodes.append((-1, 0.0, -1, -1, float(levels[lo])))
        if hi > lo:
            middle = (lo + hi) // 2
            left, right = add(lo, middle), add(middle + 1, hi)
            nodes[number] = (feature, float(thresholds[middle]), left, right, 0.0)
        return number

    add(0, len(thresholds))
    return Tree.from_nodes(nodes)
