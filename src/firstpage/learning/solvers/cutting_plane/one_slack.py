"""One-slack cutting planes with a line search, for losses that are convex and not smooth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from firstpage.core import DataError, Floats, Ints, check_number
from firstpage.learning.solvers.score_space import (
    Line,
    LinearScoreSpace,
    P,
    ParameterPoint,
    ScoredObjective,
    relative_gap,
)
from firstpage.learning.solvers.solver import (
    FRESH_START,
    Objective,
    ProgressCallback,
    Resume,
    SolverResult,
    SolverState,
    never_stop,
)

MIN_OFFSET = -1e6  # of a plane relative to the highest one, in units of the gradients
MAX_AGE = 40  # solutions without a plane taking part, after which it is dropped


def check_penalty(objective: Objective) -> None:
    """Raise an error if there is no penalty: the model would have no minimum."""
    if objective.l2 <= 0:
        raise DataError("cutting planes need a penalty: C must be finite, or l2 above 0.")


class Planes:
    """Planes below the loss: loss(w) >= gradients[t] @ w + offsets[t] for all t.

    The first plane states that losses are at least 0.  Planes do not depend on the penalty: those
    of one C are valid for the next.
    """

    def __init__(self, size: int) -> None:
        self.gradients = np.zeros((1, size))
        self.offsets = np.zeros(1)
        self._gram = np.zeros((1, 1))
        self._age = np.zeros(1, np.int64)

    @classmethod
    def from_arrays(cls, gradients: Floats, offsets: Floats) -> Planes:
        """Create planes from a checkpoint."""
        planes = cls(gradients.shape[1])
        planes.gradients, planes.offsets = gradients, offsets
        planes._gram = gradients @ gradients.T
        planes._age = np.zeros(len(offsets), np.int64)
        return planes

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, gradient: Floats, offset: float) -> None:
        """Add a plane."""
        products = self.gradients @ gradient
        size = len(self)
        gram = np.empty((size + 1, size + 1))
        gram[:size, :size] = self._gram
        gram[size, :size] = gram[:size, size] = products
        gram[size, size] = gradient @ gradient
        self._gram = gram
        self.gradients = np.vstack([self.gradients, gradient])
        self.offsets = np.append(self.offsets, offset)
        self._age = np.append(self._age, 0)

    def minimize_model(self, l2: float) -> tuple[Floats, float]:
        """Return the parameters that minimize l2 / 2 * |w|^2 + the highest plane, and a lower bound
        of that minimum.

        The dual variables are multipliers of the planes, at least 0 and 1 in sum.  The bound holds
        for any multipliers that the quadratic program returns.
        """
        multipliers = self._multipliers(l2)
        params: Floats = -(multipliers @ self.gradients) / l2
        lower_bound = float(multipliers @ self.offsets) - l2 / 2 * float(params @ params)
        self._drop_old(multipliers)
        return params, lower_bound

    def _multipliers(self, l2: float) -> Floats:
        """Return the multipliers of: minimize l2 / 2 * |w|^2 + slack, slack above all planes.

        The primal is solved, not the dual: with a large C the linear part of the dual would be lost
        in rounding.  The units of the parameters are such that they and the planes are about 1.
        """
        if len(self) == 1:
            return np.ones(1)
        import piqp

        steepest = float(np.sqrt(np.diag(self._gram).max())) or 1.0
        highest = float(np.abs(self.offsets).max()) or 1.0
        unit = min(highest / steepest, steepest / l2)
        scale = max(l2 * unit**2, steepest * unit, 1e-300)
        # Only the differences of the planes matter; those far below the highest take no part.
        offsets = (self.offsets - self.offsets.max()) / scale
        active = np.flatnonzero(offsets > MIN_OFFSET)
        gradients = self._reduced_gradients(active)
        count, size = gradients.shape
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
        solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-10
        P = np.zeros((size + 1, size + 1), order="F")
        P[range(size), range(size)] = l2 * unit**2 / scale
        c = np.zeros(size + 1)
        c[size] = 1.0
        G = np.empty((count, size + 1), order="F")
        G[:, :size] = gradients * (unit / scale)
        G[:, size] = -1.0
        solver.setup(P=P, c=c, G=G, h_u=-offsets[active])
        solver.solve()
        multipliers = np.zeros(len(self))
        multipliers[active] = np.maximum(np.nan_to_num(solver.result.z_u), 0.0)
        total = float(multipliers.sum())
        if total == 0:
            multipliers[active], total = 1.0, float(count)
        return multipliers / total

    def _reduced_gradients(self, active: Ints) -> Floats:
        """Return the gradients in as few coordinates as they span: there may be fewer planes than
        features."""
        gradients = self.gradients[active]
        if gradients.shape[1] <= len(active):
            return gradients
        triangle: Floats = np.asarray(np.linalg.qr(gradients.T, mode="r"), np.float64)
        return triangle.T

    def _drop_old(self, multipliers: Floats) -> None:
        self._age = np.where(multipliers > 1e-9, 0, self._age + 1)
        keep = self._age < MAX_AGE
        keep[0] = keep[-1] = True
        if not keep.all():
            self.gradients, self.offsets = self.gradients[keep], self.offsets[keep]
            self._gram, self._age = self._gram[np.ix_(keep, keep)], self._age[keep]


LOOKAHEAD = 0.05  # step from the best point toward the model's minimum, where a plane is added too
MAX_LINE_SEARCH_STEPS = 10
CURVATURE_CONDITION = 0.02  # fraction to which a line search reduces the derivative
MIN_PROGRESS = 0.02  # gap relative to the decrease from 0: a small C hardly changes the objective
MIN_PENALTY = (
    1e-10  # a weaker penalty, relative to the loss, would be lost in rounding: it is raised
)
MAX_STALLED = 30  # iterations without progress, after which rounding prevents more


@dataclass(frozen=True)
class CuttingPlane:
    """One-slack cutting planes, for convex losses of linear scores; the default for hinges.

    Minimizes the penalty plus a piecewise linear model below the loss, to which every iteration
    adds planes.  A line search toward the minimum of the model finds the next best point, and the
    next planes are added there and a little ahead.  The model is a lower bound, so that the
    optimality gap is known.

    Parameters
    ----------
    tol : float, default 1e-3
        Stop when the optimality gap is at most this fraction of the objective; above 0.
    max_iter : int, default 1000
        The number of iterations at most, at least 1.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    DataError
        On fitting, if there is no penalty.

    References
    ----------
    Joachims, Finley and Yu (2009), Cutting-plane training of structural SVMs, algorithm 3; with the
    line search of Franc and Sonnenburg (2008), Optimized cutting plane algorithm for support vector
    machines.

    Examples
    --------
    >>> import firstpage as fp
    >>> ranker = fp.RankSVM(solver="cutting plane(tol=1e-4)")
    """

    tol: float = 1e-3
    max_iter: int = 1000
    required_traits: ClassVar[tuple[str, ...]] = ("convex",)
    linear: ClassVar[bool] = True
    selects_iteration: ClassVar[bool] = False
    batch: ClassVar[None] = None
    resumable: ClassVar[bool] = True
    rate_grid: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        check_number(self, "tol", above=0)
        check_number(self, "max_iter", 1, integer=True)

    def minimize(
        self,
        objective: ScoredObjective[P],
        start: Floats,
        progress: ProgressCallback = never_stop,
        resume: Resume = FRESH_START,
    ) -> SolverResult:
        """Minimize the objective from `start`; see `Solver.minimize`.

        It resumes from the state of a checkpoint, or from the planes and the best point of a fit
        with another penalty (`Resume.warm_start`).
        """
        check_penalty(objective)
        space = objective.score_space()
        planes = Planes(objective.size)
        if (state := resume.state) is not None:
            planes = Planes.from_arrays(state["gradients"], state["offsets"])
            start = state["params"]
        elif resume.warm_start is not None:
            planes, start = resume.warm_start
        zero = np.zeros(objective.size)
        origin = best = space.evaluate(zero)
        norm = _add_plane(planes, space, best)
        space.l2 = max(space.l2, MIN_PENALTY * norm**2 / origin.loss if origin.loss > 0 else 0.0)
        if start.any():
            initial = space.evaluate(np.array(start, np.float64))
            _add_plane(planes, space, initial)
            best = initial if initial.value < best.value else best
        lower_bound, stalled = 0.0, 0
        for iteration in range(1, self.max_iter + 1):
            params, bound = planes.minimize_model(space.l2)
            line = space.line(best, params)
            before, model_minimum = (best.value, lower_bound), line.end
            lower_bound = max(lower_bound, bound)
            best = _line_search(line, space.l2)
            if resume.report_state is not None:
                resume.report_state(partial(_state, planes, best))
            stopped = progress(iteration, best.value, best.params)
            if stopped or self._converged(best.value, lower_bound, origin.value):
                break
            moved = max(before[0] - best.value, lower_bound - before[1])
            stalled = 0 if moved > 1e-10 * origin.value else stalled + 1
            if stalled >= MAX_STALLED:
                break
            # A plane at the minimum of the model always cuts it off.
            _add_plane(planes, space, best if best.value < before[0] else model_minimum)
            _add_plane(planes, space, space.interpolate(best, model_minimum, LOOKAHEAD))
        return self._result(space, best, lower_bound, iteration, stopped, planes)

    def _converged(self, value: float, lower_bound: float, origin: float) -> bool:
        gap = value - lower_bound
        small = gap <= self.tol * value and gap <= MIN_PROGRESS * (origin - lower_bound)
        return small or gap <= 1e-9 * origin

    def _result(
        self,
        space: LinearScoreSpace[P],
        best: P,
        lower_bound: float,
        iteration: int,
        stopped: bool,
        planes: Planes,
    ) -> SolverResult:
        """Return the result at the best point, evaluated once more from its own scores."""
        last = space.evaluate(best.params)
        missed = space.loss_error_bound()
        value = last.value + missed
        gap = relative_gap(value, lower_bound)
        converged = last.value - lower_bound <= 1.1 * self.tol * last.value or value <= 0.0
        reason = f"within {100 * gap:.2g} % of the optimum"
        exhausted = not converged and not stopped
        return SolverResult(
            best.params,
            last.value,
            iteration,
            "stopped early" if stopped else reason,
            converged and not stopped,
            exhausted,
            missed,
            gap,
            l2=space.l2,
            warm_start=(planes, best.params),
        )


def _state(planes: Planes, best: ParameterPoint) -> SolverState:
    return {"params": best.params, "gradients": planes.gradients, "offsets": planes.offsets}


def _add_plane(planes: Planes, space: LinearScoreSpace[P], point: P) -> float:
    """Add the plane that touches the loss at a point; return the norm of its gradient."""
    gradient, loss = space.plane(point)
    planes.add(gradient, loss - float(gradient @ point.params))
    return float(np.linalg.norm(gradient))


def _line_search(line: Line[P], l2: float) -> P:
    """Return the best point on the line from the best point so far through the model's minimum.

    The derivative along the line is nondecreasing; false position finds where it is about 0.
    """
    start, end = line.start, line.end
    direction = end.params - start.params

    def with_penalty(point: ParameterPoint, loss_derivative: float) -> float:
        return loss_derivative + l2 * float(point.params @ direction)

    low, high, best = 0.0, 1.0, start
    below = with_penalty(start, line.derivatives[0])
    above = with_penalty(end, line.derivatives[1])
    steepest = max(abs(below), abs(above))
    if end.value <= best.value * (1 + 1e-14):  # with a tiny C they differ only by rounding
        best = end
    for iteration in range(MAX_LINE_SEARCH_STEPS):
        if above < 0:  # the objective still decreases at the upper end
            low, below, high = high, above, 2 * high
            step = high
        elif high - low < 1e-4 * high:
            break
        elif below < 0 and iteration % 3 != 2:
            step = low - below * (high - low) / (above - below)
            step = min(max(step, low + 0.02 * (high - low)), high - 0.02 * (high - low))
        else:
            step = (low + high) / 2
        point, loss_derivative = line.evaluate(step)
        derivative = with_penalty(point, loss_derivative)
        if point.value < best.value:
            best = point
        if abs(derivative) <= CURVATURE_CONDITION * steepest:
            break
        if derivative > 0 or step == high:
            high, above = step, derivative
        else:
            low, below = step, derivative
    return best
