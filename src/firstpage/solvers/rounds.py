"""Hinges whose true ranking depends on the scores: freeze it, solve, and look again.

Of the rankings that equal labels allow, the one that scores best is the true one.  With it the loss
is a difference of convex functions; with the ranking frozen it is convex, and lies above.  So every
round lowers the objective (the concave-convex procedure).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from firstpage.solvers.objective import Objective
from firstpage.solvers.score_space import ScoreSpace
from firstpage.solvers.watch import Found, Watch, never
from firstpage.types import Floats

FALL = 1e-3  # share of the objective that a round must take off to be followed by another
HARDLY = 1e-3  # an optimum by no more than this share below the value at 0 is looked at closely
SHORT = 0.05  # of the step that a true slope at 0 would ask for


@dataclass(frozen=True)
class Rounds:
    """A solver of convex objectives, in up to `count` rounds; it says if the end means nothing.

    freezes  whether the true ranking is chosen anew before each round; if not, one is enough
    """

    solver: Any
    count: int = 5
    freezes: bool = True
    path: ClassVar[bool] = False

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(self.solver.needs)

    @property
    def linear(self) -> bool:
        return bool(self.solver.linear)

    @property
    def batch(self) -> Any:
        return self.solver.batch

    @property
    def tol(self) -> float:
        return float(self.solver.tol)

    def minimize(self, objective: Objective, start: Floats, watch: Watch = never) -> Found:
        params, done, before = start, 0, np.inf
        target: Any = objective.target
        space = ScoreSpace(objective) if self.freezes else None
        for _ in range(self.count if self.freezes else 1):
            if space is not None:
                target.freeze(space.scores(params))

            def count_on(iteration: int, value: float, params: Floats, done: int = done) -> bool:
                return watch(done + iteration, value, params)

            found: Found = self.solver.minimize(objective, params, count_on)
            done += found.iterations
            params = found.params
            if found.reason == "stopped early" or before - found.value <= FALL * abs(found.value):
                break
            before = found.value
        found = replace(found, iterations=done, memory=None)
        if not _degenerate(objective, found):
            return found
        return replace(found, params=self._hardly(objective, start), degenerate=True)

    def _hardly(self, objective: Objective, way: Floats) -> Floats:
        """So far along a way from 0 that the objective is as good to within the tolerance.

        At 0 all orders are alike; this keeps the one that was started from.
        """
        value = objective(np.zeros(objective.size))[0]
        step = way / (float(np.linalg.norm(way)) or 1.0)
        while step.any() and objective(step)[0] > value * (1 + self.tol / 4):
            step = step / 4
        return step


def _degenerate(objective: Objective, found: Found) -> bool:
    """Whether 0 is as good: then the direction of the parameters is rounding.

    A small C brings the optimum near 0 as well, but along a slope: there the parameters are as
    long as that slope over the penalty.
    """
    value, slope = objective(np.zeros(objective.size))
    if found.value < (1 - HARDLY) * value:
        return False
    step = float(np.linalg.norm(slope)) / objective.l2
    return float(np.linalg.norm(found.params)) < SHORT * step
