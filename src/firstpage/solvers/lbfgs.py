"""L-BFGS (SciPy's) in preconditioned coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from firstpage.registry import check_number
from firstpage.solvers.solver import (
    FRESH_START,
    Objective,
    ProgressCallback,
    Resume,
    SolverResult,
    SolverState,
    never_stop,
)
from firstpage.types import Floats

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


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

    def scaled(self, factor: float) -> Coordinates:
        """Return coordinates whose units are longer by this factor."""
        T = np.ones(self.size) if self.T is None else self.T
        return Coordinates(T * factor, self.size)


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
        from scipy.optimize import minimize

        first_value, first_gradient = objective(start)
        T = Coordinates(objective.preconditioner(), len(start))
        # SciPy's first step has length 1; with these units it is Newton's step.
        T = T.scaled(float(np.linalg.norm(T.gradient_from_params(first_gradient))) or 1.0)
        scale = abs(first_value) or 1.0  # SciPy's tolerances assume values of about 1
        state: SolverState = {"iteration": 0, "stopped": False, "fresh": True}

        def value_gradient(u: Floats) -> tuple[float, Floats]:
            if state.pop("fresh", False):
                value, gradient = first_value, first_gradient
            else:
                value, gradient = objective(T.to_params(u))
            return value / scale, T.gradient_from_params(gradient) / scale

        def step(intermediate_result: OptimizeResult) -> None:
            state["iteration"] += 1
            value = float(intermediate_result.fun) * scale
            if progress(state["iteration"], value, T.to_params(intermediate_result.x)):
                state["stopped"] = True
                raise StopIteration

        first = T.from_params(start) if start.any() else start
        tol = max(self.tol, objective.relative_error)
        steepest = float(np.abs(T.gradient_from_params(first_gradient)).max(initial=0.0))
        options: Any = {
            "maxiter": self.max_iter,
            "ftol": tol,
            "gtol": 1e-9 * min(1.0, steepest / scale),
            "maxcor": 20,
        }
        result = minimize(
            value_gradient, first, jac=True, method="L-BFGS-B", callback=step, options=options
        )
        reason = "stopped early" if state["stopped"] else str(result.message)
        converged = bool(result.success) and not state["stopped"]
        exhausted = result.status == 1 and not state["stopped"]
        value = float(result.fun) * scale
        return SolverResult(
            T.to_params(result.x), value, int(result.nit), reason, converged, exhausted
        )
