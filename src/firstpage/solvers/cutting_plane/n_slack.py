"""The papers' cutting planes: a slack and a set of planes for every query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firstpage.registry import check_number
from firstpage.solvers.cutting_plane.one_slack import OLD, check_penalty
from firstpage.solvers.objective import BlockObjective
from firstpage.solvers.score_space import relative_gap
from firstpage.solvers.solver import NOTHING, Resume, SolverResult, Watch, never
from firstpage.types import Array, Floats, Ints


@dataclass(frozen=True)
class NSlack:
    """In every pass a plane for each query whose loss is above its planes; then all again.

    It ends at the optimum of `CuttingPlane`, in fewer passes of far more work: for comparison.

    tol       stop when no parameters can be better by more than this share of the objective
    max_iter  passes at most
    """

    tol: float = 1e-3
    max_iter: int = 200
    needs: ClassVar[tuple[str, ...]] = ("convex",)
    linear: ClassVar[bool] = True
    path: ClassVar[bool] = False
    batch: ClassVar[int] = 1
    resumable: ClassVar[bool] = False
    rates: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        check_number(self, "tol", above=0)
        check_number(self, "max_iter", 1, integer=True)

    def minimize(
        self, objective: BlockObjective, start: Floats, watch: Watch = never,
        resume: Resume = NOTHING,
    ) -> SolverResult:  # fmt: skip
        check_penalty(objective)
        queries = len(objective.bounds)
        sets = _Sets(objective.size, queries)
        params = np.array(start, np.float64)
        best, kept, below = np.inf, params, 0.0
        slack = np.zeros(queries)
        stopped = converged = False
        for iteration in range(1, self.max_iter + 1):
            losses, slopes = _each(objective, params)
            value = float(losses.sum()) + objective.l2 / 2 * float(params @ params)
            if value < best:
                best, kept = value, params
            stopped = watch(iteration, best, kept)
            converged = best - below <= self.tol * best
            if stopped or converged:
                break
            over = losses > slack + 0.1 * self.tol * max(best, 1e-300) / queries
            sets.add(np.flatnonzero(over), slopes[over], (losses - slopes @ params)[over])
            params, slack, bound = sets.least(objective.l2)
            below = max(below, bound)
        _each(objective, kept)  # of which the bounds are now
        gap = relative_gap(best + objective.unsure(), below)
        reason = "stopped early" if stopped else f"within {100 * gap:.2g} % of the optimum"
        exhausted = not converged and not stopped
        return SolverResult(
            kept, best, iteration, reason, converged and not stopped, exhausted, gap
        )


def _each(objective: BlockObjective, params: Floats) -> tuple[Floats, Array]:
    """The share of every query in the mean loss, and its slope."""
    count = len(objective.bounds)
    losses, slopes = np.empty(count), np.empty((count, objective.size))
    penalty = objective.l2 / 2 * float(params @ params)
    for query in range(count):
        value, slope = objective.block(query, params)
        losses[query] = (value - penalty) / count
        slopes[query] = (slope - objective.l2 * params) / count
    return losses, slopes


class _Sets:
    """Planes of all queries, each below its query's loss, and the quadratic program over them."""

    def __init__(self, size: int, queries: int) -> None:
        self.size, self.queries = size, queries
        self.owner: Ints = np.empty(0, np.int64)
        self.slopes: Array = np.empty((0, size))
        self.heights: Floats = np.empty(0)
        self.age: Ints = np.empty(0, np.int64)

    def add(self, owner: Ints, slopes: Array, heights: Floats) -> None:
        self.owner = np.concatenate([self.owner, owner])
        self.slopes = np.vstack([self.slopes, slopes])
        self.heights = np.concatenate([self.heights, heights])
        self.age = np.concatenate([self.age, np.zeros(len(owner), np.int64)])

    def least(self, l2: float) -> tuple[Floats, Floats, float]:
        """Parameters, slacks, and a bound below the objective, from the multipliers."""
        multipliers = self._multipliers(l2)
        params: Floats = -(multipliers @ self.slopes) / l2
        bound = float(multipliers @ self.heights) - l2 / 2 * float(params @ params)
        reached = self.slopes @ params + self.heights
        slack = np.zeros(self.queries)
        np.maximum.at(slack, self.owner, reached)
        self.age = np.where(multipliers > 1e-9, 0, self.age + 1)
        keep = self.age < OLD
        self.owner, self.slopes = self.owner[keep], self.slopes[keep]
        self.heights, self.age = self.heights[keep], self.age[keep]
        return params, slack, bound

    def _multipliers(self, l2: float) -> Floats:
        """At least 0, and at most 1 together for a query: what lies above is scaled down."""
        import piqp
        from scipy.sparse import coo_matrix, csc_matrix, diags, hstack

        count = len(self.owner)
        unit = float(np.abs(self.slopes).max(initial=0.0)) or 1.0  # of the parameters
        P = csc_matrix(diags(np.r_[np.full(self.size, l2 / unit**2), np.zeros(self.queries)]))
        cost = np.r_[np.zeros(self.size), np.ones(self.queries)]
        ones = (np.ones(count), (np.arange(count), self.owner))
        slack = coo_matrix(ones, shape=(count, self.queries))
        G: Any = csc_matrix(hstack([csc_matrix(self.slopes / unit), -slack]))
        solver = piqp.SparseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
        low = np.r_[np.full(self.size, -np.inf), np.zeros(self.queries)]
        solver.setup(P=P, c=cost, G=G, h_u=-self.heights, x_l=low)
        solver.solve()
        found = np.maximum(np.nan_to_num(solver.result.z_u), 0.0)
        total = np.maximum(np.bincount(self.owner, found, self.queries), 1.0)
        shares: Floats = found / total[self.owner]
        return shares
