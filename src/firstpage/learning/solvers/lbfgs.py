"""L-BFGS in preconditioned coordinates.

SciPy's takes .4 s to load, longer than most fits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np

from firstpage.core import Floats, check_number
from firstpage.learning.solvers.solver import (
    FRESH_START,
    Objective,
    ProgressCallback,
    Resume,
    SolverResult,
    never_stop,
)

MEMORY = 20  # steps from which the curvature is estimated
MAX_EVALUATIONS = 20  # of a line search
SUFFICIENT_DECREASE = 1e-3  # of the decrease that the derivative predicts (Armijo's condition)
SUFFICIENT_CURVATURE = 0.9  # of the derivative where the line search starts (Wolfe's condition)
GRADIENT_TOLERANCE = 1e-9  # of the gradient at the start of a fit
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
        rounding_error = max(objective.relative_error, 4 * FLOAT_EPS) * scale
        gradient_tol = GRADIENT_TOLERANCE * _max_norm(gradient)
        memory, iteration = _Memory(), 0
        reason, converged = ("", False) if gradient_tol else ("the gradient is zero", True)
        while not reason and iteration < self.max_iter:
            here = u, value, gradient
            point = _line_search(evaluate, *here, memory.direction(gradient), rounding_error)
            if point is None and memory.steps:  # the estimated curvature may be wrong
                memory = _Memory()
                point = _line_search(evaluate, *here, -gradient, rounding_error)
            if point is None:
                reason = "no step lowers the objective"
                converged = float(gradient @ gradient) <= max(100.0 * rounding_error, tol * scale)
                break
            iteration += 1
            memory.add(point.x - u, point.gradient - gradient)
            decrease, u, value, gradient = value - point.value, point.x, point.value, point.gradient
            if progress(iteration, value, T.to_params(u)):
                reason = "stopped early"
            elif decrease <= tol * max(scale, abs(value)):
                reason, converged = "the objective decreases by less than the tolerance", True
            elif _max_norm(gradient) <= gradient_tol:
                reason, converged = "the gradient is nearly zero", True
        exhausted = not reason
        reason = reason or "the number of iterations was reached"
        return SolverResult(T.to_params(u), value, iteration, reason, converged, exhausted)


def _max_norm(gradient: Floats) -> float:
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
class _LinePoint:
    """A point of a line search: its step size, value and directional derivative."""

    step_size: float
    value: float
    derivative: float
    x: Floats
    gradient: Floats

    @property
    def finite(self) -> bool:
        return isfinite(self.value) and isfinite(self.derivative)


def _line_search(
    evaluate: Callable[[Floats], tuple[float, Floats]],
    x: Floats,
    value: float,
    gradient: Floats,
    direction: Floats,
    rounding_error: float,
) -> _LinePoint | None:
    """Return a point that satisfies the strong Wolfe conditions, or None.

    Where values differ by rounding errors alone, the approximate conditions of Hager and Zhang
    (2005) decide, which compare derivatives.
    """
    initial = float(gradient @ direction)
    if not initial < 0.0:
        return None
    low, high = _LinePoint(0.0, value, initial, x, gradient), None
    step_size = 1.0
    for _ in range(MAX_EVALUATIONS):
        at = x + step_size * direction
        new_value, new_gradient = evaluate(at)
        point = _LinePoint(step_size, new_value, float(new_gradient @ direction), at, new_gradient)
        decreased = point.finite and (
            new_value <= value + SUFFICIENT_DECREASE * step_size * initial
            or (
                new_value <= value + rounding_error
                and point.derivative <= (2 * SUFFICIENT_DECREASE - 1) * initial
            )
        )
        if decreased and abs(point.derivative) <= -SUFFICIENT_CURVATURE * initial:
            return point
        if decreased and point.derivative < 0.0:
            previous, low = low, point
            if high is None:
                step_size = _extrapolate(previous, low)
                continue
        else:
            high = point
        step_size = _interpolate(low, high, rounding_error)
    return low if low.value < value - rounding_error else None


def _extrapolate(previous: _LinePoint, latest: _LinePoint) -> float:
    """Return the step size at which the secant of the derivatives is zero, within limits."""
    width = latest.step_size - previous.step_size
    change = latest.derivative - previous.derivative
    root = latest.step_size - latest.derivative * width / change if change > 0.0 else np.inf
    return float(np.clip(root, latest.step_size + 1.1 * width, latest.step_size + 4.0 * width))


def _interpolate(low: _LinePoint, high: _LinePoint, rounding_error: float) -> float:
    """Return the step size of the minimum of the cubic through two points.

    Where their values differ by rounding errors, it is the root of the secant of the derivatives.
    """
    width = high.step_size - low.step_size
    if not high.finite:
        return low.step_size + 0.1 * width
    increase = high.value - low.value
    if abs(increase) <= rounding_error and high.derivative > low.derivative:
        fraction = low.derivative / (low.derivative - high.derivative)
    else:
        d1 = low.derivative + high.derivative - 3.0 * increase / width
        d2 = float(np.sqrt(max(d1 * d1 - low.derivative * high.derivative, 0.0)))
        total = high.derivative - low.derivative + 2.0 * d2
        fraction = 1.0 - (high.derivative + d2 - d1) / total if total else 0.5
    fraction = float(np.clip(fraction, 0.05, 0.95)) if isfinite(fraction) else 0.5
    return low.step_size + width * fraction
