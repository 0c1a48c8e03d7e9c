"""Plain gradient descent, stochastic descent and Adam: the papers' protocols, and for networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.registry import check_number
from firstpage.solvers.solver import (
    NOTHING,
    BatchObjective,
    Objective,
    Resume,
    SolverResult,
    Watch,
    never,
)
from firstpage.types import Floats

RATES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class GradientDescent:
    """params -= rate * slope, over all queries at once."""

    rate: float = 0.1
    max_iter: int = 500
    tol: float = 0.0
    needs: ClassVar[tuple[str, ...]] = ()
    linear: ClassVar[bool] = False
    path: ClassVar[bool] = True
    batch: ClassVar[None] = None
    resumable: ClassVar[bool] = False
    rates: ClassVar[tuple[float, ...]] = RATES

    def __post_init__(self) -> None:
        check_number(self, "rate", above=0)
        check_number(self, "max_iter", 1, integer=True)
        check_number(self, "tol", 0)

    def minimize(
        self, objective: Objective, start: Floats, watch: Watch = never, resume: Resume = NOTHING
    ) -> SolverResult:
        params = np.array(start, np.float64)
        before, slope = objective(params)
        remaining = self.max_iter - resume.iterations
        for iteration in range(1, remaining + 1):
            params = params - self.rate * slope
            value, slope = objective(params)
            if not np.isfinite(value):
                return SolverResult(params, value, iteration, "diverged: lower the rate", False)
            if watch(iteration, value, params):
                return SolverResult(params, value, iteration, "stopped early", False)
            if self.tol > 0 and abs(before - value) <= self.tol * max(abs(before), 1.0):
                return SolverResult(params, value, iteration, "the objective stands still", True)
            before = value
        return SolverResult(params, before, remaining, "all iterations done", False)


Rule = Callable[[Floats, Floats, int], Floats]
"""(parameters, slope, epoch) -> new parameters."""


def _epochs(
    objective: BatchObjective, start: Floats, watch: Watch, count: int, seed: int, rule: Rule
) -> SolverResult:
    """Go through the blocks of the objective, in an order that the seed shuffles every epoch."""
    params = np.array(start, np.float64)
    rng = np.random.default_rng(seed)
    value = np.inf
    for epoch in range(1, count + 1):
        value = 0.0
        for block in rng.permutation(len(objective.bounds)).tolist():
            loss, slope = objective.block(block, params)
            params = rule(params, slope, epoch)
            value += loss / len(objective.bounds)
        if not np.isfinite(value):
            return SolverResult(params, value, epoch, "diverged: lower the rate", False)
        if watch(epoch, value, params):
            return SolverResult(params, value, epoch, "stopped early", False)
    return SolverResult(params, value, count, "all epochs done", False)


@dataclass(frozen=True)
class SGD:
    """params -= rate * slope of `batch` queries.  An iteration is an epoch.

    The rate falls as rate / (1 + decay * epoch).
    """

    rate: float = 0.01
    max_iter: int = 100
    batch: int = 1
    decay: float = 0.0
    seed: int = 0
    needs: ClassVar[tuple[str, ...]] = ()
    linear: ClassVar[bool] = False
    path: ClassVar[bool] = True
    resumable: ClassVar[bool] = False
    tol: ClassVar[float] = 0.0
    rates: ClassVar[tuple[float, ...]] = RATES

    def __post_init__(self) -> None:
        check_number(self, "rate", above=0)
        check_number(self, "max_iter", 1, integer=True)
        check_number(self, "batch", 1, integer=True)
        check_number(self, "decay", 0)
        check_number(self, "seed", 0, integer=True)

    def minimize(
        self, objective: BatchObjective, start: Floats, watch: Watch = never,
        resume: Resume = NOTHING,
    ) -> SolverResult:  # fmt: skip
        def rule(params: Floats, slope: Floats, epoch: int) -> Floats:
            return params - self.rate / (1 + self.decay * (epoch - 1)) * slope

        return _epochs(objective, start, watch, self.max_iter, self.seed, rule)


@dataclass(frozen=True)
class Adam:
    """Stochastic descent with a rate for every parameter (Kingma and Ba); for networks."""

    rate: float = 0.001
    max_iter: int = 100
    batch: int = 32
    seed: int = 0
    needs: ClassVar[tuple[str, ...]] = ()
    linear: ClassVar[bool] = False
    path: ClassVar[bool] = True
    resumable: ClassVar[bool] = False
    tol: ClassVar[float] = 0.0
    rates: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        check_number(self, "rate", above=0)
        check_number(self, "max_iter", 1, integer=True)
        check_number(self, "batch", 1, integer=True)
        check_number(self, "seed", 0, integer=True)

    def minimize(
        self, objective: BatchObjective, start: Floats, watch: Watch = never,
        resume: Resume = NOTHING,
    ) -> SolverResult:  # fmt: skip
        mean, square = np.zeros(len(start)), np.zeros(len(start))
        steps = 0

        def rule(params: Floats, slope: Floats, epoch: int) -> Floats:
            nonlocal steps, mean, square
            steps += 1
            mean = mean + 0.1 * (slope - mean)
            square = square + 0.001 * (slope * slope - square)
            spread = np.sqrt(square / (1 - 0.999**steps)) + 1e-8
            found: Floats = params - self.rate * mean / (1 - 0.9**steps) / spread
            return found

        return _epochs(objective, start, watch, self.max_iter, self.seed, rule)
