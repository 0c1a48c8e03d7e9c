"""One-slack cutting planes with a line search, for losses that are convex and have corners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firstpage.errors import DataError
from firstpage.names import number
from firstpage.solvers.objective import Objective
from firstpage.solvers.planes import Planes
from firstpage.solvers.score_space import Point, ScoreSpace
from firstpage.solvers.watch import Found, Watch, never
from firstpage.types import Floats

AHEAD = 0.1  # planes touch the loss so far from the best point towards the model's least
LOOKS = 8  # of a line search at most
FLAT = 0.1  # a slope along the line that has fallen to this share is good enough
RISE = 0.02  # of what is below the value at 0: with a small C the objective hardly moves
STILL = 60  # iterations without any progress: the numbers have no more to give


@dataclass(frozen=True)
class CuttingPlane:
    """The least of a penalty plus planes below the loss, a plane more in every iteration.

    Joachims, Finley and Yu (2009), with the line search of Franc and Sonnenburg (2008): what is
    kept is the best point on the way to the model's least, not that point itself, and the next
    plane touches near there.  The model is a bound below, so it is known how far the end is.

    tol       stop when no parameters can be better by more than this share of the objective
    max_iter  iterations at most
    """

    tol: float = 1e-3
    max_iter: int = 1000
    needs: ClassVar[tuple[str, ...]] = ("convex",)
    linear: ClassVar[bool] = True
    path: ClassVar[bool] = False
    batch: ClassVar[None] = None

    def __post_init__(self) -> None:
        number(self, "tol", above=0)
        number(self, "max_iter", 1, whole=True)

    def minimize(
        self, objective: Objective, start: Floats, watch: Watch = never, memory: Any = None
    ) -> Found:
        _check(objective)
        space = ScoreSpace(objective)
        planes = memory if isinstance(memory, Planes) else Planes(objective.size)
        nothing = np.zeros(objective.size)
        origin = best = space.at(nothing, space.scores(nothing))
        _cut(planes, space, best)
        if start.any():
            best = space.at(np.array(start, np.float64), space.scores(start))
            _cut(planes, space, best)
        below, still = 0.0, 0
        for iteration in range(1, self.max_iter + 1):
            params, bound = planes.least(objective.l2)
            least = space.at(params, space.scores(params))
            before = best.value, below
            below = max(below, bound)
            best, ahead = _search(space, best, least, objective.l2)
            stopped = watch(iteration, best.value, best.params)
            if stopped or self._done(best.value, below, origin.value):
                break
            still = 0 if best.value < before[0] or below > before[1] else still + 1
            if still >= STILL:
                break
            _cut(planes, space, space.between(best, least, ahead))
        return self._found(space, best, below, iteration, stopped, planes)

    def _done(self, value: float, below: float, origin: float) -> bool:
        gap = value - below
        near = gap <= self.tol * value and gap <= RISE * (origin - below)
        return near or gap <= 1e-9 * origin

    def _found(
        self, space: ScoreSpace, best: Point, below: float, iteration: int, stopped: bool,
        planes: Planes,
    ) -> Found:  # fmt: skip
        """The best point looked at once more, by its own scores."""
        last = space.at(best.params, space.scores(best.params))
        value = last.value + space.unsure()
        gap = max(value - below, 0.0) / value if value > 0 else 0.0
        converged = last.value - below <= 1.1 * self.tol * last.value or value <= 0.0
        reason = f"within {100 * gap:.2g} % of the optimum"
        exhausted = not converged and not stopped
        return Found(
            best.params, last.value, iteration, "stopped early" if stopped else reason,
            converged and not stopped, exhausted, gap, memory=planes,
        )  # fmt: skip


def _check(objective: Objective) -> None:
    if objective.l2 <= 0:
        raise DataError("cutting planes need a penalty: C must be finite, or l2 above 0.")


def _cut(planes: Planes, space: ScoreSpace, point: Point) -> None:
    """The plane that touches the loss at the point looked at last."""
    slope = space.slope()
    planes.add(slope, point.loss - float(slope @ point.params))


def _search(space: ScoreSpace, best: Point, least: Point, l2: float) -> tuple[Point, float]:
    """The best point on the line from `best` through `least`, which was looked at last.

    Also where on the line from there to `least` the next plane shall touch.
    The slope along the line only rises: it is driven to about 0 by false position.
    """
    way, scores = least.params - best.params, least.scores - best.scores

    def along(point: Point) -> float:
        return float(space.grad @ scores) + l2 * float(point.params @ way)

    low, low_slope = 0.0, -np.inf
    high, high_slope = 1.0, along(least)
    found, at = (least, 1.0) if least.value < best.value else (best, 0.0)
    first = abs(high_slope)
    while high_slope < 0 and high < 8.0:  # the way goes on downward
        low, low_slope, high = high, high_slope, 2 * high
        point = space.between(best, least, high)
        high_slope = along(point)
        if point.value < found.value:
            found, at = point, high
    for look in range(LOOKS):
        if high_slope <= 0 or high - low < 1e-3 * high:
            break
        if np.isfinite(low_slope) and look % 3 != 2:
            step = low - low_slope * (high - low) / (high_slope - low_slope)
            step = min(max(step, low + 0.05 * (high - low)), high - 0.05 * (high - low))
        else:
            step = (low + high) / 2
        point = space.between(best, least, step)
        slope = along(point)
        if point.value < found.value:
            found, at = point, step
        if slope > 0:
            high, high_slope = step, slope
        else:
            low, low_slope = step, slope
        if abs(slope) <= FLAT * first and look > 0:
            break
    return found, AHEAD if at < 1.0 else 0.0
