"""Boosting over shards: scores stay in the shards, which replay what was chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firstpage.engine.engine import ShardJob
from firstpage.solvers.boosting.boosting import DUST, step_of
from firstpage.solvers.boosting.pools import Pool
from firstpage.solvers.boosting.statistics import Term, WeightedTerms
from firstpage.solvers.sharded.objective import Held
from firstpage.types import Floats

Chosen = tuple[tuple[int, float], ...]
ROW = 80  # bytes per document that a shard holds, about


class BoostingShard:
    """A shard's documents, their scores, and what is not yet right with them."""

    def __init__(self, pool: Pool, terms: Sequence[Term], start: Floats, held: Held) -> None:
        self._pool, self._terms, self._start, self._held = pool, terms, start, held
        self._chosen: Chosen = ()
        self._scores = start.copy()
        self._looked: tuple[Chosen, Chosen] | None = None

    @property
    def nbytes(self) -> int:
        return ROW * len(self._scores) + sum(term.nbytes for term in self._terms)

    def release(self) -> None:
        self._held.release()

    def tally(self, chosen: Chosen, trial: Chosen) -> tuple[tuple[Floats, ...], int]:
        """Sums for the loss after what was chosen, and one more step that is only tried; and
        how many documents have a score."""
        self._replay(chosen)
        scores = self._scores
        for number, step in trial:
            scores = scores.copy()
            self._pool.add(number, step, scores)
        tallies = tuple(term.tally(scores) for term in self._terms)
        self._looked = chosen, trial
        return tallies, int(np.count_nonzero(scores))

    def edges(self, chosen: Chosen, learned: bool) -> tuple[Floats, ...]:
        """Return a table of edges before they are scaled, per term of the loss."""
        if self._looked is None or (*self._looked[0], *self._looked[1]) != chosen:
            self.tally(chosen, ())
        return tuple(term.pull(self._pool, learned).copy() for term in self._terms)

    def _replay(self, chosen: Chosen) -> None:
        done = len(self._chosen)
        if chosen[:done] != self._chosen:
            self._scores, done = self._start.copy(), 0
        for number, step in chosen[done:]:
            self._pool.add(number, step, self._scores)
        self._chosen = chosen


class ShardedState:
    """Where boosting over shards stands: the list of what was chosen is all there is to know.

    pool     of no documents, for what weak rankers are
    kinds    the terms of the loss with their weights, of no documents either: they know how sums
             become losses and edges
    """

    def __init__(
        self, job: ShardJob[BoostingShard], pool: Pool, kinds: WeightedTerms,
        chosen: Chosen = (),
    ) -> None:  # fmt: skip
        self._job, self.pool, self._kinds = job, pool, kinds
        self._chosen = chosen
        self.loss, self._tallies, self._learned = self._look(())
        self._edges: Floats | None = None

    def _look(self, trial: Chosen) -> tuple[float, tuple[Floats, ...], bool]:
        tallies, scored = self._job.sum(BoostingShard.tally, self._chosen, trial)
        loss = 0.0
        for (share, kind), tally in zip(self._kinds, tallies, strict=True):
            loss += share * kind.loss_of(tally)
        return loss, tallies, scored > 0

    def edges(self) -> Floats:
        if self._edges is None:
            sums = self._job.sum(BoostingShard.edges, self._chosen, self._learned)
            self._edges = np.zeros((len(self.pool.signs), self.pool.count))
            for (share, kind), tally, total in zip(self._kinds, self._tallies, sums, strict=True):
                self._edges += share * total * kind.scale_of(tally, self._learned)
        return self._edges.copy()

    def take(self, number: int, edge: float, halvings: int | None) -> float:
        step = step_of(edge)
        for _ in range(1 + (halvings or 0)):
            loss, tallies, learned = self._look(((number, step),))
            if halvings is None or loss < self.loss - DUST:
                self._chosen = (*self._chosen, (number, step))
                self.loss, self._tallies, self._learned = loss, tallies, learned
                self._edges = None
                return step
            step /= 2
        return 0.0
