"""Whether any gains and discounts within a factor flip a difference: proven, flips, undecided.

A search looks for a flip.  Differences of NDCG are sums of ratios, which may have many local
minima; the search descends from many starting points, in the logarithms of the steps.  A flip that
it finds is certain; finding none proves nothing.

A proof is by branch and bound over boxes.  Where the bound of a box does not decide, the box is
split in two; the box with the lowest bound comes next, until all are decided or the limit on boxes
is reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize

from firstpage.core import Floats
from firstpage.evaluation.dcglearn.certificates.bounds import Box, LowerBound, lower_bound
from firstpage.evaluation.dcglearn.certificates.problem import (
    ROUNDING_EPS,
    SumOfRatios,
    exact_radius,
    flip_by_entry,
    is_exact,
    min_difference,
)

RANDOM_STARTS = 12  # random corners
SINGLE_STEP_STARTS = 12  # corners at which a single step dominates
NEAREST_ROUNDS = 12  # of moving a flip toward the measure
MINIMIZE: Any = minimize
FLIP_THRESHOLD = 1e-10  # a difference counts as a flip if it is below minus this


def difference_gradient(problem: SumOfRatios, logs: Floats) -> tuple[float, Floats]:
    """Return the difference and its gradient at the logarithms of rows and columns."""
    numerators, denominators = problem.flat()
    rows, columns = problem.shape
    m = np.exp(logs[:rows, None] + logs[None, rows:]).ravel()
    top, bottom = numerators @ m, denominators @ m
    ratio = top / bottom
    grid = ((numerators - ratio[:, None] * denominators) / bottom[:, None]).sum(axis=0) * m
    grid = grid.reshape(rows, columns)
    return float(ratio.sum()), np.concatenate([grid.sum(axis=1), grid.sum(axis=0)])


def minimize_difference(
    problem: SumOfRatios, factor: float, starts: Iterable[Floats]
) -> tuple[float, Floats]:
    """Return the smallest difference found from these starting points; stops at a flip."""
    reach = float(np.log(factor))
    rows_vary = problem.shape[0] > 1
    bounds = [(-reach, reach) if rows_vary else (0.0, 0.0)] * problem.shape[0]
    bounds += [(-reach, reach)] * problem.shape[1]
    lows, highs = np.array(bounds).T
    best, point = np.inf, np.zeros(len(bounds))
    for start in starts:
        result = MINIMIZE(
            lambda x: difference_gradient(problem, x),
            np.clip(start, lows, highs),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 200},
        )
        if result.fun < best:
            best, point = float(result.fun), np.clip(result.x, lows, highs)
        if best < -FLIP_THRESHOLD:
            break
    return best, point


def starting_points(problem: SumOfRatios, factor: float) -> list[Floats]:
    """Return the corner of steepest descent, the measure itself, single steps, random corners."""
    rng = np.random.default_rng(0)
    reach = float(np.log(factor))
    size = sum(problem.shape)
    origin = np.zeros(size)
    descent = -reach * np.sign(difference_gradient(problem, origin)[1])
    corners = rng.choice([-reach, reach], (RANDOM_STARTS, size))
    return [descent, origin, *_single_steps(problem, reach), *corners]


def _single_steps(problem: SumOfRatios, reach: float) -> list[Floats]:
    """Return points at which one step dominates all others, the smallest difference first."""
    rows, columns = problem.shape
    points = []
    for r in range(rows):
        for c in range(columns):
            point = np.full(rows + columns, -reach)
            point[[r, rows + c]] = reach
            points.append(point)
    values = [difference_gradient(problem, point)[0] for point in points]
    return [points[i] for i in np.argsort(values)[:SINGLE_STEP_STARTS]]


def find_flip(problem: SumOfRatios, factor: float, starts: Iterable[Floats] = ()) -> Floats | None:
    """Return a point in the box with a negative difference, or None if none was found."""
    value, point = minimize_difference(
        problem, factor, [*starts, *starting_points(problem, factor)]
    )
    return point if value < -FLIP_THRESHOLD else None


def extent(logs: Floats) -> float:
    """Return the factor within which the steps of a point lie."""
    return float(np.exp(np.abs(logs).max(initial=0.0)))


def nearest_flip(problem: SumOfRatios, flip: Floats) -> Floats:
    """Return a flip with steps as near to those of the measure as the search finds."""
    low, best = 1.0, flip
    for _ in range(NEAREST_ROUNDS):
        high = extent(best)
        middle = float(np.sqrt(low * high))
        if high < low * 1.002:
            break
        scaled = best * np.log(middle) / np.log(high)
        nearer = find_flip(problem, middle, [scaled])
        if nearer is None:
            low = middle
        else:
            best = nearer
    return best


State = Literal["proven", "flips", "undecided"]
MAX_BOXES = 100  # per proof
PROOF_THRESHOLD = 1e-10  # a bound must exceed it to be a proof
MAX_FACTOR = 1e4  # up to which NDCG is searched
FACTOR_PRECISION = 1.01  # ratio of the bounds of a factor at which the search ends
MIN_STEP = 1e-9  # steps of a witness are positive
Point = tuple[Floats, Floats]  # multipliers of rows and columns


@dataclass(frozen=True, eq=False)
class Radius:
    """The factor within which a verdict is proven, and the factor at which it flips.

    `flip_factor` is infinite if no flip is known; `point` has the multipliers at which it flips.
    """

    proven_factor: float
    flip_factor: float
    point: Point | None


def decide(
    problem: SumOfRatios, factor: float, max_boxes: int = MAX_BOXES
) -> tuple[State, Point | None]:
    """Decide for all steps within the factor; with a point where the difference flips."""
    if factor == np.inf:
        return decide_unrestricted(problem, max_boxes)
    if is_exact(problem):
        return _decide_exactly(problem, factor)
    if dominates(problem):
        return "proven", None
    if (flip := find_flip(problem, factor)) is not None:
        return "flips", _point(problem, flip)
    return prove_within(problem, factor, max_boxes)


def _decide_exactly(problem: SumOfRatios, factor: float) -> tuple[State, Point | None]:
    """Decide by the exact minimum; a minimum within rounding error of zero decides nothing."""
    value, rows, columns = min_difference(problem, factor)
    rounding = ROUNDING_EPS * float(np.abs(problem.numerators).sum()) * factor**2
    if value > rounding:
        return "proven", None
    return ("flips", (rows, columns)) if value < -rounding else ("undecided", None)


def decide_unrestricted(
    problem: SumOfRatios, max_boxes: int = MAX_BOXES
) -> tuple[State, Point | None]:
    """Decide for any nonnegative steps."""
    if dominates(problem):
        return "proven", None
    if problem.denominators is None:
        return "flips", flip_by_entry(problem)
    flip = find_flip(problem, MAX_FACTOR)
    if flip is None:
        return prove_unrestricted(problem, max_boxes)
    return "flips", _point(problem, flip)


def prove_unrestricted(problem: SumOfRatios, max_boxes: int) -> tuple[State, Point | None]:
    """Prove a verdict for steps of any size.

    Some step is the largest, and the others lie between 0 and it: there is a box per choice of the
    largest step.
    """
    rows, columns = problem.shape
    numerators, denominators = problem.flat()
    used = denominators.max(axis=0).reshape(rows, columns) > 0
    used_rows, used_columns = np.flatnonzero(used.max(axis=1)), np.flatnonzero(used.max(axis=0))
    if not used[np.ix_(used_rows, used_columns)].all() or numerators[denominators == 0].any():
        return "undecided", None  # some ratio is unbounded
    for r, c in product(used_rows.tolist(), used_columns.tolist()):
        face = Box((np.eye(rows)[r], np.ones(rows)), (np.eye(columns)[c], np.ones(columns)))
        state, point = _branch_and_bound(problem, face, max_boxes)
        if state != "proven":
            return state, point
    return "proven", None


def dominates(problem: SumOfRatios) -> bool:
    """Return whether no entry of any group is negative, so that no steps can flip the verdict."""
    return not (problem.numerators < 0).any()


def prove_within(problem: SumOfRatios, factor: float, max_boxes: int) -> tuple[State, Point | None]:
    """Decide by branch and bound for all steps within the factor."""
    rows, columns = problem.shape
    row_factor = factor if rows > 1 else 1.0
    box = Box(
        (np.full(rows, 1 / row_factor), np.full(rows, row_factor)),
        (np.full(columns, 1 / factor), np.full(columns, factor)),
    )
    return _branch_and_bound(problem, box, max_boxes)


def _branch_and_bound(
    problem: SumOfRatios, root: Box, max_boxes: int
) -> tuple[State, Point | None]:
    queue: list[tuple[float, int, Box, LowerBound]] = []
    bounded, new = 0, [root]
    while bounded < max_boxes:
        for box in new:
            bound = lower_bound(problem, box)
            bounded += 1
            point = np.maximum(bound.rows, MIN_STEP), np.maximum(bound.columns, MIN_STEP)
            if problem.value(*point) < -FLIP_THRESHOLD:
                return "flips", point
            if bound.value <= PROOF_THRESHOLD:
                heappush(queue, (bound.value, bounded, box, bound))
        if not queue:
            return "proven", None
        _, _, box, bound = heappop(queue)
        new = list(box.split(*bound.split))
    return "undecided", None


def radius(problem: SumOfRatios, max_boxes: int = MAX_BOXES) -> Radius:
    """Return how far steps may change before the verdict flips."""
    if is_exact(problem):
        proven, flips = exact_radius(problem)
        point = None if flips == np.inf else min_difference(problem, flips)[1:]
        return Radius(proven, flips, point)
    if dominates(problem):
        return Radius(np.inf, np.inf, None)
    flip = find_flip(problem, MAX_FACTOR)
    if flip is None and prove_unrestricted(problem, max_boxes)[0] == "proven":
        return Radius(np.inf, np.inf, None)
    nearest = None if flip is None else nearest_flip(problem, flip)
    return _bisect_radius(problem, nearest, max_boxes)


def _bisect_radius(problem: SumOfRatios, flip: Floats | None, max_boxes: int) -> Radius:
    """Return the radius with the largest proven factor below the flip that the search found."""
    low, high = 1.0, MAX_FACTOR if flip is None else extent(flip)
    flips = flip is not None
    point = None if flip is None else _point(problem, flip)
    guess = high / FACTOR_PRECISION if flips else 2.0
    while high > low * FACTOR_PRECISION:
        state, flip_point = prove_within(problem, guess, max_boxes)
        if state == "proven":
            low = guess
        elif state == "flips" and flip_point is not None:
            point, high, flips = flip_point, guess, True
        else:
            high = guess
        guess = float(np.sqrt(low * high))
    flip_factor = np.inf if not flips or point is None else _point_extent(point)
    return Radius(low, flip_factor, point)


def _point_extent(point: Point) -> float:
    return extent(np.log(np.concatenate(point)))


def _point(problem: SumOfRatios, logs: Floats) -> Point:
    """Return the multipliers of rows and columns from their logarithms."""
    rows = problem.shape[0]
    return np.exp(logs[:rows]), np.exp(logs[rows:])
