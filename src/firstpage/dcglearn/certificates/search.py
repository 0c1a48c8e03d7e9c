"""NDCG: a search for gains and discounts that turn a difference.

Differences of NDCG are sums of ratios, which may have many local minima; the search goes
downhill from many starts, in the logarithms of the steps.  What it finds is sure, what it does
not find is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from firstpage.dcglearn.certificates.problem import Problem
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
