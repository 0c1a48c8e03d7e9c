"""The concave-convex procedure, for hinges whose true ranking depends on the scores.

Of the rankings that equal labels allow, the one of the highest score is the true one.  With it the
loss is a difference of convex functions; with the ranking frozen it is convex, and an upper bound.
So every round of freezing and solving lowers the objective.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from firstpage.core import Floats
from firstpage.learning.solvers.score_space import P, ScoredObjective, result_at
from firstpage.learning.solvers.solver import (
    FRESH_START,
    AnySolver,
    Objective,
    ProgressCallback,
    Resume,
    SolverResult,
    SolverState,
    never_stop,
)

MIN_DECREASE = 1e-3  # fraction by which a round must lower the objective for another to follow
NEAR_ORIGIN = 1e-3  # an optimum within this fraction of the value at 0 may be degenerate
SHORT_STEP = 0.05  # of the step that the gradient at 0 implies


@dataclass(frozen=True)
class ConcaveConvexProcedure:
    """A solver of convex objectives, in up to `count` rounds; it detects degenerate optima.

    Parameters
    ----------
    solver : Solver
        The solver of each round.
    count : int, default 5
        The number of rounds at most.
    freezes : bool, default True
        Whether the true ranking is chosen anew before each round; if not, one round is enough.

    References
    ----------
    Yuille and Rangarajan (2003), The concave-convex procedure.
    """

    solver: AnySolver
    count: int = 5
    freezes: bool = True
    selects_iteration: ClassVar[bool] = False
    rate_grid: ClassVar[tuple[float, ...]] = ()

    @property
    def required_traits(self) -> tuple[str, ...]:
        return self.solver.required_traits

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
        self,
        objective: ScoredObjective[P],
        start: Floats,
        progress: ProgressCallback = never_stop,
        resume: Resume = FRESH_START,
    ) -> SolverResult:
        """Minimize the objective from the parameters `start`, round by round."""
        params, done, before = start, 0, np.inf
        if (state := resume.state) is not None:
            params, before = state["frozen"], state["previous_value"] or np.inf
        space = objective.score_space() if self.freezes else None
        for _ in range(self.count if self.freezes else 1):
            if space is not None:
                space.freeze(params)

            def total_progress(
                iteration: int, value: float, params: Floats, done: int = done
            ) -> bool:
                return progress(done + iteration, value, params)

            result = self.solver.minimize(
                objective, params, total_progress, self._resume(params, before, state, resume)
            )
            state = None
            done += result.iterations
            params = result.params
            decrease = before - result.value
            if result.reason == "stopped early" or decrease <= MIN_DECREASE * abs(result.value):
                break
            before = result.value
        result = replace(result, iterations=done, warm_start=None)
        if not _degenerate(objective, result):
            return result
        result = result_at(result, objective, self._near_zero(objective, start))
        return replace(result, degenerate=True)

    def _resume(
        self, frozen: Floats, before: float, state: SolverState | None, resume: Resume
    ) -> Resume:
        """Return what the solver of a round resumes from, and where it reports its state."""
        report_state = resume.report_state
        if report_state is None or not self.resumable:
            return Resume(state=state)
        round_state = {"frozen": frozen, "previous_value": before if np.isfinite(before) else None}
        return Resume(
            state=state, report_state=lambda inner: report_state(lambda: {**inner(), **round_state})
        )

    def _near_zero(self, objective: Objective, direction: Floats) -> Floats:
        """Return a point in this direction so near 0 that the objective is within the tolerance of
        the value at 0.

        At 0 all scores are equal; near 0 the order is that of the start.
        """
        value = objective(np.zeros(objective.size))[0]
        step = direction / (float(np.linalg.norm(direction)) or 1.0)
        while step.any() and objective(step)[0] > value * (1 + self.tol / 4):
            step = step / 4
        return step


def _degenerate(objective: Objective, result: SolverResult) -> bool:
    """Return whether 0 is as good: then the direction of the parameters is rounding error.

    A small C brings the optimum near 0 as well, but then the parameters are as long as the
    gradient at 0 divided by the penalty.
    """
    value, gradient = objective(np.zeros(objective.size))
    if result.value < (1 - NEAR_ORIGIN) * value:
        return False
    step = float(np.linalg.norm(gradient)) / objective.l2
    return float(np.linalg.norm(result.params)) < SHORT_STEP * step
