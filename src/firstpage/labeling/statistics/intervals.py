"""Proportions with Wilson intervals, and bootstrap intervals over queries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from firstpage.core import Floats
from firstpage.evaluation.measures import significance


@dataclass(frozen=True)
class Proportion:
    """A proportion, `hits` of `total`, with Wilson's score interval (Wilson 1927)."""

    hits: int
    total: int
    level: float = 0.95

    @property
    def value(self) -> float:
        """hits / total; NaN if total is 0."""
        return self.hits / self.total if self.total else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and upper bound; (0, 1) if total is 0."""
        if not self.total:
            return 0.0, 1.0
        n, p = self.total, self.value
        z = NormalDist().inv_cdf((1 + self.level) / 2)
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        low = 0.0 if self.hits == 0 else middle - half
        return low, 1.0 if self.hits == n else middle + half

    def to_dict(self) -> dict[str, Any]:
        """Return the proportion and its interval for JSON."""
        low, high = self.interval
        return {
            "hits": self.hits,
            "total": self.total,
            "value": nan_to_none(self.value),
            "low": low,
            "high": high,
        }


@dataclass(frozen=True)
class Interval:
    """An estimate with a confidence interval.

    Attributes
    ----------
    value : float
        The estimate; NaN if it is not defined.
    low, high : float
        Bounds of the interval; NaN if there is none.
    level : float
        Confidence level.
    """

    value: float
    low: float
    high: float
    level: float = 0.95

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate and its interval for JSON; None in place of NaN."""
        return {
            name: nan_to_none(getattr(self, name)) for name in ("value", "low", "high", "level")
        }

    def __str__(self) -> str:
        return f"{format_value(self.value)} [{format_value(self.low)}, {format_value(self.high)}]"


def bootstrap(
    statistic: Callable[[Floats], Floats],
    groups: int,
    rounds: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return a statistic with its percentile interval over resampled queries.

    `statistic` maps weights of shape (rounds, groups), how often each query was drawn, to a value
    per round; rounds with NaN are ignored.  A single query has no interval.
    """
    if groups == 0:
        return Interval(math.nan, math.nan, math.nan, level)
    value = float(statistic(np.ones((1, groups)))[0])
    if groups < 2 or math.isnan(value):
        return Interval(value, math.nan, math.nan, level)
    return Interval(value, *significance.bootstrap(statistic, groups, rounds, seed, level), level)


def ratio(numerator: float, denominator: float) -> float:
    """Return numerator / denominator; NaN if the denominator is 0."""
    return numerator / denominator if denominator else math.nan


def nan_to_none(value: float) -> float | None:
    """Return the value; None in place of NaN, which JSON does not have."""
    return None if math.isnan(value) else float(value)


def format_value(value: float, digits: int = 3) -> str:
    """Return the value for a table; a dash in place of NaN."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def format_p(p: float) -> str:
    """Return a p-value as a part of a sentence: ``p = .034``, ``p < .001``."""
    if math.isnan(p):
        return "p is not defined"
    if p < 0.001:
        return "p < .001"
    return f"p = {p:.3f}".replace(" 0.", " .")
