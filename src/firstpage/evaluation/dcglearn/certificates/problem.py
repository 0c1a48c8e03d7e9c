"""The optimization problem behind a verdict: can a difference change its sign?

Gains that increase with the grade are sums of steps h_l >= 0 for "at least grade l"; discounts that
decrease with the position are sums of steps c_j >= 0 for "among the first j positions".  The
difference of two systems in DCG is then  sum over j, l of  c_j X[j, l] h_l,  where X[j, l] is how
many more documents of at least grade l the first system has among its first j positions, on
average.  In NDCG every query is divided by the same sum over its ideal order, and queries with the
same ideal order form a group.

Steps are relative to those of the reference measure: m[j, l] = 1 is the measure itself.

For DCG the answer is exact.  A bilinear form over two boxes is minimal at corners of both.  For
each corner of the smaller box the best corner of the other is known, so that all corners of the
smaller box are enumerated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from firstpage.core import Floats, MeasureError
from firstpage.data.preferences import Utility
from firstpage.evaluation.dcglearn.system_rankings import (
    BoundDCG,
    SystemRankings,
    ideal,
    measure_steps,
)
from firstpage.evaluation.dcglearn.weights import rank_one_factors

Vary = Literal["gains", "discounts", "both", "weights"]
COUNT_TOLERANCE = 1e-12  # smaller mean counts are rounding error


@dataclass(frozen=True, eq=False)
class SumOfRatios:
    """Sum over groups of (numerators . m) / (denominators . m), m[r, c] = rows[r] * columns[c].

    With a single row only the columns vary.

    Attributes
    ----------
    numerators : ndarray
        Groups x rows x columns.
    denominators : ndarray or None
        Groups x rows x columns; None for DCG, which has one group.
    """

    numerators: Floats
    denominators: Floats | None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.numerators.shape[1], self.numerators.shape[2]

    def value(self, rows: Floats, columns: Floats) -> float:
        """Return the sum at these multipliers."""
        m = np.outer(rows, columns)
        top = np.einsum("grc,rc->g", self.numerators, m)
        if self.denominators is None:
            return float(top.sum())
        return float((top / np.einsum("grc,rc->g", self.denominators, m)).sum())

    def flat(self) -> tuple[Floats, Floats]:
        """Return numerators and denominators with flattened cells.

        The denominators of DCG are all ones, which preserves the sign.
        """
        groups = len(self.numerators)
        numerators = self.numerators.reshape(groups, -1)
        if self.denominators is None:
            return numerators, np.ones_like(numerators)
        return numerators, self.denominators.reshape(groups, -1)


@dataclass(frozen=True, eq=False)
class SystemContrast:
    """Two systems under one measure: differences of counts, and the steps of the measure.

    Attributes
    ----------
    dcg : BoundDCG
        The measure.
    vary : {"gains", "discounts", "both", "weights"}
        What may vary.
    decreasing : bool
        Whether discounts must decrease with the position.
    count_differences : ndarray
        Groups x positions x steps: counts of the first system minus the second, over queries.
    ideal_counts : ndarray or None
        Groups x positions x steps: counts of the ideal order; None for DCG.
    discount_steps, gain_steps, weight_steps : ndarray
        Steps of the measure.
    """

    dcg: BoundDCG
    vary: Vary
    decreasing: bool
    count_differences: Floats
    ideal_counts: Floats | None
    discount_steps: Floats
    gain_steps: Floats
    weight_steps: Floats

    def problem(self, free: bool = False) -> SumOfRatios:
        """Return the problem relative to the steps of the measure.

        With `free` it is relative to ones, so that steps of zero may change too.
        """
        denominators = None if self.ideal_counts is None else self._reduce(self.ideal_counts, free)
        numerators = self._reduce(self.count_differences, free)
        size = self._reduce(np.abs(self.count_differences), free)
        numerators[np.abs(numerators) <= COUNT_TOLERANCE * size] = (
            0.0  # rounding after cancellation
        )
        if denominators is None:
            return SumOfRatios(numerators, None)
        nonzero = denominators.any(axis=(1, 2)) & numerators.any(axis=(1, 2))
        return SumOfRatios(numerators[nonzero], denominators[nonzero])

    def _reduce(self, counts: Floats, free: bool) -> Floats:
        """Return the coefficients of the multipliers that may vary."""
        discount_steps, gain_steps, weight_steps = self.steps(free)
        if self.vary == "both":
            return counts * np.outer(discount_steps, gain_steps)
        if self.vary == "gains":
            summed: Floats = np.einsum("gjl,j->gl", counts, self.discount_steps) * gain_steps
            return summed[:, None, :]
        if self.vary == "discounts":
            return ((counts @ self.gain_steps) * discount_steps)[:, None, :]
        return (counts * weight_steps).reshape(len(counts), 1, -1)

    def steps(self, free: bool) -> tuple[Floats, Floats, Floats]:
        """Return the steps of discounts, gains and weights that multipliers apply to."""
        steps = self.discount_steps, self.gain_steps, self.weight_steps
        if not free:
            return steps
        return np.ones_like(steps[0]), np.ones_like(steps[1]), np.ones_like(steps[2])

    @property
    def varied_steps(self) -> tuple[Floats, ...]:
        """The steps of the measure that may vary."""
        kinds = {
            "gains": (self.gain_steps,),
            "discounts": (self.discount_steps,),
            "both": (self.discount_steps, self.gain_steps),
        }
        return kinds.get(self.vary, (self.weight_steps,))

    def utility(self, rows: Floats, columns: Floats, free: bool = False) -> Utility:
        """Return the measure with these multipliers."""
        discount_steps, gain_steps, weight_steps = self.steps(free)
        grades = self.dcg.utility.grades
        if self.vary == "weights":
            scaled = weight_steps * columns.reshape(weight_steps.shape)
            return _utility_from_steps(self._cumulate(scaled), grades)
        if self.vary == "both":
            discount_steps, gain_steps = discount_steps * rows, gain_steps * columns
        elif self.vary == "gains":
            discount_steps, gain_steps = self.discount_steps, gain_steps * columns
        else:
            discount_steps, gain_steps = discount_steps * columns, self.gain_steps
        gains = np.concatenate([[0.0], np.cumsum(gain_steps)])
        return Utility.from_gains(gains, self._cumulate(discount_steps[:, None])[:, 0], grades)

    def _cumulate(self, steps: Floats) -> Floats:
        return np.cumsum(steps[::-1], axis=0)[::-1] if self.decreasing else steps


def _utility_from_steps(steps: Floats, grades: tuple[int, ...]) -> Utility:
    """Return the measure with these steps of the weights at every position."""
    weights = np.hstack([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)])
    nearest = rank_one_factors(weights)
    return Utility(grades, weights / weights.max(), nearest.gains, nearest.discounts, "weights")


def contrast(
    rankings: SystemRankings,
    dcg: BoundDCG,
    a: int,
    b: int,
    vary: Vary | None = None,
    decreasing: bool = True,
) -> SystemContrast:
    """Return the contrast of system a and system b; `vary` None: everything the measure has."""
    resolved = _resolve_vary(dcg, vary)
    if dcg.normalized and not decreasing:
        raise MeasureError(
            f"{dcg.text}: with any discounts, the ideal order of NDCG is not that by grade; use "
            "DCG, or require decreasing discounts."
        )
    reached = rankings.reached(dcg)
    difference = reached[a] - reached[b]
    ideal_counts = None
    if dcg.normalized:
        counts = np.minimum(rankings.counts(dcg), dcg.positions)
        distinct, group = np.unique(counts, axis=0, return_inverse=True)
        sums = np.zeros((len(distinct), *difference.shape[1:]))
        np.add.at(sums, group.ravel(), difference)
        ideal_counts = ideal(distinct, dcg.positions)
    else:
        sums = difference.sum(axis=0, keepdims=True)
    sums = sums / len(rankings.queries)
    if decreasing:
        sums = np.cumsum(sums, axis=1)
        ideal_counts = None if ideal_counts is None else np.cumsum(ideal_counts, axis=1)
    sums[np.abs(sums) < COUNT_TOLERANCE] = 0.0
    return SystemContrast(
        dcg, resolved, decreasing, sums, ideal_counts, *measure_steps(dcg, decreasing)
    )


def _resolve_vary(dcg: BoundDCG, vary: Vary | None) -> Vary:
    has_weights = dcg.utility.form == "weights"
    if vary is None:
        return "weights" if has_weights else "both"
    if vary not in ("gains", "discounts", "both", "weights"):
        raise MeasureError(f"vary must be gains, discounts, both or weights; got {vary!r}.")
    if has_weights and vary != "weights":
        raise MeasureError(
            f"{dcg.text} has a weight per position and grade, so that only weights can vary; use "
            "form=gains to vary gains or discounts."
        )
    return vary


MAX_ENUMERATED_SIDES = 13  # of the smaller box, whose corners are enumerated
MAX_EXACT_FACTOR = 1e9  # beyond it a verdict counts as stable
ROUNDING_EPS = 1e-14  # of a sum, relative to its terms
FACTOR_TOLERANCE = 1e-6  # relative width of the interval that contains a factor


def is_exact(problem: SumOfRatios) -> bool:
    """Return whether the minimum can be computed by enumeration."""
    rows, columns = problem.shape
    return problem.denominators is None and (
        rows == 1 or min(rows, columns) <= MAX_ENUMERATED_SIDES
    )


def min_difference(problem: SumOfRatios, factor: float) -> tuple[float, Floats, Floats]:
    """Return the smallest difference with all steps within the factor, and its multipliers."""
    form = problem.numerators[0]
    rows, columns = problem.shape
    if rows == 1:
        best = _best_corner(form[0], factor)
        return float(form[0] @ best), np.ones(1), best
    if rows < columns:
        value, b, a = _enumerate_corners(form.T, factor)
        return value, a, b
    return _enumerate_corners(form, factor)


def _enumerate_corners(form: Floats, factor: float) -> tuple[float, Floats, Floats]:
    """Return the minimum over all corners of the columns."""
    size = form.shape[1]
    bits = (np.arange(2**size)[:, None] >> np.arange(size)) & 1
    corners = np.where(bits, factor, 1.0 / factor)
    coefficients = corners @ form.T
    values = (coefficients * _best_corner(coefficients, factor)).sum(axis=1)
    best = int(values.argmin())
    return float(values[best]), _best_corner(coefficients[best], factor), corners[best]


def _best_corner(coefficients: Floats, factor: float) -> Floats:
    """Return the corner at which a linear form is minimal."""
    return np.where(coefficients < 0, factor, 1.0 / factor)


def exact_radius(problem: SumOfRatios) -> tuple[float, float]:
    """Return a factor up to which the difference is positive, and one at which it is negative."""
    form = problem.numerators[0]
    if not (form < 0).any():
        return np.inf, np.inf
    if problem.shape[0] == 1:
        root = np.sqrt(form[form > 0].sum() / -form[form < 0].sum())
        return float(root * (1 - FACTOR_TOLERANCE)), float(root * (1 + FACTOR_TOLERANCE))
    low, high = 1.0, 2.0
    while min_difference(problem, high)[0] >= 0:
        low, high = high, high**2
        if high > MAX_EXACT_FACTOR:
            return low, np.inf
    while high > low * (1 + FACTOR_TOLERANCE):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if min_difference(problem, middle)[0] > 0 else (low, middle)
    return low, high * (1 + FACTOR_TOLERANCE)


def flip_by_entry(problem: SumOfRatios) -> tuple[Floats, Floats] | None:
    """Return positive multipliers that flip the difference by one negative entry; or None.

    They are near the measure that counts documents of one level in the first positions, with a
    small amount of every other step that preserves the sign.
    """
    form = problem.numerators[0]
    rows, columns = problem.shape
    entries = np.argwhere(form < 0)[np.argsort(form[form < 0])][:8]
    for small in np.geomspace(0.3, 1e-12, 40):
        for r, c in entries.tolist():
            b, a = np.full(rows, small), np.full(columns, small)
            b[r] = a[c] = 1.0
            if problem.value(b, a) < 0.5 * form[r, c]:  # negative by more than rounding error
                return b, a
    return None
