"""The interfaces of solvers and objectives, and the result of a solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from firstpage.core import Floats

ProgressCallback = Callable[[int, float, Floats], bool]
"""(iteration, value of the objective, parameters) -> whether to stop."""

LossWithErrors = tuple[float, Floats, float, Floats]
"""A mean loss, its gradient, and upper bounds of the errors of both."""

SolverState = dict[str, Any]
"""The state of a solver, as checkpoints store it."""


def never_stop(iteration: int, value: float, params: Floats) -> bool:
    """Ignore the progress of a solver."""
    return False


class Objective(Protocol):
    """A function of parameters: the mean loss over queries plus l2 / 2 * |params|^2."""

    @property
    def l2(self) -> float: ...

    @property
    def size(self) -> int:
        """The number of parameters."""
        ...

    @property
    def relative_error(self) -> float:
        """The relative error of values, from rounding."""
        ...

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        """Return the value and the gradient over all queries, each time in a new array."""
        ...

    def evaluate_with_errors(self, params: Floats) -> LossWithErrors:
        """Return the mean loss and its gradient in float64, with bounds of their rounding errors.

        Only for smooth losses of linear scores.
        """
        ...

    def score_range(self, params: Floats) -> tuple[float, float]:
        """Return the widest range of scores in a query, and the greatest absolute score."""
        ...

    def preconditioner(self) -> Floats | None:
        """Return coordinates in which the Hessian is about the identity (see `Coordinates`)."""
        ...

    def skip_draws(self, evaluations: int) -> None:
        """Continue as after this many more evaluations, where the loss draws at random."""
        ...


class BatchObjective(Objective, Protocol):
    """An objective that can be estimated from a block of queries."""

    @property
    def bounds(self) -> Sequence[tuple[int, int]]: ...

    def block(self, number: int, params: Floats) -> tuple[float, Floats]:
        """Return an estimate from one block; the mean over blocks is the objective."""
        ...


O_contra = TypeVar("O_contra", contravariant=True)


@dataclass(frozen=True, eq=False)
class Resume:
    """What a solver can resume from, and where it reports its state."""

    warm_start: Any = None  # of an earlier fit on the same data: `SolverResult.warm_start`
    iterations: int = 0  # of this fit that are already done
    state: SolverState | None = None  # of a checkpoint of this fit
    # Takes a function that returns the state, which is called when a checkpoint is written.
    report_state: Callable[[Callable[[], SolverState]], None] | None = None


FRESH_START = Resume()


class Solver(Protocol[O_contra]):
    """A method that minimizes an objective.

    Attributes
    ----------
    required_traits : tuple of str
        Traits of the loss that it relies on.
    linear : bool
        Whether scores must be linear in the parameters.
    selects_iteration : bool
        Whether validation data should choose among its iterations.
    batch : int or None
        The number of queries per block; None: it needs no blocks.
    resumable : bool
        Whether its state is more than the parameters and a number of iterations.
    tol : float
        The relative tolerance.
    rate_grid : tuple of float
        Learning rates to choose from in tuning; empty if there is nothing to tune.
    """

    @property
    def required_traits(self) -> tuple[str, ...]: ...
    @property
    def linear(self) -> bool: ...
    @property
    def selects_iteration(self) -> bool: ...
    @property
    def batch(self) -> int | None: ...
    @property
    def resumable(self) -> bool: ...
    @property
    def tol(self) -> float: ...
    @property
    def rate_grid(self) -> tuple[float, ...]: ...

    def minimize(
        self,
        objective: O_contra,
        start: Floats,
        progress: ProgressCallback = never_stop,
        resume: Resume = FRESH_START,
    ) -> SolverResult:
        """Minimize the objective from the parameters `start`."""
        ...


AnySolver = Solver[Any]


@dataclass(frozen=True, eq=False)
class SolverResult:
    """The final parameters of a solver, and why it stopped."""

    params: Floats
    value: float
    iterations: int
    reason: str
    converged: bool
    exhausted: bool = False  # stopped at the maximum number of iterations, before the optimum
    missed: float = 0.0  # by how much the value may be too small: a search may miss a maximum
    gap: float | None = None  # certified: the minimum is at least (1 - gap) * (value + missed)
    l2: float | None = None  # the penalty that was used, if not the one of the objective
    degenerate: bool = False  # the optimum is at 0, and the direction of params is arbitrary
    warm_start: Any = None  # what the same solver can start from on the same data
