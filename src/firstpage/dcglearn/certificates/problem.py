"""The question behind a verdict, as numbers: may a difference change its sign?

Gains that rise with the grade are sums of steps h_l >= 0 for "at least grade l"; discounts that
fall with the place are sums of steps c_j >= 0 for "among the first j places".  The difference of
two systems in DCG is then  sum over j, l of  c_j X[j, l] h_l,  where X[j, l] is how many more
documents of at least grade l the first system has among its first j places, on average.  In
NDCG every query is divided by the same sum over its ideal order, and queries with the same
ideal order are one group.

Steps are measured by those of the reference measure: m[j, l] = 1 is the measure itself.

For DCG the answer is exact.  The least of a bilinear form over two boxes is at corners of both.
For each corner of the smaller box the best of the other is known, so all corners of one box are
looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.ranked import Ranked, Scale, ideal, steps_of
from firstpage.dcglearn.weights import factors
from firstpage.errors import MeasureError
from firstpage.types import Floats

Vary = Literal["gains", "discounts", "both", "weights"]
ZERO = 1e-12  # mean counts nearer to zero are rounding


@dataclass(frozen=True, eq=False)
class Problem:
    """Sum over groups of (above . m) / (below . m), where m[r, c] = rows[r] * columns[c].

    above, below   groups x rows x columns; below is None for DCG, which has one group
    With a single row only the columns vary.
    """

    above: Floats
    below: Floats | None

    @property
    def shape(self) -> tuple[int, int]:
        return self.above.shape[1], self.above.shape[2]

    def value(self, rows: Floats, columns: Floats) -> float:
        m = np.outer(rows, columns)
        top = np.einsum("grc,rc->g", self.above, m)
        if self.below is None:
            return float(top.sum())
        return float((top / np.einsum("grc,rc->g", self.below, m)).sum())

    def ratios(self) -> tuple[Floats, Floats]:
        """Above and below with flat cells; below all ones for DCG, whose sign stays the same."""
        groups = len(self.above)
        above = self.above.reshape(groups, -1)
        return above, np.ones_like(above) if self.below is None else self.below.reshape(groups, -1)


@dataclass(frozen=True, eq=False)
class Case:
    """Two systems under one measure: counts, and the measure's own steps."""

    scale: Scale
    vary: Vary
    falling: bool
    more: Floats  # groups x places x steps: counts of the one minus the other, over all queries
    best: Floats | None  # groups x places x steps: counts of the ideal order
    down: Floats
    up: Floats
    weights: Floats

    def problem(self, free: bool = False) -> Problem:
        """Around the measure's steps; `free` around ones, where steps of zero may move too."""
        below = None if self.best is None else self._reduced(self.best, free)
        above = self._reduced(self.more, free)
        size = self._reduced(np.abs(self.more), free)
        above[np.abs(above) <= ZERO * size] = 0.0  # sums that cancel leave rounding
        if below is None:
            return Problem(above, None)
        kept = below.any(axis=(1, 2)) & above.any(axis=(1, 2))
        return Problem(above[kept], below[kept])

    def _reduced(self, counts: Floats, free: bool) -> Floats:
        down, up, weights = self.steps(free)
        if self.vary == "both":
            return counts * np.outer(down, up)
        if self.vary == "gains":
            summed: Floats = np.einsum("gjl,j->gl", counts, self.down) * up
            return summed[:, None, :]
        if self.vary == "discounts":
            return ((counts @ self.up) * down)[:, None, :]
        return (counts * weights).reshape(len(counts), 1, -1)

    def steps(self, free: bool) -> tuple[Floats, Floats, Floats]:
        """What multipliers multiply."""
        if not free:
            return self.down, self.up, self.weights
        return np.ones_like(self.down), np.ones_like(self.up), np.ones_like(self.weights)

    @property
    def varied(self) -> tuple[Floats, ...]:
        """The measure's steps that may move."""
        kinds = {"gains": (self.up,), "discounts": (self.down,), "both": (self.down, self.up)}
        return kinds.get(self.vary, (self.weights,))

    def utility(self, rows: Floats, columns: Floats, free: bool = False) -> Utility:
        """The measure that these multipliers make."""
        down, up, weights = self.steps(free)
        grades = self.scale.utility.grades
        if self.vary == "weights":
            return _weighted(self._summed(weights * columns.reshape(weights.shape)), grades)
        if self.vary == "both":
            down, up = down * rows, up * columns
        elif self.vary == "gains":
            down, up = self.down, up * columns
        else:
            down, up = down * columns, self.up
        gains = np.concatenate([[0.0], np.cumsum(up)])
        return Utility.from_gains(gains, self._summed(down[:, None])[:, 0], grades)

    def _summed(self, steps: Floats) -> Floats:
        return np.cumsum(steps[::-1], axis=0)[::-1] if self.falling else steps


def _weighted(steps: Floats, grades: tuple[int, ...]) -> Utility:
    """From steps of every place, with the gains and discounts nearest to them."""
    weights = np.hstack([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)])
    found = factors(weights)
    return Utility(grades, weights / weights.max(), found.gains, found.discounts, "weights")


def case_of(
    ranked: Ranked, scale: Scale, a: int, b: int, vary: Vary | None = None, falling: bool = True
) -> Case:
    """System a against system b.  `vary` None: all that the measure has."""
    chosen = _vary(scale, vary)
    if scale.normalized and not falling:
        raise MeasureError(
            f"{scale.text}: where discounts may be any, the best order that NDCG divides by is not "
            "that by grade; ask for DCG, or let discounts fall."
        )
    reached = ranked.reached(scale)
    more = reached[a] - reached[b]
    best = None
    if scale.normalized:
        counts = np.minimum(ranked.counts(scale), scale.places)
        kinds, group = np.unique(counts, axis=0, return_inverse=True)
        sums = np.zeros((len(kinds), *more.shape[1:]))
        np.add.at(sums, group.ravel(), more)
        best = ideal(kinds, scale.places)
    else:
        sums = more.sum(axis=0, keepdims=True)
    sums = sums / len(ranked.queries)
    if falling:
        sums = np.cumsum(sums, axis=1)
        best = None if best is None else np.cumsum(best, axis=1)
    sums[np.abs(sums) < ZERO] = 0.0
    return Case(scale, chosen, falling, sums, best, *steps_of(scale, falling))


def _vary(scale: Scale, vary: Vary | None) -> Vary:
    by_place = scale.utility.form == "weights"
    if vary is None:
        return "weights" if by_place else "both"
    if vary not in ("gains", "discounts", "both", "weights"):
        raise MeasureError(f"what varies is gains, discounts, both or weights; got {vary!r}.")
    if by_place and vary != "weights":
        raise MeasureError(
            f"{scale.text} has a weight for every place and grade, so its weights vary; give it "
            "in its form of gains to vary gains or discounts."
        )
    return vary


CORNERS = 13  # the smaller box may have so many sides
FAR = 1e9  # a factor beyond all use
ROUNDING = 1e-14  # of a sum, relative to its terms
EXACT = 1e-6  # relative width of the interval in which a factor is said


def is_exact(problem: Problem) -> bool:
    rows, columns = problem.shape
    return problem.below is None and (rows == 1 or min(rows, columns) <= CORNERS)


def least_difference(problem: Problem, factor: float) -> tuple[float, Floats, Floats]:
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


def exact_radius(problem: Problem) -> tuple[float, float]:
    """The difference stays above zero up to the first factor, and is below it at the second."""
    form = problem.above[0]
    if not (form < 0).any():
        return np.inf, np.inf
    if problem.shape[0] == 1:
        root = np.sqrt(form[form > 0].sum() / -form[form < 0].sum())
        return float(root * (1 - EXACT)), float(root * (1 + EXACT))
    low, high = 1.0, 2.0
    while least_difference(problem, high)[0] >= 0:
        low, high = high, high**2
        if high > FAR:
            return low, np.inf
    while high > low * (1 + EXACT):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if least_difference(problem, middle)[0] > 0 else (low, middle)
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
