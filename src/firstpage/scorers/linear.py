"""Linear scores, X w + b, from dense or sparse features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firstpage.data.groups import rows_of
from firstpage.kernels import linear as kernel
from firstpage.scorers.base import Run
from firstpage.types import Floats, Ints

SAMPLE = 20  # rows a feature, from which the shape of the problem is learnt
BEND = 0.2
STEEP = 1e-3  # directions in which documents vary less than this share are not stretched further


@dataclass(frozen=True)
class Linear:
    """A weighted sum of the features."""

    additive: ClassVar[bool] = False

    def fitting(self, X: Any) -> LinearFitting:
        return LinearFitting(X)


class LinearFitting:
    """Weights over the rows of a dense float32 or float64 array, or of a CSR array."""

    parallel = True

    def __init__(self, X: Any) -> None:
        self.X = X
        self.size = int(X.shape[1])
        self.dense = isinstance(X, np.ndarray)
        self.noise = 1e-8 if self.dense and X.dtype == np.float32 else 0.0
        self._w = np.zeros(self.size, X.dtype if self.dense else np.float64)

    def start(self, seed: int) -> Floats:
        return np.zeros(self.size)

    def load(self, params: Floats) -> None:
        self._w[:] = params

    def bind(
        self, lo: int, hi: int, scores: Floats, grad: Floats, slope: Floats
    ) -> tuple[Run, Run]:
        if self.dense:
            rows = self.X[lo:hi]
            part = np.empty(self.size, rows.dtype)
            return (
                kernel.dense_scores.bind(rows, self._w, scores),
                kernel.dense_pull.bind(rows, grad, part, slope),
            )
        data, indices, ends = self.X.data, self.X.indices, self.X.indptr[lo : hi + 1]
        return (
            kernel.sparse_scores.bind(data, indices, ends, self._w, scores),
            kernel.sparse_pull.bind(data, indices, ends, grad, slope),
        )

    def conditioner(self, offsets: Ints, l2: float, weights: Floats | None) -> Floats | None:
        """From the covariance of the features inside queries, over a sample of them.

        Near equal scores the losses of ranking bend about as BEND times this covariance does.
        """
        picked = _spread_queries(offsets, SAMPLE * self.size)
        rows = rows_of(offsets, picked)
        sample = self.X[rows] if len(rows) < self.X.shape[0] else self.X
        sample = np.ascontiguousarray(sample if self.dense else sample.toarray())
        weight = np.ones(len(rows)) if weights is None else np.ascontiguousarray(weights[rows])
        ends = np.concatenate([[0], np.cumsum(np.diff(offsets)[picked])]).astype(np.int64)
        centered = np.empty_like(sample)
        kernel.center_rows(sample, weight, ends, np.empty(self.size), centered)
        width = np.sqrt(np.einsum("ij,ij->j", centered, centered) / weight.sum(), dtype=np.float64)
        width[width == 0] = 1.0
        centered /= width.astype(centered.dtype)
        shape = BEND * (centered.T @ centered).astype(np.float64) / weight.sum()
        bend, axes = np.linalg.eigh(shape + l2 * np.diag(1 / width**2))
        stretch = axes / np.sqrt(np.maximum(bend, STEEP * max(bend[-1], 1e-300)))
        found: Floats = stretch @ axes.T / width[:, None]
        return found

    def scoring(self, params: Floats) -> LinearScoring:
        return LinearScoring(np.array(params, np.float64))

    def predict(self, params: Floats, X: Any) -> Floats:
        return self.scoring(params).predict(X)


def _spread_queries(offsets: Ints, rows: int) -> Ints:
    """Queries at even distances, of about so many rows together."""
    count = len(offsets) - 1
    mean = max(int(offsets[-1]) / max(count, 1), 1.0)
    wanted = min(count, int(np.ceil(rows / mean)))
    return np.unique(np.linspace(0, count - 1, wanted).astype(np.int64))


@dataclass(frozen=True, eq=False)
class LinearScoring:
    """Weights that score."""

    weights: Floats
    intercept: float = 0.0

    @property
    def n_features(self) -> int:
        return len(self.weights)

    @property
    def coefficients(self) -> tuple[Floats, float]:
        return self.weights, self.intercept

    def predict(self, X: Any) -> Floats:
        """In float64, whatever the features; row by row, so that a row's score is its own."""
        out = np.empty(X.shape[0])
        if isinstance(X, np.ndarray):
            kernel.exact_scores(X, self.weights, out)
        else:
            kernel.sparse_scores(X.data, X.indices, X.indptr, self.weights, out)
        return out + self.intercept

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "linear",
            "weights": self.weights.tolist(),
            "intercept": float(self.intercept),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> LinearScoring:
        return cls(np.array(stored["weights"], np.float64), float(stored["intercept"]))
