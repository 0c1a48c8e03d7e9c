"""What a solver reports to: after every iteration it hands over where it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firstpage.types import Floats

Watch = Callable[[int, float, Floats], bool]
"""(iteration, value of the objective, parameters) -> whether to stop."""


Keep = Callable[[Callable[[], dict[str, Any]]], None]
"""Takes what tells where a solver stands: the `memory` of one that goes on from there."""


def never(iteration: int, value: float, params: Floats) -> bool:
    return False


@dataclass(frozen=True, eq=False)
class Found:
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
