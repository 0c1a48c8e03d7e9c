"""Tests of the mean of a bounded variable, valid for small samples and rare extreme values.

Student's test fails where a sample lacks values that are rare and large: 50 queries without a
difference have no deviation, although each tenth sample of this size misses 4.5 % of broken
queries.  Gaffke's test (2005) adds one value to the sample, the most extreme that is possible, and
weights the values at random (uniformly on the simplex, as the Bayesian bootstrap does).  The
p-value is the probability that the weighted mean reaches the limit.  For samples of two values it
is the exact binomial test.  Its level is proven in special cases only, but no counterexample is
known (Learned-Miller and Thomas 2019), and with many values it is close to Student's test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from firstpage.core import Floats

STEP = 0.1  # of the integral; its error decreases exponentially with 1 / STEP
BLOCK = 16  # points of the integral that are computed at a time
MAX_STEPS = 1000
NEGLIGIBLE = 1e-12  # relative to the greatest value, or to the integral
MAX_VALUES = 500  # with more different values, close ones are replaced by their mean
BISECTIONS = 100
LIMIT_TOLERANCE = 1e-7  # of confidence limits, relative to the range


@dataclass(frozen=True)
class BoundedSample:
    """Values with weights, and the range of all values that are possible."""

    values: Floats
    weights: Floats
    low: float
    high: float

    def p_at_least(self, limit: float) -> float:
        """Return the p-value of the hypothesis that the mean is at least `limit`."""
        extreme = float(self.weights.max()) * (self.high - limit)
        return _p_nonnegative(np.append(self.weights * (self.values - limit), extreme))

    def p_at_most(self, limit: float) -> float:
        """Return the p-value of the hypothesis that the mean is at most `limit`."""
        extreme = float(self.weights.max()) * (limit - self.low)
        return _p_nonnegative(np.append(self.weights * (limit - self.values), extreme))

    def lower_limit(self, alpha: float) -> float:
        """Return the lower confidence limit of the mean, of confidence 1 - alpha."""
        from scipy.optimize import brentq

        top = float(self.values.max())
        if top <= self.low:
            return self.low
        tolerance = LIMIT_TOLERANCE * (self.high - self.low)
        return float(
            brentq(lambda limit: self.p_at_most(limit) - alpha, self.low, top, xtol=tolerance)
        )


def queries_to_exclude(
    margin: float, deviation: float, width: float, alpha: float, power: float
) -> int:
    """Return about how many values exclude a mean below -margin, where the true mean is 0.

    With deviation 0 this is the rule of three: width * log(1 / alpha) / margin values.
    """
    normal = NormalDist()
    noise = deviation * (normal.inv_cdf(1 - alpha) + normal.inv_cdf(power))
    root = noise + math.sqrt(noise**2 + 4 * margin * width * math.log(1 / alpha))
    return math.ceil((root / (2 * margin)) ** 2)


def _p_nonnegative(values: Floats) -> float:
    """Return the probability that a randomly weighted sum of values is at least 0.

    The weights are independent exponential variables.  The moment generating function of the sum
    is the product of 1 / (1 - s v); its inversion integral along a line through the saddle point
    has an integrand without oscillations.
    """
    values = values[np.abs(values) > NEGLIGIBLE * np.abs(values).max()]
    if not (values < 0).any():
        return 1.0
    if not (values > 0).any():
        return 0.0
    values, counts = _binned(values / np.abs(values).max())
    saddle, width = _saddle_point(values, counts)
    total = 0.0
    for start in range(0, MAX_STEPS, BLOCK):
        steps = STEP * np.arange(start, start + BLOCK)
        points = saddle + 1j * width * np.sinh(steps)
        logarithm = -np.log(1 - points[:, None] * values) @ counts
        terms = np.exp(logarithm) / points * np.cosh(steps)
        total += float(terms.real.sum()) - (float(terms[0].real) / 2 if start == 0 else 0.0)
        if abs(terms[-1]) <= NEGLIGIBLE * abs(total):
            break
    probability = total * width * STEP / math.pi + (saddle < 0)
    return min(max(probability, 0.0), 1.0)


def _binned(values: Floats) -> tuple[Floats, Floats]:
    """Return the different values and their counts; means of bins where they are too many.

    The extreme values, and those on both sides of 0, are in different bins.
    """
    different, counts = np.unique(values, return_counts=True)
    if len(different) > MAX_VALUES:
        lowest, highest = different[0], different[-1]
        grid = np.linspace(lowest, highest, MAX_VALUES)
        edges = np.union1d(grid, [np.nextafter(lowest, highest), 0.0])
        bins = np.searchsorted(edges, values, side="right")
        counts = np.bincount(bins)
        sums = np.bincount(bins, values)
        different, counts = sums[counts > 0] / counts[counts > 0], counts[counts > 0]
    return different, counts.astype(np.float64)


def _saddle_point(values: Floats, counts: Floats) -> tuple[float, float]:
    """Return the saddle point of the moment generating function, not too close to 0, and its width.

    The function exists between the reciprocals of the extreme values.
    """
    low, high = 1 / float(values[0]), 1 / float(values[-1])
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if (counts * values / (1 - middle * values)).sum() > 0:
            high = middle
        else:
            low = middle
    width = 1 / math.sqrt(float((counts * (values / (1 - low * values)) ** 2).sum()))
    return math.copysign(max(abs(low), width / 2), low), width
