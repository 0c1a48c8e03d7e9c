"""What solvers and objectives are to each other, and what a solver reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from firstpage.types import Floats

Watch = Callable[[int, float, Floats], bool]
"""(iteration, value of the objective, parameters) -> whether to stop."""

State = dict[str, Any]
"""Where a solver stands, as checkpoints store it."""


def never(iteration: int, value: float, params: Floats) -> bool:
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
    def noise(self) -> float:
        """The relative error of values, from rounding."""
        ...

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        """Return the value and the gradient over all queries."""
        ...

    def score_range(self, params: Floats) -> tuple[float, float]:
        """Return the widest range of scores in a query, and the greatest absolute score."""
        ...

    def conditioner(self) -> Floats | None:
        """Return coordinates in which the problem is about round (see `Coordinates`)."""
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
    """What a solver can go on from, and where it reports how it stands.

    memory      of an earlier fit on the same data: `SolverResult.memory`
    iterations  of this fit that were done before
    state       of a checkpoint of this fit
    report      takes a function that returns the state, called when a checkpoint is written
    """

    memory: Any = None
    iterations: int = 0
    state: State | None = None
    report: Callable[[Callable[[], State]], None] | None = None


NOTHING = Resume()


class Solver(Protocol[O_contra]):
    """Minimizes an objective.

    needs      traits of the loss that it relies on
    linear     whether scores must be linear in the parameters
    path       whether to choose among its iterations by validation
    batch      queries per block; None: it needs no blocks
    resumable  whether its state is more than parameters and a number of iterations
    tol        the relative tolerance
    rates      step sizes that papers try; none: there is nothing to tune
    """

    @property
    def needs(self) -> tuple[str, ...]: ...
    @property
    def linear(self) -> bool: ...
    @property
    def path(self) -> bool: ...
    @property
    def batch(self) -> int | None: ...
    @property
    def resumable(self) -> bool: ...
    @property
    def tol(self) -> float: ...
    @property
    def rates(self) -> tuple[float, ...]: ...

    def minimize(
        self, objective: O_contra, start: Floats, watch: Watch = never, resume: Resume = NOTHING
    ) -> SolverResult: ...


AnySolver = Solver[Any]


@dataclass(frozen=True, eq=False)
class SolverResult:
    """Where a solver ended, and why."""

    params: Floats
    value: float
    iterations: int
    reason: str
    converged: bool
    exhausted: bool = False  # stopped by the number of iterations, short of the optimum
    gap: float | None = None  # certified: none of the same problem are below (1 - gap) * value
    l2: float | None = None  # the penalty that was used, if not the one asked for
    degenerate: bool = False  # the optimum is at 0, and the direction of params is chance
    memory: Any = None  # what the same solver may start from on the same data
