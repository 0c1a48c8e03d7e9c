"""Boosting over weak rankers: one loop for RankBoost, AdaRank and FocusedBoost.

Every round looks at what is not yet right: pairs in the wrong order (`PairTerm`), queries that
measure badly (`ListTerm`).  The weak ranker with the greatest edge r, a number from -1 to 1, is
added with the step 1/2 log((1 + r) / (1 - r)), which lowers the usual bound on the error most; of
a mixture of both parts the same formula takes the mixture of their edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from firstpage.solvers.boosting.pools import Pool
from firstpage.solvers.boosting.statistics import WeightedTerms
from firstpage.types import Bools, Floats

SURE = 1 - 1e-9  # an edge of more would ask for an endless step
TIE = 1e-9  # edges that differ by less are equal
DUST = 1e-12  # a loss that falls by less stands still
Told = Callable[[int, int, float, float], bool]
"""(round, weak ranker, step, loss) -> whether to stop."""


@dataclass(frozen=True)
class Rules:
    """How far to go.

    rounds     at most
    halvings   how often a step that does not lower the loss is halved; if that does not help, its
               weak ranker is set aside until another one has lowered it.  None: every step is
               taken, as the papers do, though it may be the same weak ranker in vain for ever
    stall      stop after so many weak rankers, or rounds, in succession in vain; None: do not
    tol        stop when the loss falls by less than this share of itself; 0: do not
    """

    rounds: int
    halvings: int | None = 2
    stall: int | None = None
    tol: float = 0.0


@dataclass(eq=False)
class Boosted:
    """What was chosen: (weak ranker, step) of every round, and the loss after it."""

    chosen: list[tuple[int, float]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    before: float = 0.0  # the loss before the first round
    finished: bool = False  # rather than stopped by a callback
    aside: list[int] = field(default_factory=list)  # weak rankers that did not help of late
    vain: int = 0  # rounds in succession

    @property
    def best(self) -> int:
        """The number of rounds with the least loss."""
        return int(np.argmin(self.losses)) + 1 if self.losses else 0


class State(Protocol):
    """Where boosting stands; weak rankers are taken into it."""

    @property
    def pool(self) -> Pool: ...

    @property
    def loss(self) -> float: ...

    def edges(self) -> Floats:
        """Signs x weak rankers, mixed."""
        ...

    def take(self, number: int, edge: float, halvings: int | None) -> float:
        """Add a weak ranker, and return its step: 0 where none was found that lowers the loss."""
        ...


def boost(state: State, rules: Rules, found: Boosted, told: Told) -> None:
    """Add weak rankers to `state` and `found`, round by round, telling of each.

    What `found` has already was chosen before, and is in `state`.
    """
    aside = np.zeros(state.pool.count, bool)
    aside[found.aside] = True
    if not found.chosen:
        found.before = state.loss
    least, vain = min([found.before, *found.losses]), found.vain
    for at in range(len(found.chosen) + 1, rules.rounds + 1):
        before = state.loss
        taken = _next(state, rules, aside)
        if taken is None and aside.any():  # the others may have made room for them
            aside[:] = False
            taken = _next(state, rules, aside)
        if taken is None:
            break
        number, edge, step = taken
        found.chosen.append((number, step))
        found.losses.append(state.loss)
        vain = 0 if state.loss < least - DUST else vain + 1
        least = min(state.loss, least)
        found.aside, found.vain = np.flatnonzero(aside).tolist(), vain
        if told(at, number, step, state.loss):
            return
        sure = abs(edge) == SURE  # one weak ranker does it all
        slow = rules.tol > 0 and before - state.loss < rules.tol * before
        if sure or slow or vain == rules.stall:
            break
    found.finished = True


def _next(state: State, rules: Rules, aside: Bools) -> tuple[int, float, float] | None:
    """Take the weak ranker of the greatest edge that helps: its number, edge and step.

    Those that do not help are set aside.
    """
    edges = state.edges()
    for _ in range(rules.stall or edges.size):
        edges[:, aside] = 0.0
        chosen = _strongest(edges, state.pool.signs)
        if chosen is None:
            return None
        step = state.take(*chosen, rules.halvings)
        if step != 0:
            return *chosen, step
        aside[chosen[0]] = True
    return None


class _State:
    """Scores, what the parts make of them, and the edges that follow.

    parts   with their shares, which sum to 1
    """

    def __init__(self, pool: Pool, parts: WeightedTerms, scores: Floats) -> None:
        self.pool, self.parts, self.scores = pool, parts, scores
        self.loss = self._look()
        self._edges: Floats | None = None

    def _look(self) -> float:
        for _, part in self.parts:
            part.look(self.scores)
        return sum(share * part.loss for share, part in self.parts)

    def edges(self) -> Floats:
        """Signs x weak rankers, mixed.  Steps that were tried and not taken do not change them."""
        if self._edges is None:
            self._edges = np.zeros((len(self.pool.signs), self.pool.count))
            for share, part in self.parts:
                self._edges += share * part.edges(self.pool)
        return self._edges.copy()

    def take(self, number: int, edge: float, halvings: int | None) -> float:
        """Add a weak ranker, and return its step: 0 where none was found that lowers the loss."""
        step = step_of(edge)
        before = self.scores.copy()
        for _ in range(1 + (halvings or 0)):
            self.pool.add(number, step, self.scores)
            loss = self._look()
            if halvings is None or loss < self.loss - DUST:
                self.loss, self._edges = loss, None
                return step
            self.scores[:] = before
            step /= 2
        return 0.0


def step_of(edge: float) -> float:
    """That lowers the bound on the error most."""
    return 0.5 * float(np.log((1 + edge) / (1 - edge)))


def _strongest(edges: Floats, signs: tuple[int, ...]) -> tuple[int, float] | None:
    """The weak ranker of the greatest edge, and the edge with its sign; None if none is above 0.

    Of equal ones the first, whatever rounding makes of them.
    """
    if not edges.size or not edges.max() > 0:
        return None
    first = int(np.argmax(edges >= edges.max() - TIE))
    s, number = divmod(first, edges.shape[1])
    return number, signs[s] * min(float(edges[s, number]), SURE)
