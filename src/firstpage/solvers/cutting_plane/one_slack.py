"""One-slack cutting planes with a line search, for losses that are convex and have corners."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from firstpage.errors import DataError
from firstpage.registry import check_number
from firstpage.solvers.score_space import Line, P, Point, ScoredObjective, Space, relative_gap
from firstpage.solvers.solver import NOTHING, Objective, Resume, SolverResult, State, Watch, never
from firstpage.types import Floats, Ints

DEEP = -1e6  # below the highest plane, in units of the slopes
OLD = 40  # solutions in which a plane took no part, after which it is let go


def check_penalty(objective: Objective) -> None:
    """Without a penalty the model under planes has no least point."""
    if objective.l2 <= 0:
        raise DataError("cutting planes need a penalty: C must be finite, or l2 above 0.")


class Planes:
    """loss(w) >= slopes[t] @ w + heights[t] for all t; the first plane says that losses are >= 0.

    Planes do not depend on the penalty: those of one C serve the next.
    """

    def __init__(self, size: int) -> None:
        self.slopes = np.zeros((1, size))
        self.heights = np.zeros(1)
        self._gram = np.zeros((1, 1))
        self._age = np.zeros(1, np.int64)

    @classmethod
    def of(cls, slopes: Floats, heights: Floats) -> Planes:
        """Planes that were kept."""
        found = cls(slopes.shape[1])
        found.slopes, found.heights = slopes, heights
        found._gram = slopes @ slopes.T
        found._age = np.zeros(len(heights), np.int64)
        return found

    def __len__(self) -> int:
        return len(self.heights)

    def add(self, slope: Floats, height: float) -> None:
        beside = self.slopes @ slope
        size = len(self)
        gram = np.empty((size + 1, size + 1))
        gram[:size, :size] = self._gram
        gram[size, :size] = gram[:size, size] = beside
        gram[size, size] = slope @ slope
        self._gram = gram
        self.slopes = np.vstack([self.slopes, slope])
        self.heights = np.append(self.heights, height)
        self._age = np.append(self._age, 0)

    def least(self, l2: float) -> tuple[Floats, float]:
        """Parameters that minimize l2 / 2 * |w|^2 + the highest plane; and a bound below that.

        The dual: shares of the planes, at least 0 and 1 together.  Whatever shares the quadratic
        program returns, they give a true bound.
        """
        shares = self._shares(l2)
        params: Floats = -(shares @ self.slopes) / l2
        below = float(shares @ self.heights) - l2 / 2 * float(params @ params)
        self._forget(shares)
        return params, below

    def _shares(self, l2: float) -> Floats:
        """The multipliers of: minimize l2 / 2 * |w|^2 + top, where top is above all planes.

        The program itself, and not its dual, is solved: with a large C the dual's linear part would
        drown in rounding.  Parameters are in units in which they and the planes are about 1.
        """
        if len(self) == 1:
            return np.ones(1)
        import piqp

        steep = float(np.sqrt(np.diag(self._gram).max())) or 1.0
        high = float(np.abs(self.heights).max()) or 1.0
        unit = min(high / steep, steep / l2)
        scale = max(l2 * unit**2, steep * unit, 1e-300)
        # Where planes lie to each other is all that counts; those far below take no part.
        heights = (self.heights - self.heights.max()) / scale
        part = np.flatnonzero(heights > DEEP)
        slopes = self._spanned(part)
        count, size = slopes.shape
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
        solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-10
        P = np.zeros((size + 1, size + 1), order="F")
        P[range(size), range(size)] = l2 * unit**2 / scale
        c = np.zeros(size + 1)
        c[size] = 1.0
        G = np.empty((count, size + 1), order="F")
        G[:, :size] = slopes * (unit / scale)
        G[:, size] = -1.0
        solver.setup(P=P, c=c, G=G, h_u=-heights[part])
        solver.solve()
        shares = np.zeros(len(self))
        shares[part] = np.maximum(np.nan_to_num(solver.result.z_u), 0.0)
        total = float(shares.sum())
        if total == 0:
            shares[part], total = 1.0, float(count)
        return shares / total

    def _spanned(self, part: Ints) -> Floats:
        """Slopes, in as few coordinates as they span: planes are fewer than many features."""
        slopes = self.slopes[part]
        if slopes.shape[1] <= len(part):
            return slopes
        corner: Floats = np.asarray(np.linalg.qr(slopes.T, mode="r"), np.float64)
        return corner.T

    def _forget(self, shares: Floats) -> None:
        self._age = np.where(shares > 1e-9, 0, self._age + 1)
        keep = self._age < OLD
        keep[0] = keep[-1] = True
        if not keep.all():
            self.slopes, self.heights = self.slopes[keep], self.heights[keep]
            self._gram, self._age = self._gram[np.ix_(keep, keep)], self._age[keep]


AHEAD = 0.05  # of the way from the best point to the model's least, where a plane touches too
LOOKS = 10  # of a line search at most
FLAT = 0.02  # a slope along the line that has fallen to this share is good enough
RISE = 0.02  # of what is below the value at 0: with a small C the objective hardly moves
FAINT = 1e-10  # a penalty that counts so little beside the loss is raised: it drowns in rounding
STILL = 30  # iterations without any progress: the numbers have no more to give


@dataclass(frozen=True)
class CuttingPlane:
    """The least of a penalty plus planes below the loss, a plane more in every iteration.

    Joachims, Finley and Yu (2009), with the line search of Franc and Sonnenburg (2008): what is
    kept is the best point on the way to the model's least, not that point itself, and the next
    planes touch there and a little ahead.  The model is a bound below: one knows how far the end
    may be.

    tol       stop when no parameters can be better by more than this share of the objective
    max_iter  iterations at most
    """

    tol: float = 1e-3
    max_iter: int = 1000
    needs: ClassVar[tuple[str, ...]] = ("convex",)
    linear: ClassVar[bool] = True
    path: ClassVar[bool] = False
    batch: ClassVar[None] = None
    resumable: ClassVar[bool] = True
    rates: ClassVar[tuple[float, ...]] = ()

    def __post_init__(self) -> None:
        check_number(self, "tol", above=0)
        check_number(self, "max_iter", 1, integer=True)

    def minimize(
        self, objective: ScoredObjective[P], start: Floats, watch: Watch = never,
        resume: Resume = NOTHING,
    ) -> SolverResult:  # fmt: skip
        """resume.memory: planes of another penalty, which hold here too, and the best point."""
        check_penalty(objective)
        space = objective.space()
        planes = Planes(objective.size)
        if (state := resume.state) is not None:
            planes, start = Planes.of(state["slopes"], state["heights"]), state["params"]
        elif resume.memory is not None:
            planes, start = resume.memory
        nothing = np.zeros(objective.size)
        origin = best = space.at(nothing)
        steep = _cut(planes, space, best)
        space.l2 = max(space.l2, FAINT * steep**2 / origin.loss if origin.loss > 0 else 0.0)
        if start.any():
            given = space.at(np.array(start, np.float64))
            _cut(planes, space, given)
            best = given if given.value < best.value else best
        below, still = 0.0, 0
        for iteration in range(1, self.max_iter + 1):
            params, bound = planes.least(space.l2)
            line = space.line(best, params)
            before, least = (best.value, below), line.end
            below = max(below, bound)
            best = _search(line, space.l2)
            if resume.report is not None:
                resume.report(partial(_state, planes, best))
            stopped = watch(iteration, best.value, best.params)
            if stopped or self._done(best.value, below, origin.value):
                break
            moved = max(before[0] - best.value, below - before[1])
            still = 0 if moved > 1e-10 * origin.value else still + 1
            if still >= STILL:
                break
            _cut(planes, space, best if best.value < before[0] else least)  # that always cuts
            _cut(planes, space, space.between(best, least, AHEAD))
        return self._found(space, best, below, iteration, stopped, planes)

    def _done(self, value: float, below: float, origin: float) -> bool:
        gap = value - below
        near = gap <= self.tol * value and gap <= RISE * (origin - below)
        return near or gap <= 1e-9 * origin

    def _found(
        self, space: Space[P], best: P, below: float, iteration: int, stopped: bool,
        planes: Planes,
    ) -> SolverResult:  # fmt: skip
        """The best point looked at once more, by its own scores."""
        last = space.at(best.params)
        value = last.value + space.unsure()
        gap = relative_gap(value, below)
        converged = last.value - below <= 1.1 * self.tol * last.value or value <= 0.0
        reason = f"within {100 * gap:.2g} % of the optimum"
        exhausted = not converged and not stopped
        return SolverResult(
            best.params, last.value, iteration, "stopped early" if stopped else reason,
            converged and not stopped, exhausted, gap, memory=(planes, best.params),
            l2=space.l2,
        )  # fmt: skip


def _state(planes: Planes, best: Point) -> State:
    return {"params": best.params, "slopes": planes.slopes, "heights": planes.heights}


def _cut(planes: Planes, space: Space[P], point: P) -> float:
    """The plane that touches the loss at a point; how steep it is."""
    slope, loss = space.plane(point)
    planes.add(slope, loss - float(slope @ point.params))
    return float(np.linalg.norm(slope))


def _search(line: Line[P], l2: float) -> P:
    """The best point on a line from the best so far through the model's least.

    The slope along the line only rises: it is driven to about 0 by false position.
    """
    best, least = line.start, line.end
    way = least.params - best.params

    def along(point: Point, loss: float) -> float:
        return loss + l2 * float(point.params @ way)

    low, high, found = 0.0, 1.0, best
    below, above = along(best, line.slopes[0]), along(least, line.slopes[1])
    steep = max(abs(below), abs(above))
    if least.value <= found.value * (1 + 1e-14):  # with a tiny C they differ by rounding alone
        found = least
    for look in range(LOOKS):
        if above < 0:  # the way goes on downward
            low, below, high = high, above, 2 * high
            step = high
        elif high - low < 1e-4 * high:
            break
        elif below < 0 and look % 3 != 2:
            step = low - below * (high - low) / (above - below)
            step = min(max(step, low + 0.02 * (high - low)), high - 0.02 * (high - low))
        else:
            step = (low + high) / 2
        point, loss = line.look(step)
        slope = along(point, loss)
        if point.value < found.value:
            found = point
        if abs(slope) <= FLAT * steep:
            break
        if slope > 0 or step == high:
            high, above = step, slope
        else:
            low, below = step, slope
    return found
