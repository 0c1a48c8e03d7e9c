"""What boosting mends: pairs in the wrong order, queries that measure badly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np

from firstpage.data.truth import Truth
from firstpage.kernels.scoring import row_products
from firstpage.losses.loss import Loss
from firstpage.solvers.boosting.pools import Judge, Pool
from firstpage.types import Array, Floats


class Term(Protocol):
    """What is not yet right, and how well each weak ranker would mend it."""

    name: ClassVar[str]
    loss: float  # 1: nothing learned; toward 0

    @property
    def nbytes(self) -> int:
        """Of what it holds besides a few numbers per document."""
        ...

    def look(self, scores: Floats) -> None:
        """Weigh pairs or queries by how the scores do on them."""
        ...

    def edges(self, pool: Pool) -> Floats:
        """Signs x weak rankers."""
        ...

    # --- where this is one shard of many: sums that add up

    def tally(self, scores: Floats) -> Floats:
        """Sums from which the loss follows."""
        ...

    def pull(self, pool: Pool, learned: bool) -> Floats:
        """Edges before they are scaled, at the scores of the last tally.

        learned   whether any document of any shard has a score yet
        """
        ...

    def loss_of(self, tally: Floats) -> float: ...

    def scale_of(self, tally: Floats, learned: bool) -> float: ...


WeightedTerms = Sequence[tuple[float, Term]]
"""The terms of a loss, with weights that sum to 1."""


class PairTerm:
    """Pairs (u, v), u better than v, weighed by exp(F(v) - F(u)): RankBoost.

    The weights sum to 1 over all queries' pairs.  They factorize, so no pair is ever written down:
    what a document's pairs pull it upward by is minus the slope of the exponential loss.
    """

    name: ClassVar = "pair"
    nbytes: ClassVar = 0

    def __init__(self, loss: Loss, truth: Truth, weights: Floats | None, shares: Floats) -> None:
        rows = len(truth.labels)
        self._scores, self._values, self._grad = (
            np.zeros(rows),
            np.empty(len(truth)),
            np.empty(rows),
        )
        self._run = loss.target(truth, weights).bind(
            0, len(truth), self._scores, self._values, self._grad
        )
        self._shares, self._each = shares, np.repeat(shares, truth.lengths)
        self._run()
        self._pairs = float(shares @ self._values)  # 0 where no query has any
        self.potential = np.zeros(rows)
        self.loss = 0.0

    def look(self, scores: Floats) -> None:
        self._scores[:] = scores
        self._run()
        total = float(self._shares @ self._values)
        self.loss = total / self._pairs if self._pairs > 0 else 0.0
        if 0 < total < np.inf:
            np.multiply(self._grad, self._each, out=self.potential)
            self.potential /= -total
        else:
            self.potential[:] = 0.0

    def edges(self, pool: Pool) -> Floats:
        return np.multiply.outer(np.array(pool.signs, np.float64), pool.edges(self.potential))

    def tally(self, scores: Floats) -> Floats:
        self._scores[:] = scores
        self._run()
        return np.array([float(self._shares @ self._values), self._pairs])

    def pull(self, pool: Pool, learned: bool) -> Floats:
        np.multiply(self._grad, self._each, out=self.potential)
        self.potential *= -1
        return self.edges(pool)

    @staticmethod
    def loss_of(tally: Floats) -> float:
        return float(tally[0] / tally[1]) if tally[1] > 0 else 0.0

    @staticmethod
    def scale_of(tally: Floats, learned: bool) -> float:
        return float(1 / tally[0]) if 0 < tally[0] < np.inf else 0.0


class ListTerm:
    """Queries weighed by exp(-measure of the ensemble): AdaRank.

    What a weak ranker alone measures on a query never changes: it is written down once.

    adjusted   edges and loss are adjusted for chance: a weak ranker whose scores are all equal has
               the edge 0 and the loss 1, not what a random order measures
    """

    name: ClassVar = "list"

    def __init__(self, judge: Judge, pool: Pool, shares: Floats, adjusted: bool = False) -> None:
        self._judge = judge
        self._shares = np.where(judge.telling, shares, 0.0)
        self._total = float(self._shares.sum())
        self._floor = judge.from_lists(np.zeros(len(judge.labels))) * adjusted
        self._alone: Array = pool.judged(judge) if self._total > 0 else np.empty((0, 0, 0))
        self._weights = self._shares / self._total if self._total > 0 else self._shares
        self.loss = 0.0

    @property
    def nbytes(self) -> int:
        """Of the table of weak rankers by queries."""
        return int(self._alone.nbytes)

    def look(self, scores: Floats) -> None:
        if not self._total > 0:
            return
        values = self._judge(scores)
        self.loss = self.loss_of(self._sums(values))
        if scores.any():  # all queries weigh alike until something is learned
            self._weights = self._shares * np.exp(-values)
            self._weights /= self._weights.sum()

    def edges(self, pool: Pool) -> Floats:
        out = self._pulled(pool)
        out /= 1.0 - float(self._weights @ self._floor)
        return out

    def _pulled(self, pool: Pool) -> Floats:
        """The sum over queries of weight times what a weak ranker measures above the floor."""
        out = np.zeros((len(pool.signs), pool.count))
        if self._total > 0:
            rows = self._alone.reshape(-1, self._alone.shape[2])
            row_products(rows, self._weights, out.reshape(-1))
            out -= float(self._weights @ self._floor)
        return out

    def _sums(self, values: Floats) -> Floats:
        """Above the floor: what was measured, what can be, and that by the queries' weights."""
        floor, weighted = float(self._shares @ self._floor), float(self._weights @ self._floor)
        return np.array([float(self._shares @ values) - floor, self._total - floor,
                         float(self._weights.sum()) - weighted])  # fmt: skip

    def tally(self, scores: Floats) -> Floats:
        values = self._judge(scores)
        self._weights = self._shares * np.exp(-values)
        return self._sums(values)

    def pull(self, pool: Pool, learned: bool) -> Floats:
        if not learned:
            self._weights = self._shares
        return self._pulled(pool)

    @staticmethod
    def loss_of(tally: Floats) -> float:
        return 1.0 - float(tally[0] / tally[1]) if tally[1] > 0 else 0.0

    @staticmethod
    def scale_of(tally: Floats, learned: bool) -> float:
        return float(1 / tally[2 if learned else 1]) if tally[1] > 0 else 0.0
