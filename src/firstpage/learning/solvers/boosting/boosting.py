"""Boosting over weak rankers: one loop for RankBoost, AdaRank and FocusedBoost.

Every round weighs pairs in the wrong order (`PairTerm`) or queries of a low measure (`ListTerm`).
The weak ranker of the greatest edge r, a number from -1 to 1, is added with the step
1/2 log((1 + r) / (1 - r)), which minimizes the usual bound on the error; for a mixture of both
terms the same formula takes the mixture of their edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from firstpage.core import Bools, Floats
from firstpage.learning.solvers.boosting.pools import WeakRankerPool
from firstpage.learning.solvers.boosting.statistics import WeightedTerms

MAX_EDGE = 1 - 1e-9  # a greater edge would imply an infinite step
EDGE_TOLERANCE = 1e-9  # edges that differ by less are equal
ROUNDING_EPS = 1e-12  # a loss that decreases by less has not changed
RoundCallback = Callable[[int, int, float, float], bool]
"""(round, weak ranker, step, loss) -> whether to stop."""


@dataclass(frozen=True)
class BoostingRules:
    """When to stop, and which steps to take.

    Attributes
    ----------
    rounds : int
        The number of rounds at most.
    halvings : int or None
        How often a step that does not lower the loss is halved.  If that does not help, its weak
        ranker is excluded until another one has lowered the loss.  None: every step is taken, as
        in the papers, even if the same weak ranker is chosen again and again without effect.
    stall : int or None
        Stop after this many weak rankers, or rounds, in succession without effect; None: never.
    tol : float
        Stop when the loss decreases by less than this fraction; 0: never.
    """

    rounds: int
    halvings: int | None = 2
    stall: int | None = None
    tol: float = 0.0


@dataclass(eq=False)
class BoostingResult:
    """The chosen (weak ranker, step) of every round, and the loss after it."""

    chosen: list[tuple[int, float]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    initial_loss: float = 0.0  # before the first round
    finished: bool = False  # not stopped by a callback
    excluded: list[int] = field(default_factory=list)  # weak rankers that had no effect recently
    stalled_rounds: int = 0  # rounds in succession without effect

    @property
    def best(self) -> int:
        """The number of rounds with the least loss."""
        return int(np.argmin(self.losses)) + 1 if self.losses else 0


class BoostingState(Protocol):
    """The current ensemble, its loss, and the edges of the weak rankers."""

    @property
    def pool(self) -> WeakRankerPool: ...

    @property
    def loss(self) -> float: ...

    def edges(self) -> Floats:
        """Return the mixed edges, of shape (signs, weak rankers)."""
        ...

    def try_step(self, number: int, edge: float, halvings: int | None) -> float:
        """Add a weak ranker and return its step; return 0 if no step lowers the loss."""
        ...


def boost(
    state: BoostingState, rules: BoostingRules, result: BoostingResult, progress: RoundCallback
) -> None:
    """Add weak rankers to `state` and `result`, round by round, with a call of `progress` each.

    The weak rankers that `result` already has were chosen before, and are in `state`.
    """
    excluded = np.zeros(state.pool.count, bool)
    excluded[result.excluded] = True
    if not result.chosen:
        result.initial_loss = state.loss
    lowest, stalled = min([result.initial_loss, *result.losses]), result.stalled_rounds
    for round_number in range(len(result.chosen) + 1, rules.rounds + 1):
        before = state.loss
        added = _add_best(state, rules, excluded)
        if added is None and excluded.any():  # the others may have changed what they can achieve
            excluded[:] = False
            added = _add_best(state, rules, excluded)
        if added is None:
            break
        number, edge, step = added
        result.chosen.append((number, step))
        result.losses.append(state.loss)
        stalled = 0 if state.loss < lowest - ROUNDING_EPS else stalled + 1
        lowest = min(state.loss, lowest)
        result.excluded, result.stalled_rounds = np.flatnonzero(excluded).tolist(), stalled
        if progress(round_number, number, step, state.loss):
            return
        perfect = abs(edge) == MAX_EDGE  # one weak ranker is enough
        slow = rules.tol > 0 and before - state.loss < rules.tol * before
        if perfect or slow or stalled == rules.stall:
            break
    result.finished = True


def _add_best(
    state: BoostingState, rules: BoostingRules, excluded: Bools
) -> tuple[int, float, float] | None:
    """Add the weak ranker of the greatest edge that lowers the loss; return its number, edge and
    step.

    Those that do not lower it are excluded.
    """
    edges = state.edges()
    for _ in range(rules.stall or edges.size):
        edges[:, excluded] = 0.0
        chosen = _strongest(edges, state.pool.signs)
        if chosen is None:
            return None
        step = state.try_step(*chosen, rules.halvings)
        if step != 0:
            return *chosen, step
        excluded[chosen[0]] = True
    return None


class InMemoryBoostingState:
    """Scores of documents in memory, the terms of the loss, and the resulting edges.

    The weights of `terms` sum to 1.
    """

    def __init__(self, pool: WeakRankerPool, terms: WeightedTerms, scores: Floats) -> None:
        self.pool, self.terms, self.scores = pool, terms, scores
        self.loss = self._evaluate()
        self._edges: Floats | None = None

    def _evaluate(self) -> float:
        """Update all terms to the scores, and return the loss."""
        for _, term in self.terms:
            term.update(self.scores)
        return sum(weight * term.loss for weight, term in self.terms)

    def edges(self) -> Floats:
        """Return the mixed edges, of shape (signs, weak rankers).

        Steps that were tried and not taken do not change them.
        """
        if self._edges is None:
            self._edges = np.zeros((len(self.pool.signs), self.pool.count))
            for weight, term in self.terms:
                self._edges += weight * term.edges(self.pool)
        return self._edges.copy()

    def try_step(self, number: int, edge: float, halvings: int | None) -> float:
        """Add a weak ranker and return its step; return 0 if no step lowers the loss."""
        step = boosting_step(edge)
        before = self.scores.copy()
        for _ in range(1 + (halvings or 0)):
            self.pool.add(number, step, self.scores)
            loss = self._evaluate()
            if halvings is None or loss < self.loss - ROUNDING_EPS:
                self.loss, self._edges = loss, None
                return step
            self.scores[:] = before
            step /= 2
        return 0.0


def boosting_step(edge: float) -> float:
    """Return the step that minimizes the bound on the error."""
    return 0.5 * float(np.log((1 + edge) / (1 - edge)))


def _strongest(edges: Floats, signs: tuple[int, ...]) -> tuple[int, float] | None:
    """Return the weak ranker of the greatest edge, and its signed edge; None if none is above 0.

    Of edges that are equal up to rounding, the first is taken.
    """
    if not edges.size or not edges.max() > 0:
        return None
    first = int(np.argmax(edges >= edges.max() - EDGE_TOLERANCE))
    s, number = divmod(first, edges.shape[1])
    return number, signs[s] * min(float(edges[s, number]), MAX_EDGE)
