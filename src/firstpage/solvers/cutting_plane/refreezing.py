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
from firstpage.solvers.score_space import found_at
from firstpage.solvers.watch import Found, Keep, Watch, never
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

    @property
    def keeps(self) -> bool:
        return bool(getattr(self.solver, "keeps", False))

    def minimize(
        self, objective: Objective, start: Floats, watch: Watch = never, memory: Any = None,
        keep: Keep | None = None,
    ) -> Found:  # fmt: skip
        """memory: what was kept of this fit."""
        params, done, before = start, 0, np.inf
        if memory is not None:
            params, before = memory["frozen"], memory["before"] or np.inf
        space = objective.space() if self.freezes else None
        for _ in range(self.count if self.freezes else 1):
            if space is not None:
                space.freeze(params)

            def count_on(iteration: int, value: float, params: Floats, done: int = done) -> bool:
                return watch(done + iteration, value, params)

            found: Found = self.solver.minimize(
                objective, params, count_on, **self._more(params, before, memory, keep)
            )
            memory = None
            done += found.iterations
            params = found.params
            if found.reason == "stopped early" or before - found.value <= FALL * abs(found.value):
                break
            before = found.value
        found = replace(found, iterations=done, memory=None)
        if not _degenerate(objective, found):
            return found
        found = found_at(found, objective, self._hardly(objective, start))
        return replace(found, degenerate=True)

    def _more(
        self, frozen: Floats, before: float, memory: Any, keep: Keep | None
    ) -> dict[str, Any]:
        """What the solver is to go on from, and where it is to tell how it stands."""
        more: dict[str, Any] = {} if memory is None else {"memory": memory}
        if keep is not None and self.keeps:
            mine = {"frozen": frozen, "before": before if np.isfinite(before) else None}
            more["keep"] = lambda inner: keep(lambda: {**inner(), **mine})
        return more

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
