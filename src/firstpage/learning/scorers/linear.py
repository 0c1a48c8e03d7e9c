"""Linear scores, X w + b, from dense or sparse features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from firstpage.core import Array, BoundKernel, DataError, Floats, Ints
from firstpage.core.kernels import scoring as kernel
from firstpage.data import offsets_from_lengths
from firstpage.learning.scorers.scorer import Slices
from firstpage.learning.scorers.scoring_base import (
    Contributions,
    Importances,
    JsonObject,
    ScoringBase,
)

if TYPE_CHECKING:
    from firstpage.data import Features

MAX_COVARIANCE_FEATURES = 2000  # above which only a diagonal preconditioner is estimated
RIDGE = 1e-3  # fraction of the mean variance that is added to every direction before inversion


@dataclass(frozen=True)
class Linear:
    """Linear scorer: the score of a document is a weighted sum of its features.

    Parameters
    ----------
    device : str, default "cpu"
        Where it is fitted: "cpu", or a device of PyTorch such as "cuda".

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> X, y, qid = np.eye(3), [2, 1, 0], [1, 1, 1]
    >>> ranker = fp.ListMLE(scorer="linear").fit(X, y, qid=qid)
    >>> np.argsort(-ranker.predict(X)).tolist()
    [0, 1, 2]
    """

    device: str = "cpu"
    additive: ClassVar[Literal[False]] = False
    linear: ClassVar[bool] = True

    def bind(self, X: Features, offsets: Ints | None = None, seed: int = 0) -> BoundLinear:
        """Set the scorer up on features."""
        return BoundLinear(X)


class BoundLinear:
    """Weights over the rows of a dense float32 or float64 array, or of a CSR array."""

    linear = True
    deterministic = True
    parallel = True

    def __init__(self, X: Features) -> None:
        self.X = X
        self.size = int(X.shape[1])
        dense = isinstance(X, np.ndarray)
        self.relative_error = 1e-8 if dense and X.dtype == np.float32 else 0.0
        self._w = np.zeros(self.size, X.dtype if dense else np.float64)

    def initial_params(self, seed: int) -> Floats:
        return np.zeros(self.size)

    def load(self, params: Floats) -> None:
        self._w[:] = params

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, score_gradient: Floats, gradient: Floats
    ) -> tuple[BoundKernel, BoundKernel]:
        if isinstance(self.X, np.ndarray):
            rows = self.X[lo:hi]
            workspace = np.empty(self.size, rows.dtype)
            return (
                kernel.dense_scores.bind(rows, self._w, scores),
                kernel.dense_vjp.bind(rows, score_gradient, workspace, gradient),
            )
        data, indices, ends = self.X.data, self.X.indices, self.X.indptr[lo : hi + 1]
        return (
            kernel.sparse_scores.bind(data, indices, ends, self._w, scores),
            kernel.sparse_vjp.bind(data, indices, ends, score_gradient, gradient),
        )

    def preconditioner(self, slices: Slices, weights: Floats, l2: float) -> Floats | None:
        """Estimate the preconditioner from the covariance of the features inside queries.

        Near equal scores the Hessian of a ranking loss is about this covariance.  With very many
        features only the scale of each is used.
        """
        if self.size > MAX_COVARIANCE_FEATURES:
            return self._diagonal_preconditioner(l2)
        rows = [self.X[int(ends[0]) : int(ends[-1])] for ends in slices]
        sample = np.concatenate([r if isinstance(r, np.ndarray) else r.toarray() for r in rows])
        lengths = np.concatenate([np.diff(ends) for ends in slices])
        ends = offsets_from_lengths(lengths)
        centered = np.empty_like(sample)
        kernel.center_rows(sample, weights, ends, np.empty(self.size), centered)
        within = np.einsum("ij,ij->j", centered, centered).astype(np.float64)
        total = np.einsum("i,ij,ij->j", weights, sample, sample).astype(np.float64)
        # Centering a feature that is constant inside queries leaves its rounding error, which must
        # not be scaled up.
        rounding_error = (64 * float(np.finfo(centered.dtype).eps)) ** 2 * total
        scale = np.sqrt(np.where(within > rounding_error, within, total) + l2)
        scale[scale == 0] = 1.0
        centered /= scale.astype(centered.dtype)
        hessian = (centered.T @ centered).astype(np.float64) + np.diag(l2 / scale**2)
        mean = float(np.trace(hessian)) / self.size
        if not 1e-200 < mean < 1e200:
            return None  # no feature varies
        root = np.linalg.cholesky(hessian + RIDGE * mean * np.eye(self.size))
        matrix: Floats = np.linalg.inv(root).T / scale[:, None]
        return matrix

    def _diagonal_preconditioner(self, l2: float) -> Floats:
        """Return 1 / root mean square of every feature, over all rows."""
        return inverse_scales(self.squares(), self.X.shape[0], l2)

    def squares(self) -> Floats:
        """Return the sum of squares of every feature, over all rows."""
        if isinstance(self.X, np.ndarray):
            dense: Floats = np.einsum("ij,ij->j", self.X, self.X, dtype=np.float64)
            return dense
        squares = self.X.data.astype(np.float64) ** 2
        return np.bincount(self.X.indices, squares, self.size).astype(np.float64)

    def scoring(self, params: Floats) -> LinearScoring:
        return LinearScoring(np.array(params, np.float64))

    def predict(self, params: Floats, X: Features, offsets: Ints | None = None) -> Floats:
        return self.scoring(params).predict(X)

    def skip_draws(self, evaluations: int) -> None:
        """Do nothing: linear scores draw nothing."""


def float64_gradient(X: Features, score_gradient: Floats) -> tuple[Floats, Floats]:
    """Return X' g and the Euclidean norm of every column, in float64 whatever the type of X."""
    gradient, squares = np.empty(X.shape[1]), np.empty(X.shape[1])
    if isinstance(X, np.ndarray):
        kernel.float64_vjp(X, score_gradient, gradient, squares)
    else:
        kernel.sparse_vjp(X.data, X.indices, X.indptr, score_gradient, gradient)
        squares = np.asarray(X.power(2).sum(axis=0), np.float64).ravel()
    return gradient, np.sqrt(squares)


def inverse_scales(squares: Floats, rows: int, l2: float) -> Floats:
    """Return the factors that scale features of these sums of squares to about 1."""
    scale = np.sqrt(squares / max(rows, 1) + l2)
    return 1 / np.where(scale > 0, scale, 1.0)


@dataclass(frozen=True, eq=False)
class LinearScoring(ScoringBase):
    """Fitted weights and an intercept."""

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
        """Return one score per document, in float64 whatever the type of the features.

        Each row is summed by itself, so that its score does not depend on the other rows.  One
        thread is used.
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
        """Return weight x value of each feature and document."""
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
            raise DataError("the weights are not one finite number per feature")
        if not np.isfinite(intercept):
            raise DataError("the intercept is not finite")
        return cls(weights, intercept)
