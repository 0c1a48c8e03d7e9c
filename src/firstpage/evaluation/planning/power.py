"""Power of paired t-tests, and the number of queries that a power takes."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from firstpage.core import MeasureError

MAX_SHIFT = 35.0  # a noncentrality from which on SciPy's series may fail
MAX_QUERIES = 10**9
QUANTILES = 10_000
Sides = Literal[1, 2]


def power_of_shift(shift: float, queries: int, alpha: float, sides: Sides = 2) -> float:
    """Return the power of a t-test where the mean is `shift` standard errors from the hypothesis.

    The statistic then has a noncentral t distribution; SciPy computes its tails.
    """
    from scipy.special import nctdtr, stdtrit

    if queries < 2:
        return 0.0
    freedom = queries - 1
    limit = float(stdtrit(freedom, 1 - alpha / sides))
    if shift == 0:
        return alpha
    power = 1 - float(nctdtr(freedom, shift, limit)) if shift <= MAX_SHIFT else math.nan
    if math.isnan(power):
        return _integrated_power(shift, limit, freedom)
    below = float(nctdtr(freedom, shift, -limit)) if sides == 2 else 0.0
    return power + (0.0 if math.isnan(below) else below)


def _integrated_power(shift: float, limit: float, freedom: int) -> float:
    """Return P(T > limit) of a noncentral t variable: the mean over quantiles of its deviation."""
    from scipy.special import chdtri, ndtr

    tails = (np.arange(QUANTILES) + 0.5) / QUANTILES
    deviations = np.sqrt(chdtri(freedom, tails) / freedom)
    return float(ndtr(shift - limit * deviations).mean())


def required_queries(
    difference: float, deviation: float, alpha: float = 0.05, power: float = 0.8, sides: Sides = 2
) -> int:
    """Return the least number of queries with which a paired t-test has this power.

    `deviation` is the standard deviation of the differences per query.
    """
    check_probability("alpha", alpha)
    check_probability("power", power)
    if not difference > 0 or not math.isfinite(difference):
        raise MeasureError(f"the difference must be a positive number; got {difference}.")
    if deviation == 0:
        return 2

    def enough(queries: int) -> bool:
        shift = difference / deviation * math.sqrt(queries)
        return power_of_shift(shift, queries, alpha, sides) >= power

    high = 2
    while not enough(high):
        high *= 2
        if high > MAX_QUERIES:
            raise MeasureError(
                f"a difference of {difference:g} would take more than {MAX_QUERIES:,} queries."
            )
    low = high // 2
    while high - low > 1:  # the power grows with the number of queries
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(high, 2)


def check_probability(name: str, value: float) -> None:
    """Refuse a probability that is not between 0 and 1."""
    if not 0 < value < 1:
        raise MeasureError(f"{name} must be between 0 and 1; got {value}.")
