"""Boosting over shards: scores stay in the parts, which replay what was chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firstpage.engine.engine import Parts
from firstpage.solvers.boosting.boosting import DUST, step_of
from firstpage.solvers.boosting.pools import Pool
from firstpage.solvers.boosting.statistics import Part
from firstpage.solvers.sharded.shard_objective import Held
from firstpage.types import Floats

Chosen = tuple[tuple[int, float], ...]
ROW = 80  # bytes a document that a part holds, about


class BoostPart:
    """A shard's documents, their scores, and what is not yet right with them."""

    def __init__(self, pool: Pool, parts: Sequence[Part], start: Floats, held: Held) -> None:
        self._pool, self._parts, self._start, self._held = pool, parts, start, held
        self._chosen: Chosen = ()
        self._scores = start.copy()
        self._looked: tuple[Chosen, Chosen] | None = None
        self._tallies: list[Floats] = []

    @property
    def nbytes(self) -> int:
        tables = sum(getattr(part, "nbytes", 0) for part in self._parts)
        return ROW * len(self._scores) + tables

    def release(self) -> None:
        self._held.release()

    def tally(self, chosen: Chosen, trial: Chosen) -> tuple[list[Floats], bool]:
        """Sums for the loss after what was chosen, and one more step that is only tried; and
        whether any document has a score."""
        self._replay(chosen)
        scores = self._scores
        for number, step in trial:
            scores = scores.copy()
            self._pool.add(number, step, scores)
        self._tallies = [part.tally(scores) for part in self._parts]
        self._looked = chosen, trial
        return self._tallies, bool(scores.any())

    def edges(self, chosen: Chosen, learnt: bool) -> list[Floats]:
        """Before they are scaled, a table a part of the loss."""
        if self._looked is None or (*self._looked[0], *self._looked[1]) != chosen:
            self.tally(chosen, ())
        return [part.pull(self._pool, learnt).copy() for part in self._parts]

    def _replay(self, chosen: Chosen) -> None:
        done = len(self._chosen)
        if chosen[:done] != self._chosen:
            self._scores, done = self._start.copy(), 0
        for number, step in chosen[done:]:
            self._pool.add(number, step, self._scores)
        self._chosen = chosen


class SpreadState:
    """Where boosting over shards stands: the list of what was chosen is all there is to know.

    pool     of no documents, for what weak rankers are
    kinds    the parts of the loss with their shares, of no documents either: they know how sums
             become losses and edges
    """

    def __init__(
        self, parts: Parts, pool: Pool, kinds: Sequence[tuple[float, Part]],
        chosen: Chosen = (),
    ) -> None:  # fmt: skip
        self._parts, self.pool, self._kinds = parts, pool, kinds
        self._chosen = chosen
        self.loss, self._tallies, self._learnt = self._look(())
        self._edges: Floats | None = None

    def _look(self, trial: Chosen) -> tuple[float, list[Floats], bool]:
        tallies = [np.zeros(1)] * len(self._kinds)
        learnt = False
        for found, any_ in self._parts.each("tally", self._chosen, trial):
            tallies = [a + b for a, b in zip(tallies, found, strict=True)]
            learnt = learnt or any_
        loss = 0.0
        for (share, kind), tally in zip(self._kinds, tallies, strict=True):
            loss += share * kind.loss_of(tally)
        return loss, tallies, learnt

    def edges(self) -> Floats:
        if self._edges is None:
            size = len(self.pool.signs), self.pool.count
            sums = [np.zeros(size) for _ in self._kinds]
            for found in self._parts.each("edges", self._chosen, self._learnt):
                for total, one in zip(sums, found, strict=True):
                    total += one
            self._edges = np.zeros(size)
            for (share, kind), tally, total in zip(self._kinds, self._tallies, sums, strict=True):
                self._edges += share * total * kind.scale_of(tally, self._learnt)
        return self._edges.copy()

    def take(self, number: int, edge: float, halvings: int | None) -> float:
        step = step_of(edge)
        for _ in range(1 + (halvings or 0)):
            loss, tallies, learnt = self._look(((number, step),))
            if halvings is None or loss < self.loss - DUST:
                self._chosen = (*self._chosen, (number, step))
                self.loss, self._tallies, self._learnt = loss, tallies, learnt
                self._edges = None
                return step
            step /= 2
        return 0.0
