"""Hinges whose true ranking depends on the scores: freeze it, solve, and look again.

Of the rankings that equal labels allow, the one that scores best is the true one.  With it the loss
is a difference of convex functions; with the ranking frozen it is convex, and lies above.  So every
round lowers the objective (the concave-convex procedure).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from firstpage.solvers.score_space import P, ScoredObjective, result_at
from firstpage.solvers.solver import (
    NOTHING,
    AnySolver,
    Objective,
    Resume,
    SolverResult,
    State,
    Watch,
    never,
)
from firstpage.types import Floats

FALL = 1e-3  # share of the objective that a round must take off to be followed by another
HARDLY = 1e-3  # an optimum by no more than this share below the value at 0 is looked at closely
SHORT = 0.05  # of the step that a true slope at 0 would ask for


@dataclass(frozen=True)
class Rounds:
    """A solver of convex objectives, in up to `count` rounds; it says if the end means nothing.

    freezes  whether the true ranking is chosen anew before each round; if not, one is enough
    """

    solver: AnySolver
    count: int = 5
    freezes: bool = True
    path: ClassVar[bool] = False
    rates: ClassVar[tuple[float, ...]] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        return self.solver.needs

    @property
    def linear(self) -> bool:
        return self.solver.linear

    @property
    def batch(self) -> int | None:
        return self.solver.batch

    @property
    def tol(self) -> float:
        return self.solver.tol

    @property
    def resumable(self) -> bool:
        return self.solver.resumable

    def minimize(
        self, objective: ScoredObjective[P], start: Floats, watch: Watch = never,
        resume: Resume = NOTHING,
    ) -> SolverResult:  # fmt: skip
        params, done, before = start, 0, np.inf
        if (state := resume.state) is not None:
            params, before = state["frozen"], state["before"] or np.inf
        space = objective.space() if self.freezes else None
        for _ in range(self.count if self.freezes else 1):
            if space is not None:
                space.freeze(params)

            def count_on(iteration: int, value: float, params: Floats, done: int = done) -> bool:
                return watch(done + iteration, value, params)

            found = self.solver.minimize(
                objective, params, count_on, self._resume(params, before, state, resume)
            )
            state = None
            done += found.iterations
            params = found.params
            if found.reason == "stopped early" or before - found.value <= FALL * abs(found.value):
                break
            before = found.value
        found = replace(found, iterations=done, memory=None)
        if not _degenerate(objective, found):
            return found
        found = result_at(found, objective, self._hardly(objective, start))
        return replace(found, degenerate=True)

    def _resume(self, frozen: Floats, before: float, state: State | None, resume: Resume) -> Resume:
        """Return what the solver goes on from, and where it reports how it stands."""
        report = resume.report
        if report is None or not self.resumable:
            return Resume(state=state)
        mine = {"frozen": frozen, "before": before if np.isfinite(before) else None}
        return Resume(state=state, report=lambda inner: report(lambda: {**inner(), **mine}))

    def _hardly(self, objective: Objective, way: Floats) -> Floats:
        """So far along a way from 0 that the objective is as good to within the tolerance.

        At 0 all orders are alike; this keeps the one that was started from.
        """
        value = objective(np.zeros(objective.size))[0]
        step = way / (float(np.linalg.norm(way)) or 1.0)
        while step.any() and objective(step)[0] > value * (1 + self.tol / 4):
            step = step / 4
        return step


def _degenerate(objective: Objective, found: SolverResult) -> bool:
    """Whether 0 is as good: then the direction of the parameters is rounding.

    A small C brings the optimum near 0 as well, but along a slope: there the parameters are as
    long as that slope over the penalty.
    """
    value, slope = objective(np.zeros(objective.size))
    if found.value < (1 - HARDLY) * value:
        return False
    step = float(np.linalg.norm(slope)) / objective.l2
    return float(np.linalg.norm(found.params)) < SHORT * step
