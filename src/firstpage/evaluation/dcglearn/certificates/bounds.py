"""A lower bound of the difference in a box of gains and discounts, by linear programming.

Products and ratios are relaxed to linear constraints, so that the minimum of the program is a lower
bound of the true minimum.  The bound is computed from the dual solution: every dual solution gives
a valid bound, so that the tolerance of the solver does not matter.

Except for the ratios, the unknowns are multiplied by a scale s that makes the ideal value of the
group of largest weight 1.  They are s, the cells M = s * row * column, the ratio V of every group,
and, where rows vary too, the columns A = s * column and the rows B = s * row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from firstpage.core import Floats
from firstpage.evaluation.dcglearn.certificates.problem import SumOfRatios

Limits = tuple[Floats, Floats]  # lower, upper
LINPROG: Any = linprog  # its type stubs do not know sparse matrices
ZERO_SPLIT = 0.1  # a side from zero is split at this fraction of its upper limit
MIN_SIZE = 1e-9  # size of a group whose steps are all zero
MIN_WIDTH = 1e-6  # a side from zero counts as this wide


@dataclass(frozen=True, eq=False)
class Box:
    """Lower and upper limits of the multipliers of rows and columns."""

    rows: Limits
    columns: Limits

    @property
    def cells(self) -> Limits:
        """Limits of the products of rows and columns."""
        low, high = (np.outer(self.rows[i], self.columns[i]).ravel() for i in (0, 1))
        return low, high

    def split(self, row: bool, index: int) -> tuple[Box, Box]:
        """Split one side at its geometric mean; a side from zero, near its upper limit."""
        low, high = self.rows if row else self.columns
        middle = np.sqrt(max(low[index], ZERO_SPLIT**2 * high[index]) * high[index])
        below, above = high.copy(), low.copy()
        below[index] = above[index] = middle
        halves = (low, below), (above, high)
        if row:
            return Box(halves[0], self.columns), Box(halves[1], self.columns)
        return Box(self.rows, halves[0]), Box(self.rows, halves[1])


@dataclass(frozen=True, eq=False)
class LowerBound:
    """A lower bound of the difference in a box.

    `rows` and `columns` are the multipliers at which the relaxation is minimal, `split` the side to
    split next: whether it is a row, and its index.
    """

    value: float
    rows: Floats
    columns: Floats
    split: tuple[bool, int]


class _Layout:
    """Slices of the unknowns of the linear program."""

    def __init__(self, problem: SumOfRatios) -> None:
        rows, columns = problem.shape
        groups, cells = len(problem.numerators), rows * columns
        rows_vary = rows > 1
        ends = np.cumsum([1, cells, groups, columns * rows_vary, rows * rows_vary]).tolist()
        self.cells, self.ratios, self.columns, self.rows = (slice(a, b) for a, b in pairwise(ends))
        self.size = ends[-1]


def min_ratio(numerators: Floats, denominators: Floats, low: Floats, high: Floats) -> Floats:
    """Return a lower bound of (numerators . m) / (denominators . m) over m in a box, per row.

    Dinkelbach's iteration finds the minimum; its remaining error is subtracted.  Where
    `denominators . low` is zero, the smallest of the elementwise ratios is a bound.
    """
    ratio = (numerators @ high) / (denominators @ high)
    for _ in range(60):
        m = np.where(numerators < ratio[:, None] * denominators, high, low)
        bottom = (denominators * m).sum(axis=1)
        better = np.divide((numerators * m).sum(axis=1), bottom, out=ratio.copy(), where=bottom > 0)
        done = np.abs(better - ratio).max(initial=0.0) < 1e-14
        ratio = better
        if done:
            break
    remainder = numerators - ratio[:, None] * denominators
    error = np.where(remainder < 0, remainder * high, remainder * low).sum(axis=1)
    elementwise = np.divide(
        numerators, denominators, out=np.full_like(numerators, np.inf), where=denominators > 0
    )
    bottom = denominators @ low
    bound: Floats = np.divide(
        np.minimum(error, 0.0), bottom, out=elementwise.min(axis=1), where=bottom > 0
    )
    bound[bottom > 0] += ratio[bottom > 0]
    return bound


def lower_bound(problem: SumOfRatios, box: Box) -> LowerBound:
    """Return a lower bound of the difference in a box."""
    numerators, denominators = problem.flat()
    low, high = box.cells
    weight = np.abs(numerators).sum(axis=1) / denominators.sum(axis=1)
    heaviest = int(np.where(denominators @ low > 0, weight, -1.0).argmax())
    unit = denominators[heaviest]
    values = (
        min_ratio(numerators, denominators, low, high),
        -min_ratio(-numerators, denominators, low, high),
    )
    units = np.broadcast_to(unit, denominators.shape)
    sizes = (min_ratio(denominators, units, low, high), -min_ratio(-denominators, units, low, high))
    layout = _Layout(problem)
    limits = _limits(layout, box, (1.0 / float(unit @ high), 1.0 / float(unit @ low)), values)
    matrix, right = _ratio_constraints(problem, layout, sizes, values)
    if problem.shape[0] > 1:
        cell_matrix = _product_constraints(problem, layout, box)
    else:
        cell_matrix = _side_constraints(layout, box)
    constraints = (
        csr_array(np.vstack([matrix, cell_matrix])),
        np.append(right, np.zeros(len(cell_matrix))),
    )
    cost, norm = np.zeros(layout.size), np.zeros((1, layout.size))
    cost[layout.ratios], norm[0, layout.cells] = 1.0, unit
    solution = LINPROG(cost, *constraints, norm, [1.0], np.transpose(limits), method="highs")
    floor = float(values[0].sum())
    if solution.x is None:  # the solver failed; the sum of the separate bounds still holds
        return _bound(problem, layout, box, floor, limits[0])
    value = _dual_value(cost, constraints, norm, limits, solution)
    return _bound(problem, layout, box, max(value, floor), solution.x)


def _limits(layout: _Layout, box: Box, scales: tuple[float, float], values: Limits) -> Limits:
    """Return the lower and upper limits of all unknowns."""
    limits = []
    for i in (0, 1):
        limit = np.full(layout.size, scales[i])
        limit[layout.cells] *= box.cells[i]
        limit[layout.ratios] = values[i]
        if layout.columns.start < layout.columns.stop:
            limit[layout.columns] *= box.columns[i]
            limit[layout.rows] *= box.rows[i]
        limits.append(limit)
    return limits[0], np.maximum(limits[0], limits[1])


def _ratio_constraints(
    problem: SumOfRatios, layout: _Layout, sizes: Limits, values: Limits
) -> tuple[Floats, Floats]:
    """(V - min V)(max size - size) >= 0 and (max V - V)(size - min size) >= 0."""
    numerators, denominators = problem.flat()
    blocks, right = [], []
    for value, size in ((values[0], sizes[1]), (values[1], sizes[0])):
        block = np.zeros((len(numerators), layout.size))
        block[:, layout.cells] = numerators - value[:, None] * denominators
        block[:, layout.ratios] = -np.diag(size)
        blocks.append(block)
        right.append(-value * size)
    return np.vstack(blocks), np.concatenate(right)


def _side_constraints(layout: _Layout, box: Box) -> Floats:
    """low s <= M <= high s."""
    size = len(box.cells[0])
    blocks = []
    for sign, limit in ((-1.0, box.cells[0]), (1.0, box.cells[1])):
        block = np.zeros((size, layout.size))
        block[:, layout.cells] = sign * np.eye(size)
        block[:, 0] = -sign * limit
        blocks.append(block)
    return np.vstack(blocks)


def _product_constraints(problem: SumOfRatios, layout: _Layout, box: Box) -> Floats:
    """McCormick's four planes around M s = B A, and the limits of A and B."""
    rows, columns = problem.shape
    r, c = (grid.ravel() for grid in np.indices((rows, columns)))
    blocks = []
    # (b - row limit)(a - column limit) has a known sign at each pair of limits
    for i, j in ((0, 0), (1, 1), (1, 0), (0, 1)):
        sign = -1.0 if i == j else 1.0
        b, a = box.rows[i][r], box.columns[j][c]
        block = np.zeros((rows * columns, layout.size))
        cell = np.arange(rows * columns)
        block[cell, layout.cells.start + cell] = sign
        block[cell, layout.columns.start + c] = -sign * b
        block[cell, layout.rows.start + r] = -sign * a
        block[:, 0] = sign * b * a
        blocks.append(block)
    for unknowns, limits in ((layout.columns, box.columns), (layout.rows, box.rows)):
        for sign, limit in ((-1.0, limits[0]), (1.0, limits[1])):
            block = np.zeros((len(limit), layout.size))
            block[:, unknowns] = sign * np.eye(len(limit))
            block[:, 0] = -sign * limit
            blocks.append(block)
    return np.vstack(blocks)


def _dual_value(
    cost: Floats, constraints: tuple[Any, Floats], norm: Floats, limits: Limits, solution: Any
) -> float:
    """Return the bound of the dual solution, by weak duality.

    Wrong signs of the dual variables are set to 0, and every unknown is taken within its limits.
    """
    matrix, right = constraints
    prices = np.minimum(solution.ineqlin.marginals, 0.0)
    price = float(solution.eqlin.marginals[0])
    reduced = cost - matrix.T @ prices - price * norm[0]
    remainder = np.where(reduced > 0, reduced * limits[0], reduced * limits[1]).sum()
    return float(prices @ right + price + remainder)


def _bound(
    problem: SumOfRatios, layout: _Layout, box: Box, value: float, point: Floats
) -> LowerBound:
    """Return the bound with its rows and columns, and the side to split next."""
    numerators, denominators = problem.flat()
    scale, cells = float(point[0]), np.maximum(point[layout.cells], 0.0)
    top, size = numerators @ cells, np.maximum(denominators @ cells, MIN_SIZE)
    gaps = np.maximum(top / size - point[layout.ratios], 0.0)
    cell_errors = (
        (gaps[:, None] * denominators * cells / size[:, None]).sum(axis=0).reshape(problem.shape)
    )
    if problem.shape[0] == 1:
        rows, columns, errors = np.ones(1), cells / scale, cell_errors
    else:
        rows, columns = point[layout.rows] / scale, point[layout.columns] / scale
        weight = np.abs((numerators - (top / size)[:, None] * denominators) / size[:, None]).sum(
            axis=0
        )
        product_errors = np.abs(cells / scale - np.outer(rows, columns).ravel()) * weight * scale
        errors = cell_errors + product_errors.reshape(problem.shape)
    rows, columns = np.clip(rows, *box.rows), np.clip(columns, *box.columns)
    return LowerBound(value, rows, columns, _split_side(box, errors))


def _split_side(box: Box, errors: Floats) -> tuple[bool, int]:
    """Return the side with the largest product of logarithmic width and error."""
    widths = [
        np.log(high / np.maximum(low, MIN_WIDTH * high)) for low, high in (box.rows, box.columns)
    ]
    by_row = widths[0] * (errors.sum(axis=1) + 1e-12)
    by_column = widths[1] * (errors.sum(axis=0) + 1e-12)
    scores = np.concatenate([by_row, by_column])
    index: int = int(np.argmax(scores))
    return (True, index) if index < len(by_row) else (False, index - len(by_row))
