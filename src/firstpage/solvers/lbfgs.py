"""L-BFGS (SciPy's) in coordinates in which the problem is about round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from firstpage.registry import check_number
from firstpage.solvers.solver import NOTHING, Objective, Resume, SolverResult, State, Watch, never
from firstpage.types import Floats

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


@dataclass(frozen=True, eq=False)
class Coordinates:
    """T is a matrix, a vector (the diagonal of one), or None for the parameters themselves."""

    T: Floats | None
    size: int

    def outward(self, u: Floats) -> Floats:
        """Parameters of coordinates."""
        if self.T is None:
            return u
        found: Floats = self.T * u if self.T.ndim == 1 else self.T @ u
        return found

    def inward(self, slope: Floats) -> Floats:
        """A slope by parameters as one by coordinates."""
        if self.T is None:
            return slope
        found: Floats = self.T * slope if self.T.ndim == 1 else self.T.T @ slope
        return found

    def find(self, params: Floats) -> Floats:
        """Coordinates of parameters."""
        if self.T is None:
            return params
        if self.T.ndim == 1:
            return params / self.T
        return np.asarray(np.linalg.solve(self.T, params), np.float64)

    def times(self, factor: float) -> Coordinates:
        """With all units so many times longer."""
        T = np.ones(self.size) if self.T is None else self.T
        return Coordinates(T * factor, self.size)


@dataclass(frozen=True)
class LBFGS:
    """Quasi-Newton descent over all queries, for smooth losses; the default.

    max_iter  iterations at most
    tol       stop when the objective falls by less than this share in an iteration; never less
              than the features' type can tell (1e-8 for float32)
    """

    max_iter: int = 200
    tol: float = 1e-12
    needs: ClassVar[tuple[str, ...]] = ("smooth",)
    linear: ClassVar[bool] = False
    path: ClassVar[bool] = False
    batch: ClassVar[None] = None
    resumable: ClassVar[bool] = False
    rates: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        check_number(self, "max_iter", 1, integer=True)
        check_number(self, "tol", 0)

    def minimize(
        self, objective: Objective, start: Floats, watch: Watch = never, resume: Resume = NOTHING
    ) -> SolverResult:
        from scipy.optimize import minimize

        first_value, first_slope = objective(start)
        T = Coordinates(objective.conditioner(), len(start))
        # SciPy's first step has length 1: that shall be Newton's.
        T = T.times(float(np.linalg.norm(T.inward(first_slope))) or 1.0)
        scale = abs(first_value) or 1.0  # SciPy's tolerances are meant for values about 1
        state: State = {"iteration": 0, "stopped": False, "fresh": True}

        def value_slope(u: Floats) -> tuple[float, Floats]:
            if state.pop("fresh", False):
                value, slope = first_value, first_slope
            else:
                value, slope = objective(T.outward(u))
            return value / scale, T.inward(slope) / scale

        def step(intermediate_result: OptimizeResult) -> None:
            state["iteration"] += 1
            value = float(intermediate_result.fun) * scale
            if watch(state["iteration"], value, T.outward(intermediate_result.x)):
                state["stopped"] = True
                raise StopIteration

        first = T.find(start) if start.any() else start
        tol = max(self.tol, objective.noise)
        steepest = float(np.abs(T.inward(first_slope)).max(initial=0.0))
        options: Any = {
            "maxiter": self.max_iter,
            "ftol": tol,
            "gtol": 1e-9 * min(1.0, steepest / scale),
            "maxcor": 20,
        }
        done = minimize(
            value_slope, first, jac=True, method="L-BFGS-B", callback=step, options=options
        )
        reason = "stopped early" if state["stopped"] else str(done.message)
        converged = bool(done.success) and not state["stopped"]
        exhausted = done.status == 1 and not state["stopped"]
        value = float(done.fun) * scale
        return SolverResult(T.outward(done.x), value, int(done.nit), reason, converged, exhausted)
