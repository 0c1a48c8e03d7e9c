"""Whether any gains and discounts within a factor turn a difference: proven, flips, undecided.

A search looks for a flip.  Differences of NDCG are sums of ratios, which may have many local
minima; the search goes downhill from many starts, in the logarithms of the steps.  What it finds is
sure, what it does not find is not.

A proof bounds boxes.  Where the bound of a box does not decide, the box is split in two; the box
with the lowest bound comes next, until all are decided or the patience ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize

from firstpage.dcglearn.certificates.bounds import Bound, Box, lower_bound
from firstpage.dcglearn.certificates.problem import (
    ROUNDING,
    Problem,
    corner,
    exact_radius,
    is_exact,
    least_difference,
)
from firstpage.types import Floats

STARTS = 12  # random corners
RAYS = 12  # corners near a single step
ROUNDS = 12  # of bringing a turned point nearer
MINIMIZE: Any = minimize
SURE = 1e-10  # a difference must be as far below zero to count as turned


def slope(problem: Problem, at: Floats) -> tuple[float, Floats]:
    """The difference and its gradient, at the logarithms of rows and columns."""
    above, below = problem.ratios()
    rows, columns = problem.shape
    m = np.exp(at[:rows, None] + at[None, rows:]).ravel()
    top, bottom = above @ m, below @ m
    ratio = top / bottom
    grid = ((above - ratio[:, None] * below) / bottom[:, None]).sum(axis=0) * m
    grid = grid.reshape(rows, columns)
    return float(ratio.sum()), np.concatenate([grid.sum(axis=1), grid.sum(axis=0)])


def descend(problem: Problem, factor: float, starts: Iterable[Floats]) -> tuple[float, Floats]:
    """The least difference found from these starts inside the box; stops where it is turned."""
    reach = float(np.log(factor))
    free = problem.shape[0] > 1
    bounds = [(-reach, reach) if free else (0.0, 0.0)] * problem.shape[0]
    bounds += [(-reach, reach)] * problem.shape[1]
    lows, highs = np.array(bounds).T
    best, where = np.inf, np.zeros(len(bounds))
    for start in starts:
        found = MINIMIZE(
            lambda x: slope(problem, x), np.clip(start, lows, highs), jac=True, method="L-BFGS-B",
            bounds=bounds, options={"maxiter": 200},
        )  # fmt: skip
        if found.fun < best:
            best, where = float(found.fun), np.clip(found.x, lows, highs)
        if best < -SURE:
            break
    return best, where


def starts(problem: Problem, factor: float) -> list[Floats]:
    """The measure itself, the corner straight downhill, single steps, random corners."""
    rng = np.random.default_rng(0)
    reach = float(np.log(factor))
    size = sum(problem.shape)
    here = np.zeros(size)
    down = -reach * np.sign(slope(problem, here)[1])
    corners = rng.choice([-reach, reach], (STARTS, size))
    return [down, here, *_rays(problem, reach), *corners]


def _rays(problem: Problem, reach: float) -> list[Floats]:
    """Points at which one step counts far more than all others, the lowest first."""
    rows, columns = problem.shape
    points = []
    for r in range(rows):
        for c in range(columns):
            point = np.full(rows + columns, -reach)
            point[[r, rows + c]] = reach
            points.append(point)
    values = [slope(problem, point)[0] for point in points]
    return [points[i] for i in np.argsort(values)[:RAYS]]


def turned(problem: Problem, factor: float, more: Iterable[Floats] = ()) -> Floats | None:
    """A point inside the box with a difference below zero, or None if none was found."""
    value, where = descend(problem, factor, [*more, *starts(problem, factor)])
    return where if value < -SURE else None


def extent(where: Floats) -> float:
    """The factor within which a point's steps lie of the measure's."""
    return float(np.exp(np.abs(where).max(initial=0.0)))


def nearest(problem: Problem, where: Floats) -> Floats:
    """A turned point with steps as near to the measure's as the search can bring it."""
    low, best = 1.0, where
    for _ in range(ROUNDS):
        high = extent(best)
        middle = float(np.sqrt(low * high))
        if high < low * 1.002:
            break
        scaled = best * np.log(middle) / np.log(high)
        found = turned(problem, middle, [scaled])
        if found is None:
            low = middle
        else:
            best = found
    return best


State = Literal["proven", "flips", "undecided"]
BOXES = 100  # that a proof may ask
PROOF = 1e-10  # a bound must be as far above zero to be a proof
FARTHEST = 1e4  # factor up to which NDCG is searched
CLOSE = 1.01  # a factor is found when it is known this well
TINY = 1e-9  # steps of a witness are above zero
Point = tuple[Floats, Floats]  # multipliers of rows and columns


@dataclass(frozen=True, eq=False)
class Radius:
    """The verdict stands up to `proven` for sure, and flips at `flips` at `point`."""

    proven: float
    flips: float
    point: Point | None


def decide(problem: Problem, factor: float, boxes: int = BOXES) -> tuple[State, Point | None]:
    """With all steps within the factor of the measure's; with a point where it flips."""
    if factor == np.inf:
        return anyhow(problem, boxes)
    if is_exact(problem):
        return _exactly(problem, factor)
    if dominates(problem):
        return "proven", None
    if (found := turned(problem, factor)) is not None:
        return "flips", _point(problem, found)
    return branch(problem, factor, boxes)


def _exactly(problem: Problem, factor: float) -> tuple[State, Point | None]:
    """By the least value there is; one that is zero but for rounding decides nothing."""
    value, rows, columns = least_difference(problem, factor)
    rounding = ROUNDING * float(np.abs(problem.above).sum()) * factor**2
    if value > rounding:
        return "proven", None
    return ("flips", (rows, columns)) if value < -rounding else ("undecided", None)


def anyhow(problem: Problem, boxes: int = BOXES) -> tuple[State, Point | None]:
    """With any steps at all."""
    if dominates(problem):
        return "proven", None
    if problem.below is None:
        return "flips", corner(problem)
    found = turned(problem, FARTHEST)
    return everywhere(problem, boxes) if found is None else ("flips", _point(problem, found))


def everywhere(problem: Problem, boxes: int) -> tuple[State, Point | None]:
    """A proof for steps of any size: some step is the greatest, and the others are from 0 to it."""
    rows, columns = problem.shape
    above, below = problem.ratios()
    used = below.max(axis=0).reshape(rows, columns) > 0
    used_rows, used_columns = np.flatnonzero(used.max(axis=1)), np.flatnonzero(used.max(axis=0))
    if not used[np.ix_(used_rows, used_columns)].all() or above[below == 0].any():
        return "undecided", None  # a ratio without bounds
    for r, c in product(used_rows.tolist(), used_columns.tolist()):
        face = Box((np.eye(rows)[r], np.ones(rows)), (np.eye(columns)[c], np.ones(columns)))
        state, point = _branched(problem, face, boxes)
        if state != "proven":
            return state, point
    return "proven", None


def dominates(problem: Problem) -> bool:
    """No entry speaks against the verdict, in any group: then no steps can turn it."""
    return not (problem.above < 0).any()


def branch(problem: Problem, factor: float, boxes: int) -> tuple[State, Point | None]:
    """Bound the box, and split it until all is decided."""
    rows, columns = problem.shape
    reach = factor if rows > 1 else 1.0
    whole = Box(
        (np.full(rows, 1 / reach), np.full(rows, reach)),
        (np.full(columns, 1 / factor), np.full(columns, factor)),
    )
    return _branched(problem, whole, boxes)


def _branched(problem: Problem, whole: Box, boxes: int) -> tuple[State, Point | None]:
    waiting: list[tuple[float, int, Box, Bound]] = []
    asked, new = 0, [whole]
    while asked < boxes:
        for box in new:
            bound = lower_bound(problem, box)
            asked += 1
            point = np.maximum(bound.rows, TINY), np.maximum(bound.columns, TINY)
            if problem.value(*point) < -SURE:
                return "flips", point
            if bound.value <= PROOF:
                heappush(waiting, (bound.value, asked, box, bound))
        if not waiting:
            return "proven", None
        _, _, box, bound = heappop(waiting)
        new = list(box.halves(*bound.split))
    return "undecided", None


def radius(problem: Problem, boxes: int = BOXES) -> Radius:
    """How far steps may move before the verdict flips."""
    if is_exact(problem):
        proven, flips = exact_radius(problem)
        point = None if flips == np.inf else least_difference(problem, flips)[1:]
        return Radius(proven, flips, point)
    if dominates(problem):
        return Radius(np.inf, np.inf, None)
    found = turned(problem, FARTHEST)
    if found is None and everywhere(problem, boxes)[0] == "proven":
        return Radius(np.inf, np.inf, None)
    near = None if found is None else nearest(problem, found)
    return _proven(problem, near, boxes)


def _proven(problem: Problem, near: Floats | None, boxes: int) -> Radius:
    """Prove as far as possible below the flip that the search found."""
    low, high = 1.0, FARTHEST if near is None else extent(near)
    flips = near is not None
    point = None if near is None else _point(problem, near)
    guess = high / CLOSE if flips else 2.0
    while high > low * CLOSE:
        state, turn = branch(problem, guess, boxes)
        if state == "proven":
            low = guess
        elif state == "flips" and turn is not None:
            point, high, flips = turn, guess, True
        else:
            high = guess
        guess = float(np.sqrt(low * high))
    at = np.inf if not flips or point is None else _reach(point)
    return Radius(low, at, point)


def _reach(point: Point) -> float:
    return extent(np.log(np.concatenate(point)))


def _point(problem: Problem, where: Floats) -> Point:
    rows = problem.shape[0]
    return np.exp(where[:rows]), np.exp(where[rows:])
