"""Is a difference more than chance?  Intervals by the bootstrap over queries, and paired tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Literal

import numpy as np

from firstpage.errors import MeasureError
from firstpage.kernels.measures.resampling import (
    bootstrap_means,
    flip_all_signs,
    flip_signs,
    tukey_ranges,
)
from firstpage.types import Array, Floats

CONFIDENCE_LEVEL = 0.95  # of confidence intervals
ROUNDS = 10_000  # of resampling means
AT_ONCE = 1_000_000  # resampling weights held in memory
EXACT_UP_TO = 20  # queries; beyond, sign patterns are sampled
Test = Literal["randomization", "t", "wilcoxon"]
Correction = Literal["holm", "bh", "none"]


def percentile_interval(values: Array, level: float = CONFIDENCE_LEVEL) -> Array:
    """Return (lower, upper): the ends of the middle `level` of values, by column."""
    return np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)


def bootstrap(
    statistic: Callable[[Floats], Floats], queries: int, rounds: int, seed: int,
    level: float = CONFIDENCE_LEVEL,
) -> tuple[float, float]:  # fmt: skip
    """Return the percentile interval of a statistic over queries drawn with replacement.

    `statistic` takes weights (rounds x queries: how often each query was drawn) and returns a
    value per round.  Rounds without a value (NaN) do not count; NaN where none has one.
    """
    rng = np.random.default_rng(seed)
    equal, step = np.full(queries, 1 / queries), max(1, AT_ONCE // queries)
    sizes = [min(step, rounds - at) for at in range(0, rounds, step)]
    draws = (rng.multinomial(queries, equal, size).astype(np.float64) for size in sizes)
    values = np.concatenate([statistic(weights) for weights in draws])
    known = values[~np.isnan(values)]
    low, high = percentile_interval(known, level) if len(known) else (math.nan, math.nan)
    return float(low), float(high)


def mean_intervals(values: Floats, seed: int) -> list[tuple[float, float]]:
    """Return the bootstrap interval of the mean of each row, over its columns, the queries."""
    means = np.empty((ROUNDS, len(values)))
    picks = np.empty(values.shape[1], np.int64)
    bootstrap_means(np.ascontiguousarray(values), seed, picks, means)
    return [(float(low), float(high)) for low, high in percentile_interval(means).T]


def paired_t(differences: Floats) -> float:
    """Two-sided p of Student's paired t test; 1 where all queries are equal."""
    from scipy.stats import ttest_1samp

    if len(differences) < 2 or not differences.any():
        return 1.0
    with warnings.catch_warnings():  # SciPy warns of differences that are all the same: p is 0
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(ttest_1samp(differences, 0.0).pvalue)


def wilcoxon(differences: Floats) -> float:
    """Two-sided p of Wilcoxon's signed-rank test; equal queries are left out."""
    from scipy.stats import wilcoxon as signed_rank

    if not differences.any():
        return 1.0
    return float(signed_rank(differences[differences != 0]).pvalue)


def randomization(differences: Floats, rounds: int = 100_000, seed: int = 0) -> float:
    """Two-sided p of Fisher's randomization test: the sign of every difference is chance.

    All sign patterns are tried for few queries (equal ones do not count); else `rounds`
    random ones, where the observed pattern counts as one more.
    """
    moved = differences[differences != 0]
    if not len(moved):
        return 1.0
    # What sums to the same must not differ by rounding.
    limit = abs(float(moved.sum())) - 1e-9 * float(np.abs(moved).sum())
    if len(moved) <= EXACT_UP_TO:
        return float(flip_all_signs(moved, limit) / 2 ** (len(moved) - 1))
    return (flip_signs(moved, rounds, seed, limit) + 1) / (rounds + 1)


def p_value(differences: Floats, test: Test, rounds: int, seed: int) -> float:
    """p of the named test; the last two matter to randomization only."""
    if test == "t":
        return paired_t(differences)
    if test == "wilcoxon":
        return wilcoxon(differences)
    return randomization(differences, rounds, seed)


def randomized_tukey(values: Floats, rounds: int = 20_000, seed: int = 0) -> Floats:
    """p of every pair of systems, holding the error of all comparisons together.

    `values` has a row a system.  The chance of a difference is judged by the largest one
    between any two systems when each query's values are dealt out at random (Carterette 2012).
    """
    systems, queries = values.shape
    ranges = np.empty(rounds)
    tukey_ranges(np.ascontiguousarray(values.T).reshape(-1), systems, rounds, seed, ranges)
    sums = values.sum(axis=1)
    ranges.sort()
    gaps = np.abs(sums[:, None] - sums[None, :])
    slack = 1e-9 * max(1.0, float(np.abs(values).sum()) / max(queries, 1))
    reached = rounds - np.searchsorted(ranges, gaps - slack, side="left")
    found: Floats = (reached + 1.0) / (rounds + 1.0)
    np.fill_diagonal(found, 1.0)
    return found


def adjust_p_values(p: Floats, how: Correction) -> Floats:
    """p-values of a family of tests, made larger for their number.

    "holm" holds the chance of any false finding, "bh" (Benjamini-Hochberg) their share.
    """
    p = np.array(p, np.float64)
    if how == "none" or len(p) < 2:
        return p
    if how == "bh":
        from scipy.stats import false_discovery_control

        return np.asarray(false_discovery_control(p))
    if how != "holm":
        raise MeasureError(f"correction must be holm, bh or none; got {how!r}.")
    order = np.argsort(p, kind="stable")
    raised = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    p[order] = np.minimum(raised, 1.0)
    return p


def effect_size(differences: Floats) -> float:
    """Cohen's d of paired differences: mean over standard deviation."""
    spread = differences.std(ddof=1) if len(differences) > 1 else 0.0
    if spread == 0:
        return 0.0 if not differences.any() else float(np.copysign(np.inf, differences.mean()))
    return float(differences.mean() / spread)
