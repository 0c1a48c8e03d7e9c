"""DCG: how far its steps may move before a difference changes its sign, exactly.

The least of a bilinear form over two boxes is at corners of both.  For each corner of the
smaller box the best of the other is known, so all corners of one box are looked at.
"""

from __future__ import annotations

import numpy as np

from firstpage.dcglearn.certificates.problem import Problem
from firstpage.types import Floats

CORNERS = 13  # the smaller box may have so many sides
FAR = 1e9  # a factor beyond all use
ROUNDING = 1e-14  # of a sum, relative to its terms
EXACT = 1e-6  # relative width of the interval in which a factor is said


def is_exact(problem: Problem) -> bool:
    rows, columns = problem.shape
    return problem.below is None and (rows == 1 or min(rows, columns) <= CORNERS)


def least(problem: Problem, factor: float) -> tuple[float, Floats, Floats]:
    """The least difference with all steps within the factor, and the multipliers that give it."""
    form = problem.above[0]
    rows, columns = problem.shape
    if rows == 1:
        best = _answers(form[0], factor)
        return float(form[0] @ best), np.ones(1), best
    if rows < columns:
        value, b, a = _least(form.T, factor)
        return value, a, b
    return _least(form, factor)


def _least(form: Floats, factor: float) -> tuple[float, Floats, Floats]:
    """Over all corners of the columns."""
    size = form.shape[1]
    bits = (np.arange(2**size)[:, None] >> np.arange(size)) & 1
    corners = np.where(bits, factor, 1.0 / factor)
    found = corners @ form.T
    values = (found * _answers(found, factor)).sum(axis=1)
    at = int(values.argmin())
    return float(values[at]), _answers(found[at], factor), corners[at]


def _answers(slopes: Floats, factor: float) -> Floats:
    """The corner at which a linear form is least."""
    return np.where(slopes < 0, factor, 1.0 / factor)


def radius(problem: Problem) -> tuple[float, float]:
    """The difference stays above zero up to the first factor, and is below it at the second."""
    form = problem.above[0]
    if not (form < 0).any():
        return np.inf, np.inf
    if problem.shape[0] == 1:
        root = np.sqrt(form[form > 0].sum() / -form[form < 0].sum())
        return float(root * (1 - EXACT)), float(root * (1 + EXACT))
    low, high = 1.0, 2.0
    while least(problem, high)[0] >= 0:
        low, high = high, high**2
        if high > FAR:
            return low, np.inf
    while high > low * (1 + EXACT):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if least(problem, middle)[0] > 0 else (low, middle)
    return low, high * (1 + EXACT)


def corner(problem: Problem) -> tuple[Floats, Floats] | None:
    """Multipliers, all above zero, that turn the difference by one entry below zero; or None.

    They are near the measure that counts documents of one level in the first places, with a
    little of every other step: as much as leaves the sign.
    """
    form = problem.above[0]
    rows, columns = problem.shape
    entries = np.argwhere(form < 0)[np.argsort(form[form < 0])][:8]
    for little in np.geomspace(0.3, 1e-12, 40):
        for r, c in entries.tolist():
            b, a = np.full(rows, little), np.full(columns, little)
            b[r] = a[c] = 1.0
            if problem.value(b, a) < 0.5 * form[r, c]:  # well below zero, not by rounding
                return b, a
    return None
