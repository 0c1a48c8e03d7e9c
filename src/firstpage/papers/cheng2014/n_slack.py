"""Algorithm 1 of the paper: cutting planes, with one slack variable and set of planes per query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints, check_number
from firstpage.learning.solvers import (
    FRESH_START,
    MAX_AGE,
    BlockObjective,
    ProgressCallback,
    Resume,
    SolverResult,
    check_penalty,
    never_stop,
    relative_gap,
)


@dataclass(frozen=True)
class NSlack:
    """N-slack cutting planes, for convex losses of linear scores.

    Every pass adds a plane for each query whose loss is above its planes, and solves a quadratic
    program over all planes.  It ends at the optimum of `CuttingPlane`, in fewer passes of much more
    work each; it serves for comparison.

    Parameters
    ----------
    tol : float, default 1e-3
        Stop when the optimality gap is at most this fraction of the objective; above 0.
    max_iter : int, default 200
        The number of passes at most, at least 1.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    DataError
        On fitting, if there is no penalty, or data are in shards.

    References
    ----------
    Tsochantaridis, Joachims, Hofmann and Altun (2005), Large margin methods for structured and
    interdependent output variables, algorithm 1.

    Examples
    --------
    >>> import firstpage as fp
    >>> from firstpage.papers.cheng2014.n_slack import NSlack
    >>> ranker = fp.SVMMAP(solver=NSlack(max_iter=50))
    """

    tol: float = 1e-3
    max_iter: int = 200
    required_traits: ClassVar[tuple[str, ...]] = ("convex",)
    linear: ClassVar[bool] = True
    selects_iteration: ClassVar[bool] = False
    batch: ClassVar[int] = 1
    resumable: ClassVar[bool] = False
    rate_grid: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        check_number(self, "tol", above=0)
        check_number(self, "max_iter", 1, integer=True)

    def minimize(
        self,
        objective: BlockObjective,
        start: Floats,
        progress: ProgressCallback = never_stop,
        resume: Resume = FRESH_START,
    ) -> SolverResult:
        """Minimize the objective from `start`; see `Solver.minimize`.

        The objective has blocks of one query.  `resume` is not used: the solver cannot be resumed.
        """
        if not isinstance(objective, BlockObjective):
            raise DataError("n-slack visits single queries, which needs data in memory.")
        check_penalty(objective)
        queries = len(objective.bounds)
        planes = _QueryPlanes(objective.size, queries)
        params = np.array(start, np.float64)
        best_value, best_params, lower_bound = np.inf, params, 0.0
        slack = np.zeros(queries)
        stopped = converged = False
        for iteration in range(1, self.max_iter + 1):
            losses, gradients = _query_losses(objective, params)
            value = float(losses.sum()) + objective.l2 / 2 * float(params @ params)
            if value < best_value:
                best_value, best_params = value, params
            stopped = progress(iteration, best_value, best_params)
            converged = best_value - lower_bound <= self.tol * best_value
            if stopped or converged:
                break
            violated = losses > slack + 0.1 * self.tol * max(best_value, 1e-300) / queries
            offsets = (losses - gradients @ params)[violated]
            planes.add(np.flatnonzero(violated), gradients[violated], offsets)
            params, slack, bound = planes.minimize_model(objective.l2)
            lower_bound = max(lower_bound, bound)
        _query_losses(objective, best_params)  # for the error bound of these parameters
        missed = objective.loss_error_bound()
        gap = relative_gap(best_value + missed, lower_bound)
        reason = "stopped early" if stopped else f"within {100 * gap:.2g} % of the optimum"
        exhausted = not converged and not stopped
        return SolverResult(
            best_params,
            best_value,
            iteration,
            reason,
            converged and not stopped,
            exhausted,
            missed,
            gap,
        )


def _query_losses(objective: BlockObjective, params: Floats) -> tuple[Floats, Array]:
    """Return the contribution of every query to the mean loss, and its gradient."""
    count = len(objective.bounds)
    losses, gradients = np.empty(count), np.empty((count, objective.size))
    penalty = objective.l2 / 2 * float(params @ params)
    for query in range(count):
        value, gradient = objective.block(query, params)
        losses[query] = (value - penalty) / count
        gradients[query] = (gradient - objective.l2 * params) / count
    return losses, gradients


class _QueryPlanes:
    """Planes of all queries, each below its query's loss, and the quadratic program over them."""

    def __init__(self, size: int, queries: int) -> None:
        self.size, self.queries = size, queries
        self.owner: Ints = np.empty(0, np.int64)
        self.gradients: Array = np.empty((0, size))
        self.offsets: Floats = np.empty(0)
        self.age: Ints = np.empty(0, np.int64)

    def add(self, owner: Ints, gradients: Array, offsets: Floats) -> None:
        """Add a plane to each of the queries `owner`."""
        self.owner = np.concatenate([self.owner, owner])
        self.gradients = np.vstack([self.gradients, gradients])
        self.offsets = np.concatenate([self.offsets, offsets])
        self.age = np.concatenate([self.age, np.zeros(len(owner), np.int64)])

    def minimize_model(self, l2: float) -> tuple[Floats, Floats, float]:
        """Return parameters, slacks, and a lower bound of the objective, from the multipliers."""
        multipliers = self._multipliers(l2)
        params: Floats = -(multipliers @ self.gradients) / l2
        bound = float(multipliers @ self.offsets) - l2 / 2 * float(params @ params)
        heights = self.gradients @ params + self.offsets
        slack = np.zeros(self.queries)
        np.maximum.at(slack, self.owner, heights)
        self.age = np.where(multipliers > 1e-9, 0, self.age + 1)
        keep = self.age < MAX_AGE
        self.owner, self.gradients = self.owner[keep], self.gradients[keep]
        self.offsets, self.age = self.offsets[keep], self.age[keep]
        return params, slack, bound

    def _multipliers(self, l2: float) -> Floats:
        """Return multipliers of at least 0, and of at most 1 in sum per query: larger sums are
        scaled down."""
        import piqp
        from scipy.sparse import csc_matrix

        count, size = len(self.owner), self.size + self.queries
        unit = float(np.abs(self.gradients).max(initial=0.0)) or 1.0  # of the parameters
        diagonal = np.arange(self.size), np.minimum(np.arange(size + 1), self.size)
        P: Any = csc_matrix((np.full(self.size, l2 / unit**2), *diagonal), shape=(size, size))
        cost = np.r_[np.zeros(self.size), np.ones(self.queries)]
        columns = self.gradients.T / unit
        column, row = np.nonzero(columns)
        values = np.r_[columns[column, row], np.full(count, -1.0)]
        rows = np.r_[row, np.argsort(self.owner, kind="stable")]
        per_column = np.r_[
            np.count_nonzero(columns, axis=1), np.bincount(self.owner, minlength=self.queries)
        ]
        ends = np.r_[0, np.cumsum(per_column)]
        G: Any = csc_matrix((values, rows, ends), shape=(count, size))
        solver = piqp.SparseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
        low = np.r_[np.full(self.size, -np.inf), np.zeros(self.queries)]
        solver.setup(P=P, c=cost, G=G, h_u=-self.offsets, x_l=low)
        solver.solve()
        unscaled = np.maximum(np.nan_to_num(solver.result.z_u), 0.0)
        total = np.maximum(np.bincount(self.owner, unscaled, self.queries), 1.0)
        multipliers: Floats = unscaled / total[self.owner]
        return multipliers
