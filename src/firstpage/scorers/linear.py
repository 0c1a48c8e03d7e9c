"""Linear scores, X w + b, from dense or sparse features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.errors import DataError
from firstpage.kernels import scoring as kernel
from firstpage.scorers.scorer import (
    Contributions,
    Importances,
    JsonObject,
    Run,
    ScoringBase,
    Slices,
)
from firstpage.types import Array, Floats, Ints

if TYPE_CHECKING:
    from firstpage.data.dataset import Features

WIDE = 2000  # features; the square of more would be large
STEEP = 1e-3  # directions in which documents vary less than this share are not stretched further


@dataclass(frozen=True)
class Linear:
    """A weighted sum of the features.

    device   where it is fitted: "cpu", or "cuda" and the like, by PyTorch
    """

    device: str = "cpu"
    additive: ClassVar[Literal[False]] = False
    linear: ClassVar[bool] = True

    def bind(self, X: Features) -> BoundLinear:
        return BoundLinear(X)


class BoundLinear:
    """Weights over the rows of a dense float32 or float64 array, or of a CSR array."""

    parallel = True

    def __init__(self, X: Features) -> None:
        self.X = X
        self.size = int(X.shape[1])
        dense = isinstance(X, np.ndarray)
        self.noise = 1e-8 if dense and X.dtype == np.float32 else 0.0
        self._w = np.zeros(self.size, X.dtype if dense else np.float64)

    def start(self, seed: int) -> Floats:
        return np.zeros(self.size)

    def load(self, params: Floats) -> None:
        self._w[:] = params

    def bind(
        self, lo: int, hi: int, scores: Floats, grad: Floats, slope: Floats
    ) -> tuple[Run, Run]:
        if isinstance(self.X, np.ndarray):
            rows = self.X[lo:hi]
            part = np.empty(self.size, rows.dtype)
            return (
                kernel.dense_scores.bind(rows, self._w, scores),
                kernel.dense_vjp.bind(rows, grad, part, slope),
            )
        data, indices, ends = self.X.data, self.X.indices, self.X.indptr[lo : hi + 1]
        return (
            kernel.sparse_scores.bind(data, indices, ends, self._w, scores),
            kernel.sparse_vjp.bind(data, indices, ends, grad, slope),
        )

    def conditioner(self, parts: Slices, weights: Floats, l2: float) -> Floats | None:
        """From the covariance of the features inside queries.

        Near equal scores the losses of ranking bend about as this covariance does.  Of very many
        features only the widths are looked at.
        """
        if self.size > WIDE:
            return self._widths(l2)
        rows = [self.X[int(ends[0]) : int(ends[-1])] for ends in parts]
        sample = np.concatenate([r if isinstance(r, np.ndarray) else r.toarray() for r in rows])
        lengths = np.concatenate([np.diff(ends) for ends in parts])
        ends = offsets_from_lengths(lengths)
        centered = np.empty_like(sample)
        kernel.center_rows(sample, weights, ends, np.empty(self.size), centered)
        inside = np.einsum("ij,ij->j", centered, centered).astype(np.float64)
        whole = np.einsum("i,ij,ij->j", weights, sample, sample).astype(np.float64)
        # A feature that is constant inside queries leaves rounding dust: not to be stretched.
        dust = (64 * float(np.finfo(centered.dtype).eps)) ** 2 * whole
        width = np.sqrt(np.where(inside > dust, inside, whole) + l2)
        width[width == 0] = 1.0
        centered /= width.astype(centered.dtype)
        bend = (centered.T @ centered).astype(np.float64) + np.diag(l2 / width**2)
        mean = float(np.trace(bend)) / self.size
        if not 1e-200 < mean < 1e200:
            return None  # nothing varies
        root = np.linalg.cholesky(bend + STEEP * mean * np.eye(self.size))
        found: Floats = np.linalg.inv(root).T / width[:, None]
        return found

    def _widths(self, l2: float) -> Floats:
        """One number a feature: 1 / its root mean square, over all rows."""
        return by_width(self.squares(), self.X.shape[0], l2)

    def squares(self) -> Floats:
        """The sum over all rows of every feature's square."""
        if isinstance(self.X, np.ndarray):
            dense: Floats = np.einsum("ij,ij->j", self.X, self.X, dtype=np.float64)
            return dense
        squares = self.X.data.astype(np.float64) ** 2
        return np.bincount(self.X.indices, squares, self.size).astype(np.float64)

    def scoring(self, params: Floats) -> LinearScoring:
        return LinearScoring(np.array(params, np.float64))

    def predict(self, params: Floats, X: Features) -> Floats:
        return self.scoring(params).predict(X)


def by_width(squares: Floats, rows: int, l2: float) -> Floats:
    """Units in which features of these sums of squares are about 1."""
    width = np.sqrt(squares / max(rows, 1) + l2)
    return 1 / np.where(width > 0, width, 1.0)


@dataclass(frozen=True, eq=False)
class LinearScoring(ScoringBase):
    """Weights that score."""

    weights: Floats
    intercept: float = 0.0
    export_kinds: ClassVar[tuple[str, ...]] = ("linear",)

    def __repr__(self) -> str:
        return f"LinearScoring({self.n_features} weights, intercept {self.intercept:.3g})"

    @property
    def n_features(self) -> int:
        return len(self.weights)

    @property
    def coefficients(self) -> tuple[Floats, float]:
        return self.weights, self.intercept

    @property
    def params(self) -> Floats:
        return self.weights

    def predict(
        self, X: Features, threads: int | None = None, offsets: Ints | None = None
    ) -> Floats:
        """In float64, whatever the features; row by row, so that a row's score is its own.

        One thread does it.
        """
        out = np.empty(X.shape[0])
        if isinstance(X, np.ndarray):
            kernel.float64_scores(X, self.weights, out)
        else:
            kernel.sparse_scores(X.data, X.indices, X.indptr, self.weights, out)
        return out + self.intercept

    def explain(self) -> Importances:
        """Return the weights."""
        return Importances("weight", self.weights)

    def contributions(self, X: Array, offsets: Ints | None = None) -> Contributions:
        """Return weight x value of each feature."""
        base = np.full(len(X), self.intercept)
        return Contributions("weight x value", X * self.weights, base)

    def to_dict(self) -> JsonObject:
        return {
            "kind": "linear",
            "weights": self.weights.tolist(),
            "intercept": float(self.intercept),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> LinearScoring:
        weights, intercept = np.array(stored["weights"], np.float64), float(stored["intercept"])
        if weights.ndim != 1 or not np.isfinite(weights).all():
            raise DataError("the weights are not one finite number a feature")
        if not np.isfinite(intercept):
            raise DataError("the intercept is not finite")
        return cls(weights, intercept)
