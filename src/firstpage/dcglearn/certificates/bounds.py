"""A number below every difference in a box of gains and discounts, by a linear program.

Products and ratios are relaxed to straight lines, so the program's least value lies below
every true one.  It is computed from the program's dual: any dual gives a true bound, so the
solver's tolerance does not matter.

The unknowns, all but the ratios multiplied by one scale s that makes the ideal value of the
heaviest group 1:  s,  the cells M = s * row * column,  the ratio V of every group,  and where
rows vary too, the columns A = s * column and the rows B = s * row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from firstpage.dcglearn.certificates.problem import Problem
from firstpage.types import Floats

Ends = tuple[Floats, Floats]  # from, to
SOLVE: Any = linprog  # takes sparse matrices, which its types do not know
NEAR = 0.1  # a side from zero is split at this share of its upper end
SMALL = 1e-9  # a group's size where all its steps are zero
LEAST = 1e-6  # a side from zero counts as this wide


@dataclass(frozen=True, eq=False)
class Box:
    """Multipliers of rows and columns from low to high."""

    rows: Ends
    columns: Ends

    @property
    def cells(self) -> Ends:
        low, high = (np.outer(self.rows[i], self.columns[i]).ravel() for i in (0, 1))
        return low, high

    def halves(self, row: bool, at: int) -> tuple[Box, Box]:
        """Split one side at its geometric mean; one from zero, near its upper end."""
        low, high = self.rows if row else self.columns
        middle = np.sqrt(max(low[at], NEAR**2 * high[at]) * high[at])
        below, above = high.copy(), low.copy()
        below[at] = above[at] = middle
        parts = (low, below), (above, high)
        if row:
            return Box(parts[0], self.columns), Box(parts[1], self.columns)
        return Box(self.rows, parts[0]), Box(self.rows, parts[1])


@dataclass(frozen=True, eq=False)
class Bound:
    """No difference in the box is below `value`; the relaxation is least at rows, columns."""

    value: float
    rows: Floats
    columns: Floats
    split: tuple[bool, int]  # whether a row, and which one, should be split next


class _Places:
    """Where each kind of unknown stands."""

    def __init__(self, problem: Problem) -> None:
        rows, columns = problem.shape
        groups, cells = len(problem.above), rows * columns
        free = rows > 1
        ends = np.cumsum([1, cells, groups, columns * free, rows * free]).tolist()
        self.cells, self.ratios, self.columns, self.rows = (slice(a, b) for a, b in pairwise(ends))
        self.size = ends[-1]


def least_ratio(above: Floats, below: Floats, low: Floats, high: Floats) -> Floats:
    """For each row, a number that no (above . m) / (below . m) with m from low to high is under.

    Dinkelbach's steps find the least; what they miss of it is taken off.  Where `below . low` is
    zero, no mean of ratios is under the least of them.
    """
    ratio = (above @ high) / (below @ high)
    for _ in range(60):
        m = np.where(above < ratio[:, None] * below, high, low)
        bottom = (below * m).sum(axis=1)
        better = np.divide((above * m).sum(axis=1), bottom, out=ratio.copy(), where=bottom > 0)
        done = np.abs(better - ratio).max(initial=0.0) < 1e-14
        ratio = better
        if done:
            break
    rest = above - ratio[:, None] * below
    missed = np.where(rest < 0, rest * high, rest * low).sum(axis=1)
    each = np.divide(above, below, out=np.full_like(above, np.inf), where=below > 0)
    bottom = below @ low
    found: Floats = np.divide(
        np.minimum(missed, 0.0), bottom, out=each.min(axis=1), where=bottom > 0
    )
    found[bottom > 0] += ratio[bottom > 0]
    return found


def lower_bound(problem: Problem, box: Box) -> Bound:
    """Solve the program of a box."""
    above, below = problem.ratios()
    low, high = box.cells
    weight = np.abs(above).sum(axis=1) / below.sum(axis=1)
    heaviest = int(np.where(below @ low > 0, weight, -1.0).argmax())
    unit = below[heaviest]
    values = least_ratio(above, below, low, high), -least_ratio(-above, below, low, high)
    same = np.broadcast_to(unit, below.shape)
    sizes = least_ratio(below, same, low, high), -least_ratio(-below, same, low, high)
    at = _Places(problem)
    limits = _limits(at, box, (1.0 / float(unit @ high), 1.0 / float(unit @ low)), values)
    matrix, right = _ratio_rules(problem, at, sizes, values)
    shape = _product_rules(problem, at, box) if problem.shape[0] > 1 else _side_rules(at, box)
    rules = csr_array(np.vstack([matrix, shape])), np.append(right, np.zeros(len(shape)))
    cost, norm = np.zeros(at.size), np.zeros((1, at.size))
    cost[at.ratios], norm[0, at.cells] = 1.0, unit
    solved = SOLVE(cost, *rules, norm, [1.0], np.transpose(limits), method="highs")
    floor = float(values[0].sum())
    if solved.x is None:  # the solver gave up; the plain bound still holds
        return _bound(problem, at, box, floor, limits[0])
    value = _dual_value(cost, rules, norm, limits, solved)
    return _bound(problem, at, box, max(value, floor), solved.x)


def _limits(at: _Places, box: Box, scales: tuple[float, float], values: Ends) -> Ends:
    """Lows and highs of all unknowns."""
    ends = []
    for i in (0, 1):
        end = np.full(at.size, scales[i])
        end[at.cells] *= box.cells[i]
        end[at.ratios] = values[i]
        if at.columns.start < at.columns.stop:
            end[at.columns] *= box.columns[i]
            end[at.rows] *= box.rows[i]
        ends.append(end)
    return ends[0], np.maximum(ends[0], ends[1])


def _ratio_rules(problem: Problem, at: _Places, sizes: Ends, values: Ends) -> tuple[Floats, Floats]:
    """(V - least)(greatest size - size) >= 0 and (greatest - V)(size - least size) >= 0."""
    above, below = problem.ratios()
    blocks, right = [], []
    for value, size in ((values[0], sizes[1]), (values[1], sizes[0])):
        block = np.zeros((len(above), at.size))
        block[:, at.cells] = above - value[:, None] * below
        block[:, at.ratios] = -np.diag(size)
        blocks.append(block)
        right.append(-value * size)
    return np.vstack(blocks), np.concatenate(right)


def _side_rules(at: _Places, box: Box) -> Floats:
    """low s <= M <= high s."""
    size = len(box.cells[0])
    blocks = []
    for sign, end in ((-1.0, box.cells[0]), (1.0, box.cells[1])):
        block = np.zeros((size, at.size))
        block[:, at.cells] = sign * np.eye(size)
        block[:, 0] = -sign * end
        blocks.append(block)
    return np.vstack(blocks)


def _product_rules(problem: Problem, at: _Places, box: Box) -> Floats:
    """McCormick's four planes around M s = B A, and the sides of A and B."""
    rows, columns = problem.shape
    r, c = (grid.ravel() for grid in np.indices((rows, columns)))
    blocks = []
    # (b - row end)(a - column end) has a known sign at each pair of ends
    for i, j in ((0, 0), (1, 1), (1, 0), (0, 1)):
        sign = -1.0 if i == j else 1.0
        b, a = box.rows[i][r], box.columns[j][c]
        block = np.zeros((rows * columns, at.size))
        here = np.arange(rows * columns)
        block[here, at.cells.start + here] = sign
        block[here, at.columns.start + c] = -sign * b
        block[here, at.rows.start + r] = -sign * a
        block[:, 0] = sign * b * a
        blocks.append(block)
    for place, ends in ((at.columns, box.columns), (at.rows, box.rows)):
        for sign, end in ((-1.0, ends[0]), (1.0, ends[1])):
            block = np.zeros((len(end), at.size))
            block[:, place] = sign * np.eye(len(end))
            block[:, 0] = -sign * end
            blocks.append(block)
    return np.vstack(blocks)


def _dual_value(
    cost: Floats, rules: tuple[Any, Floats], norm: Floats, limits: Ends, solved: Any
) -> float:
    """What the dual proves: weak duality with the signs mended and every unknown in its limits."""
    matrix, right = rules
    prices = np.minimum(solved.ineqlin.marginals, 0.0)
    price = float(solved.eqlin.marginals[0])
    left = cost - matrix.T @ prices - price * norm[0]
    rest = np.where(left > 0, left * limits[0], left * limits[1]).sum()
    return float(prices @ right + price + rest)


def _bound(problem: Problem, at: _Places, box: Box, value: float, point: Floats) -> Bound:
    """Read rows and columns off the solution, and what to split: where it errs most."""
    above, below = problem.ratios()
    scale, cells = float(point[0]), np.maximum(point[at.cells], 0.0)
    top, size = above @ cells, np.maximum(below @ cells, SMALL)
    gaps = np.maximum(top / size - point[at.ratios], 0.0)
    shares = (gaps[:, None] * below * cells / size[:, None]).sum(axis=0).reshape(problem.shape)
    if problem.shape[0] == 1:
        rows, columns, errors = np.ones(1), cells / scale, shares
    else:
        rows, columns = point[at.rows] / scale, point[at.columns] / scale
        weight = np.abs((above - (top / size)[:, None] * below) / size[:, None]).sum(axis=0)
        missed = np.abs(cells / scale - np.outer(rows, columns).ravel()) * weight * scale
        errors = shares + missed.reshape(problem.shape)
    rows, columns = np.clip(rows, *box.rows), np.clip(columns, *box.columns)
    return Bound(value, rows, columns, _widest(box, errors))


def _widest(box: Box, errors: Floats) -> tuple[bool, int]:
    """The side whose width and errors together are greatest."""
    wide = [np.log(high / np.maximum(low, LEAST * high)) for low, high in (box.rows, box.columns)]
    by_row = wide[0] * (errors.sum(axis=1) + 1e-12)
    by_column = wide[1] * (errors.sum(axis=0) + 1e-12)
    scores = np.concatenate([by_row, by_column])
    at: int = int(np.argmax(scores))
    return (True, at) if at < len(by_row) else (False, at - len(by_row))
