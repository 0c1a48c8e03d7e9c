"""The terms of a boosting loss: pairs in the wrong order, and queries of a low measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np

from firstpage.core import Array, Floats
from firstpage.core.kernels import row_products
from firstpage.data import Truth
from firstpage.learning.losses.base import Loss
from firstpage.learning.solvers.boosting.pools import QueryMeasure, WeakRankerPool


class BoostingTerm(Protocol):
    """A term of the loss, and the edge of each weak ranker on it."""

    name: ClassVar[str]
    loss: float  # 1 before anything is learned; toward 0

    @property
    def nbytes(self) -> int:
        """The memory in use, besides a few numbers per document."""
        ...

    def update(self, scores: Floats) -> None:
        """Set the loss, and the weights of pairs or queries, to those at these scores."""
        ...

    def edges(self, pool: WeakRankerPool) -> Floats:
        """Return the edges, of shape (signs, weak rankers)."""
        ...

    # --- for one of many shards: sums over its documents

    def loss_sums(self, scores: Floats) -> Floats:
        """Return the sums from which the loss follows."""
        ...

    def edge_sums(self, pool: WeakRankerPool, learned: bool) -> Floats:
        """Return the edges before they are scaled, at the scores of the last `loss_sums`.

        `learned` is whether any document of any shard has a score other than 0.
        """
        ...

    def loss_from_sums(self, sums: Floats) -> float:
        """Return the loss from the sums over all shards."""
        ...

    def edge_scale(self, sums: Floats, learned: bool) -> float:
        """Return the factor of `edge_sums` from the loss sums over all shards."""
        ...


WeightedTerms = Sequence[tuple[float, BoostingTerm]]
"""The terms of a loss, with weights that sum to 1."""


class PairTerm:
    """Pairs (u, v), u better than v, weighted by exp(F(v) - F(u)): RankBoost.

    The weights sum to 1 over the pairs of all queries.  They factorize, so that no pair is ever
    enumerated: the potential of a document is minus the gradient of the exponential loss.  Scores
    are multiplied by `scale`, so that edges are at most 1 where the loss has margins.
    """

    name: ClassVar = "pair"
    nbytes: ClassVar = 0

    def __init__(
        self,
        loss: Loss,
        truth: Truth,
        weights: Floats | None,
        query_weights: Floats,
        scale: float = 1.0,
    ) -> None:
        rows = len(truth.labels)
        self._scores, self._values, self._grad = (
            np.zeros(rows),
            np.empty(len(truth)),
            np.empty(rows),
        )
        self._run = loss.target(truth, weights).bind_slice(
            0, len(truth), self._scores, self._values, self._grad
        )
        self._scale = scale
        self._query_weights = query_weights
        self._row_weights = np.repeat(query_weights, truth.lengths)
        self._run()
        self._pairs = float(query_weights @ self._values)  # 0 where no query has any
        self.potential = np.zeros(rows)
        self.loss = 0.0

    def update(self, scores: Floats) -> None:
        self._evaluate(scores)
        total = float(self._query_weights @ self._values)
        self.loss = total / self._pairs if self._pairs > 0 else 0.0
        if 0 < total < np.inf:
            np.multiply(self._grad, self._row_weights, out=self.potential)
            self.potential /= -total
        else:
            self.potential[:] = 0.0

    def _evaluate(self, scores: Floats) -> None:
        """Write the loss of every query, and its gradient by the scores."""
        np.multiply(scores, self._scale, out=self._scores)
        self._run()
        if self._scale != 1.0:
            self._grad *= self._scale

    def edges(self, pool: WeakRankerPool) -> Floats:
        return np.multiply.outer(np.array(pool.signs, np.float64), pool.edges(self.potential))

    def loss_sums(self, scores: Floats) -> Floats:
        self._evaluate(scores)
        return np.array([float(self._query_weights @ self._values), self._pairs])

    def edge_sums(self, pool: WeakRankerPool, learned: bool) -> Floats:
        np.multiply(self._grad, self._row_weights, out=self.potential)
        self.potential *= -1
        return self.edges(pool)

    @staticmethod
    def loss_from_sums(sums: Floats) -> float:
        return float(sums[0] / sums[1]) if sums[1] > 0 else 0.0

    @staticmethod
    def edge_scale(sums: Floats, learned: bool) -> float:
        return float(1 / sums[0]) if 0 < sums[0] < np.inf else 0.0


class ListTerm:
    """Queries weighted by exp(-measure of the ensemble): AdaRank.

    The measure of a weak ranker alone on a query never changes: it is computed once.

    With `adjusted`, edges and loss are adjusted for chance: a weak ranker whose scores are all
    equal has the edge 0 and the loss 1, not those of the expected measure of a random order.
    """

    name: ClassVar = "list"

    def __init__(
        self,
        measure: QueryMeasure,
        pool: WeakRankerPool,
        query_weights: Floats,
        adjusted: bool = False,
    ) -> None:
        self._measure = measure
        self._query_weights = np.where(measure.informative, query_weights, 0.0)
        self._total = float(self._query_weights.sum())
        self._baseline = measure.values(np.zeros(len(measure.truth.labels))) * adjusted
        self._table: Array = (
            pool.measure_values(measure) if self._total > 0 else np.empty((0, 0, 0))
        )
        self._weights = (
            self._query_weights / self._total if self._total > 0 else self._query_weights
        )
        self.loss = 0.0

    @property
    def nbytes(self) -> int:
        """The size of the table of weak rankers by queries."""
        return int(self._table.nbytes)

    def update(self, scores: Floats) -> None:
        if not self._total > 0:
            return
        values = self._measure(scores)
        self.loss = self.loss_from_sums(self._sums(values))
        if scores.any():  # all queries have their own weight until something is learned
            self._weights = self._query_weights * np.exp(-values)
            self._weights /= self._weights.sum()

    def edges(self, pool: WeakRankerPool) -> Floats:
        out = self._unscaled_edges(pool)
        out /= 1.0 - float(self._weights @ self._baseline)
        return out

    def _unscaled_edges(self, pool: WeakRankerPool) -> Floats:
        """Return the weighted sum over queries of each weak ranker's measure minus the baseline."""
        out = np.zeros((len(pool.signs), pool.count))
        if self._total > 0:
            rows = self._table.reshape(-1, self._table.shape[2])
            row_products(rows, self._weights, out.reshape(-1))
            out -= float(self._weights @ self._baseline)
        return out

    def _sums(self, values: Floats) -> Floats:
        """Return, above the baseline, the weighted sum of the measure, its maximum, and its maximum
        under the current weights."""
        baseline = float(self._query_weights @ self._baseline)
        weighted = float(self._weights @ self._baseline)
        return np.array(
            [
                float(self._query_weights @ values) - baseline,
                self._total - baseline,
                float(self._weights.sum()) - weighted,
            ]
        )

    def loss_sums(self, scores: Floats) -> Floats:
        values = self._measure(scores)
        self._weights = self._query_weights * np.exp(-values)
        return self._sums(values)

    def edge_sums(self, pool: WeakRankerPool, learned: bool) -> Floats:
        if not learned:
            self._weights = self._query_weights
        return self._unscaled_edges(pool)

    @staticmethod
    def loss_from_sums(sums: Floats) -> float:
        return 1.0 - float(sums[0] / sums[1]) if sums[1] > 0 else 0.0

    @staticmethod
    def edge_scale(sums: Floats, learned: bool) -> float:
        return float(1 / sums[2 if learned else 1]) if sums[1] > 0 else 0.0
