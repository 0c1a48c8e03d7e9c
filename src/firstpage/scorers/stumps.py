"""A sum of threshold stumps, kept as one step function a feature."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from firstpage.errors import DataError
from firstpage.kernels.scoring import step_scores
from firstpage.types import Array, Floats, Ints

ROWS = 1 << 14  # of sparse features, made dense at a time


@dataclass(frozen=True, eq=False)
class StumpsScoring:
    """step[i] is added to the score where feature[i] is above threshold[i].

    Sorted by feature and threshold, each pair once.  Comparisons are made in float64, as in
    training: a float32 feature is on the same side of every threshold there and here.
    """

    n_features: int
    feature: Ints
    threshold: Floats
    step: Floats
    coefficients: ClassVar[None] = None

    def __repr__(self) -> str:
        return f"StumpsScoring({len(self.step)} stumps, {self.n_features} features)"

    @classmethod
    def of(cls, n_features: int, feature: Any, threshold: Any, step: Any) -> StumpsScoring:
        """From stumps in any order; equal ones are added up, those that cancel are dropped."""
        keys = np.array([feature, threshold], np.float64).reshape(2, -1)
        pairs, which = np.unique(keys, axis=1, return_inverse=True)
        steps = np.bincount(which.ravel(), np.asarray(step, np.float64), pairs.shape[1])
        kept = steps != 0
        return cls(n_features, pairs[0, kept].astype(np.int64), pairs[1, kept], steps[kept])

    @property
    def params(self) -> Floats:
        """What a fit can go on from: feature, threshold and step, one row each."""
        return np.column_stack([self.feature, self.threshold, self.step]).astype(np.float64)

    @cached_property
    def _functions(self) -> tuple[Ints, Ints, Floats]:
        """Used features, where their thresholds begin, and their levels from the lowest on."""
        columns, starts = np.unique(self.feature, return_index=True)
        firsts = np.append(starts, len(self.feature)).astype(np.int64)
        levels = [
            np.concatenate([[0.0], np.cumsum(self.step[lo:hi])]) for lo, hi in pairwise(firsts)
        ]
        return columns, firsts, np.concatenate([np.empty(0), *levels])

    def predict(self, X: Any, threads: int | None = None) -> Floats:
        """One score per document; one thread does it."""
        columns, firsts, levels = self._functions
        out = np.empty(X.shape[0])
        if isinstance(X, np.ndarray):
            step_scores(X, columns, firsts, self.threshold, levels, out)
            return out
        every = np.arange(len(columns))
        for lo in range(0, X.shape[0], ROWS):
            rows: Array = np.ascontiguousarray(X[lo : lo + ROWS][:, columns].toarray())
            step_scores(rows, every, firsts, self.threshold, levels, out[lo : lo + ROWS])
        return out

    def functions(self) -> dict[int, tuple[Floats, Floats]]:
        """By feature: its thresholds, and its levels, one more, from below the first on."""
        columns, firsts, levels = self._functions
        return {
            int(c): (
                self.threshold[firsts[i] : firsts[i + 1]],
                levels[firsts[i] + i : firsts[i + 1] + i + 1],
            )
            for i, c in enumerate(columns)
        }

    def ranges(self) -> Floats:
        """How far each feature can move the score: the range of its step function."""
        out = np.zeros(self.n_features)
        for feature, (_, levels) in self.functions().items():
            out[feature] = levels.max() - levels.min()
        return out

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "stumps", "n_features": self.n_features, "feature": self.feature.tolist(),
            "threshold": self.threshold.tolist(), "step": self.step.tolist(),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> StumpsScoring:
        size = stored["n_features"]
        feature = np.array(stored["feature"], object)
        if type(size) is not int or not all(type(f) is int and 0 <= f < size for f in feature):
            raise DataError("the features of the stumps are not numbers of features")
        threshold, step = (np.array(stored[n], np.float64) for n in ("threshold", "step"))
        if not feature.shape == threshold.shape == step.shape or feature.ndim != 1:
            raise DataError("the stumps have not one feature, threshold and step each")
        if not (np.isfinite(threshold).all() and np.isfinite(step).all()):
            raise DataError("the thresholds and steps of the stumps are not finite")
        number = feature.astype(np.int64)
        rises = (np.diff(number) > 0) | ((np.diff(number) == 0) & (np.diff(threshold) > 0))
        if not rises.all():
            raise DataError("the stumps are not sorted by feature and threshold")
        return cls(size, number, threshold, step)
