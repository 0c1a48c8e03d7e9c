"""L-BFGS in preconditioned coordinates.

SciPy has it too, but to load that takes longer than most fits, and its line search compares values
alone: near the optimum they differ by rounding errors, and it fails.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np

from firstpage.registry import check_number
from firstpage.solvers.solver import (
    FRESH_START,
    Objective,
    ProgressCallback,
    Resume,
    SolverResult,
    never_stop,
)
from firstpage.types import Floats

MEMORY = 20  # steps from which the curvature is estimated
MAX_TRIALS = 20  # of a line search
SUFFICIENT_DECREASE = 1e-3  # of the decrease that the slope predicts
SUFFICIENT_SLOPE = 0.9  # of the slope at the start of a line: a flatter point ends the search
FLAT = 1e-9  # of the gradient at the start of a fit
FLOAT_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates u of parameters T u.

    T is a matrix, a vector (the diagonal of one), or None for the parameters themselves.
    """

    T: Floats | None
    size: int

    def to_params(self, u: Floats) -> Floats:
        """Return the parameters of coordinates."""
        if self.T is None:
            return u
        params: Floats = self.T * u if self.T.ndim == 1 else self.T @ u
        return params

    def gradient_from_params(self, gradient: Floats) -> Floats:
        """Return the gradient by coordinates of a gradient by parameters."""
        if self.T is None:
            return gradient
        transformed: Floats = self.T * gradient if self.T.ndim == 1 else self.T.T @ gradient
        return transformed

    def from_params(self, params: Floats) -> Floats:
        """Return the coordinates of parameters."""
        if self.T is None:
            return params
        if self.T.ndim == 1:
            return params / self.T
        return np.asarray(np.linalg.solve(self.T, params), np.float64)


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS over all queries, for smooth losses; the default solver.

    The problem is preconditioned by the covariance of the features inside queries.  Losses of
    random samples are refused, since line searches compare values.

    Parameters
    ----------
    max_iter : int, default 200
        The number of iterations at most, at least 1.
    tol : float, default 1e-12
        Stop when an iteration lowers the objective by less than this fraction; never less than the
        type of the features can resolve (1e-8 for float32).

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Liu and Nocedal (1989), On the limited memory BFGS method for large scale optimization.

    Examples
    --------
    >>> import firstpage as fp
    >>> ranker = fp.ListMLE(solver="lbfgs(max_iter=500)")
    """

    max_iter: int = 200
    tol: float = 1e-12
    required_traits: ClassVar[tuple[str, ...]] = ("smooth", "deterministic")
    linear: ClassVar[bool] = False
    selects_iteration: ClassVar[bool] = False
    batch: ClassVar[None] = None
    resumable: ClassVar[bool] = False
    rate_grid: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        check_number(self, "max_iter", 1, integer=True)
        check_number(self, "tol", 0)

    def minimize(
        self,
        objective: Objective,
        start: Floats,
        progress: ProgressCallback = never_stop,
        resume: Resume = FRESH_START,
    ) -> SolverResult:
        """Minimize the objective from `start`; see `Solver.minimize`.

        `resume` is not used: a fit is resumed from its parameters.
        """
        T = Coordinates(objective.preconditioner(), len(start))

        def evaluate(u: Floats) -> tuple[float, Floats]:
            value, gradient = objective(T.to_params(u))
            return value, T.gradient_from_params(gradient)

        value, gradient = objective(start)
        gradient = T.gradient_from_params(gradient)
        if not (isfinite(value) and isfinite(gradient @ gradient)):
            return SolverResult(start, np.nan, 0, "the objective overflows", converged=False)
        u = T.from_params(start) if start.any() else start
        scale = abs(value) or 1.0
        tol = max(self.tol, objective.relative_error)
        noise = max(objective.relative_error, 4 * FLOAT_EPS) * scale
        flat = FLAT * _largest(gradient)
        memory, iteration = _Memory(), 0
        reason, converged = ("the gradient is zero", True) if not flat else ("", False)
        while not reason and iteration < self.max_iter:
            found = _search(evaluate, u, memory.direction(gradient), value, gradient, noise)
            if found is None and memory.steps:  # the curvature may be wrong
                memory = _Memory()
                found = _search(evaluate, u, -gradient, value, gradient, noise)
            if found is None:
                reason = "no step lowers the objective"
                converged = float(gradient @ gradient) <= max(100.0 * noise, tol * scale)
                break
            iteration += 1
            memory.add(found.x - u, found.gradient - gradient)
            decrease, u, value, gradient = value - found.value, found.x, found.value, found.gradient
            if progress(iteration, value, T.to_params(u)):
                reason = "stopped early"
            elif decrease <= tol * max(scale, abs(value)):
                reason, converged = "the objective decreases by less than the tolerance", True
            elif _largest(gradient) <= flat:
                reason, converged = "the gradient is nearly zero", True
        exhausted = not reason
        reason = reason or "the number of iterations was reached"
        return SolverResult(T.to_params(u), value, iteration, reason, converged, exhausted)


def _largest(gradient: Floats) -> float:
    return float(np.abs(gradient).max(initial=0.0))


class _Memory:
    """The curvature along the latest steps."""

    def __init__(self) -> None:
        self.steps: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)

    def add(self, step: Floats, change: Floats) -> None:
        """Learn how a step changed the gradient, unless that is rounding error."""
        product = float(step @ change)
        if product > FLOAT_EPS * float(change @ change):
            self.steps.append((step, change, product))

    def direction(self, gradient: Floats) -> Floats:
        """Return Newton's step for this gradient, by the two loops of Liu and Nocedal."""
        q = -gradient
        factors = []
        for step, change, product in reversed(self.steps):
            factor = float(step @ q) / product
            factors.append(factor)
            q -= factor * change
        if self.steps:
            _, change, product = self.steps[-1]
            q *= product / float(change @ change)
        for (step, change, product), factor in zip(self.steps, reversed(factors), strict=True):
            q += (factor - float(change @ q) / product) * step
        return q


@dataclass(frozen=True, eq=False)
class _Trial:
    """A point of a line: its distance in steps, its value and its slope."""

    t: float
    value: float
    slope: float
    x: Floats
    gradient: Floats


def _search(
    evaluate: Callable[[Floats], tuple[float, Floats]], x: Floats, direction: Floats, value: float,
    gradient: Floats, noise: float,
) -> _Trial | None:  # fmt: skip
    """Return a point on the line with a lower value and a flatter slope, or None.

    Wolfe's conditions, where values differ by more than `noise`; else the conditions of Hager and
    Zhang (2005), which compare slopes.
    """
    slope = float(gradient @ direction)
    if not slope < 0.0:
        return None
    low, high = _Trial(0.0, value, slope, x, gradient), None
    t = 1.0
    for _ in range(MAX_TRIALS):
        point = x + t * direction
        trial_value, trial_gradient = evaluate(point)
        trial = _Trial(t, trial_value, float(trial_gradient @ direction), point, trial_gradient)
        finite = isfinite(trial.value) and isfinite(trial.slope)
        lower = finite and (
            trial.value <= value + SUFFICIENT_DECREASE * t * slope
            or (
                trial.value <= value + noise
                and trial.slope <= (2 * SUFFICIENT_DECREASE - 1) * slope
            )
        )
        if lower and abs(trial.slope) <= -SUFFICIENT_SLOPE * slope:
            return trial
        if lower and trial.slope < 0.0:
            earlier, low = low, trial
            if high is None:
                t = _extrapolated(earlier, low)
                continue
        else:
            high = trial
        t = _between(low, high, noise)
    return low if low.value < value - noise else None


def _extrapolated(earlier: _Trial, latest: _Trial) -> float:
    """Return where the slope would be zero if it went on as between the points, within limits."""
    width = latest.t - earlier.t
    bend = latest.slope - earlier.slope
    zero = latest.t - latest.slope * width / bend if bend > 0.0 else np.inf
    return float(np.clip(zero, latest.t + 1.1 * width, latest.t + 4.0 * width))


def _between(low: _Trial, high: _Trial, noise: float) -> float:
    """Return the minimum of the cubic through both points, or of the parabola with their slopes."""
    width = high.t - low.t
    if not (isfinite(high.value) and isfinite(high.slope)):
        return low.t + 0.1 * width
    rise = high.value - low.value
    bend = low.slope + high.slope - 3.0 * rise / width
    root = float(np.sqrt(max(bend * bend - low.slope * high.slope, 0.0)))
    if abs(rise) <= noise and high.slope > low.slope:
        fraction = low.slope / (low.slope - high.slope)
    else:
        total = high.slope - low.slope + 2.0 * root
        fraction = 1.0 - (high.slope + root - bend) / total if total else 0.5
    return low.t + width * float(np.clip(fraction, 0.05, 0.95) if isfinite(fraction) else 0.5)
