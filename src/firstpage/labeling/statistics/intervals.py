"""Shares with Wilson intervals, and bootstrap intervals over queries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from firstpage.measures import significance
from firstpage.types import Floats


@dataclass(frozen=True)
class Proportion:
    """`hits` of `total`, with Wilson's score interval (Wilson 1927); NaN of nothing."""

    hits: int
    total: int
    level: float = 0.95

    @property
    def value(self) -> float:
        return self.hits / self.total if self.total else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Low and high; from 0 to 1 where nothing is known."""
        if not self.total:
            return 0.0, 1.0
        n, p = self.total, self.value
        z = NormalDist().inv_cdf((1 + self.level) / 2)
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        low = 0.0 if self.hits == 0 else middle - half
        return low, 1.0 if self.hits == n else middle + half

    def to_dict(self) -> dict[str, Any]:
        low, high = self.interval
        return {
            "hits": self.hits, "total": self.total, "value": defined(self.value),
            "low": low, "high": high,
        }  # fmt: skip


@dataclass(frozen=True)
class Interval:
    """A value with the bounds between which it lies at `level`; NaN where not known."""

    value: float
    low: float
    high: float
    level: float = 0.95

    def to_dict(self) -> dict[str, Any]:
        return {name: defined(getattr(self, name)) for name in ("value", "low", "high", "level")}

    def __str__(self) -> str:
        return f"{shown(self.value)} [{shown(self.low)}, {shown(self.high)}]"


def bootstrap(
    statistic: Callable[[Floats], Floats],
    groups: int,
    rounds: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """A statistic and its percentile interval when queries are drawn again, with repetition.

    `statistic` takes weights (rounds x groups: how often each query was drawn) and gives a
    value a round; rounds without a value (NaN) do not count.  One query has no interval.
    """
    if groups == 0:
        return Interval(math.nan, math.nan, math.nan, level)
    value = float(statistic(np.ones((1, groups)))[0])
    if groups < 2 or math.isnan(value):
        return Interval(value, math.nan, math.nan, level)
    return Interval(value, *significance.bootstrap(statistic, groups, rounds, seed, level), level)


def ratio(over: float, under: float) -> float:
    """over / under, and NaN where there is nothing below."""
    return over / under if under else math.nan


def defined(value: float) -> float | None:
    """For JSON, which has no NaN: None in its place."""
    return None if math.isnan(value) else float(value)


def shown(value: float, digits: int = 3) -> str:
    """For a table: a dash where there is no value."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"
