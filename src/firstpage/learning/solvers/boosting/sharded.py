"""Boosting over shards: scores stay in the shards, which replay the chosen weak rankers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firstpage.core import Floats
from firstpage.core.engine import ShardJob
from firstpage.learning.solvers.boosting.boosting import ROUNDING_EPS, boosting_step
from firstpage.learning.solvers.boosting.pools import WeakRankerPool
from firstpage.learning.solvers.boosting.statistics import BoostingTerm, WeightedTerms
from firstpage.learning.solvers.sharded import Releasable

ChosenSteps = tuple[tuple[int, float], ...]
"""(weak ranker, step) of each round."""
BYTES_PER_DOCUMENT = 80  # approximate memory of an open shard


class BoostingShard:
    """The documents of a shard, their scores, and the terms of the loss on them."""

    def __init__(
        self,
        pool: WeakRankerPool,
        terms: Sequence[BoostingTerm],
        start: Floats,
        data: Releasable,
    ) -> None:
        self._pool, self._terms, self._start = pool, terms, start
        self._data = data
        self._chosen: ChosenSteps = ()
        self._scores = start.copy()
        self._evaluated: tuple[ChosenSteps, ChosenSteps] | None = None

    @property
    def nbytes(self) -> int:
        own = BYTES_PER_DOCUMENT * len(self._scores) + sum(term.nbytes for term in self._terms)
        return own + self._data.heap_bytes

    def release(self) -> None:
        self._data.release()

    def loss_sums(self, chosen: ChosenSteps, trial: ChosenSteps) -> tuple[tuple[Floats, ...], int]:
        """Return the sums for the loss after the chosen steps and a trial step, which is not taken;
        and the number of documents with a score other than 0."""
        self._replay(chosen)
        scores = self._scores
        for number, step in trial:
            scores = scores.copy()
            self._pool.add(number, step, scores)
        sums = tuple(term.loss_sums(scores) for term in self._terms)
        self._evaluated = chosen, trial
        return sums, int(np.count_nonzero(scores))

    def edge_sums(self, chosen: ChosenSteps, learned: bool) -> tuple[Floats, ...]:
        """Return a table of edges before they are scaled, per term of the loss."""
        if self._evaluated is None or (*self._evaluated[0], *self._evaluated[1]) != chosen:
            self.loss_sums(chosen, ())
        return tuple(term.edge_sums(self._pool, learned).copy() for term in self._terms)

    def _replay(self, chosen: ChosenSteps) -> None:
        """Bring the scores to those after the chosen steps."""
        done = len(self._chosen)
        if chosen[:done] != self._chosen:
            self._scores, done = self._start.copy(), 0
        for number, step in chosen[done:]:
            self._pool.add(number, step, self._scores)
        self._chosen = chosen


class ShardedBoostingState:
    """The state of boosting over shards, which is the list of chosen steps.

    `pool` and `terms` are set up on no documents: they define the weak rankers, and how sums become
    losses and edges.
    """

    def __init__(
        self,
        job: ShardJob[BoostingShard],
        pool: WeakRankerPool,
        terms: WeightedTerms,
        chosen: ChosenSteps = (),
    ) -> None:
        self._job, self.pool, self._terms = job, pool, terms
        self._chosen = chosen
        self.loss, self._sums, self._learned = self._evaluate(())
        self._edges: Floats | None = None

    def _evaluate(self, trial: ChosenSteps) -> tuple[float, tuple[Floats, ...], bool]:
        sums, scored = self._job.sum(BoostingShard.loss_sums, self._chosen, trial)
        loss = 0.0
        for (weight, term), term_sums in zip(self._terms, sums, strict=True):
            loss += weight * term.loss_from_sums(term_sums)
        return loss, sums, scored > 0

    def edges(self) -> Floats:
        if self._edges is None:
            totals = self._job.sum(BoostingShard.edge_sums, self._chosen, self._learned)
            self._edges = np.zeros((len(self.pool.signs), self.pool.count))
            for (weight, term), sums, total in zip(self._terms, self._sums, totals, strict=True):
                self._edges += weight * total * term.edge_scale(sums, self._learned)
        return self._edges.copy()

    def try_step(self, number: int, edge: float, halvings: int | None) -> float:
        step = boosting_step(edge)
        for _ in range(1 + (halvings or 0)):
            loss, sums, learned = self._evaluate(((number, step),))
            if halvings is None or loss < self.loss - ROUNDING_EPS:
                self._chosen = (*self._chosen, (number, step))
                self.loss, self._sums, self._learned = loss, sums, learned
                self._edges = None
                return step
            step /= 2
        return 0.0
