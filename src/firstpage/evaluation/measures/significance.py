"""Statistical significance: bootstrap confidence intervals over queries, and paired tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from firstpage.core import Array, Floats, MeasureError
from firstpage.core.kernels.measures import (
    bootstrap_means,
    flip_all_signs,
    flip_signs,
    tukey_ranges,
)

CONFIDENCE_LEVEL = 0.95
BOOTSTRAP_ROUNDS = 10_000
MAX_WEIGHTS = 1_000_000  # resampling weights in memory at a time
ROUNDED_DIGITS = 12  # of differences, relative to the greatest value
MAX_EXACT_QUERIES = 20  # with more queries, sign patterns are sampled
MIN_DIFFERING = 6  # differences, below which all have one sign with a probability above 5 %
MIN_VARYING = 10  # queries that vary, below which deviations and intervals are unreliable
Test = Literal["randomization", "t", "wilcoxon"]
Correction = Literal["holm", "bh", "none"]


def percentile_interval(values: Array, level: float = CONFIDENCE_LEVEL) -> Array:
    """Return (lower, upper): the bounds of the central `level` of the values, per column."""
    return np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)


def bootstrap(
    statistic: Callable[[Floats], Floats],
    queries: int,
    rounds: int,
    seed: int,
    level: float = CONFIDENCE_LEVEL,
) -> tuple[float, float]:
    """Return the percentile interval of a statistic over queries drawn with replacement.

    `statistic` takes weights (rounds x queries: how often each query was drawn) and returns one
    value per round.  Rounds whose value is NaN are ignored; the interval is NaN if all are.
    """
    rng = np.random.default_rng(seed)
    equal, step = np.full(queries, 1 / queries), max(1, MAX_WEIGHTS // queries)
    sizes = [min(step, rounds - start) for start in range(0, rounds, step)]
    draws = (rng.multinomial(queries, equal, size).astype(np.float64) for size in sizes)
    values = np.concatenate([statistic(weights) for weights in draws])
    defined = values[~np.isnan(values)]
    low, high = percentile_interval(defined, level) if len(defined) else (math.nan, math.nan)
    return float(low), float(high)


def mean_intervals(
    values: Floats, seed: int, weights: Floats | None = None
) -> list[tuple[float, float]]:
    """Return the bootstrap interval of the (weighted) mean of each row; columns are queries."""
    rows = values if weights is None else np.concatenate([values * weights, weights[None]])
    means = np.empty((BOOTSTRAP_ROUNDS, len(rows)))
    sample = np.empty(values.shape[1], np.int64)
    bootstrap_means(np.ascontiguousarray(rows), seed, sample, means)
    if weights is not None:
        drawn = means[:, -1] > 0  # a sample of queries without weight has no mean
        means = means[drawn, :-1] / means[drawn, -1:]
    return [(float(low), float(high)) for low, high in percentile_interval(means).T]


def difference_interval(
    differences: Floats, seed: int, weights: Floats | None = None
) -> tuple[float, float]:
    """Return the bootstrap interval of a mean difference; it contains 0 if few queries differ."""
    interval = mean_intervals(differences[None], seed, weights)[0]
    return with_zero(interval, differences if weights is None else differences[weights > 0])


def with_zero(interval: tuple[float, float], differences: Array) -> tuple[float, float]:
    """Return the interval, extended to 0 where too few queries differ to exclude it."""
    low, high = interval
    few = np.count_nonzero(differences) < MIN_DIFFERING
    return (min(low, 0.0), max(high, 0.0)) if few else interval


def count_varying(values: Floats) -> int:
    """Return how many values differ from the most frequent one."""
    return len(values) - int(np.unique(values, return_counts=True)[1].max())


def mean_of(values: Floats, weights: Floats | None = None) -> float:
    """Return the mean over queries, weighted where they have weights."""
    return float(values.mean() if weights is None else np.average(values, weights=weights))


def mean_pseudo_values(values: Floats, weights: Floats | None) -> Floats:
    """Return values whose plain mean and standard error are those of the weighted mean.

    The weighted mean is a ratio of two means; its error follows from the linearization
    m + w (v - m) / mean(w).  Without weights the values themselves are returned.
    """
    if weights is None:
        return values
    mean = mean_of(values, weights)
    pseudo: Floats = mean + weights * (values - mean) / weights.mean()
    return pseudo


def t_tails(statistic: float, freedom: float) -> tuple[float, float]:
    """Return the probabilities that Student's t is at most, and at least, this statistic.

    `scipy.stats` computes the same, but importing it takes most of a second.
    """
    from scipy.special import stdtr

    return float(stdtr(freedom, statistic)), float(stdtr(freedom, -statistic))


def paired_differences(values: Floats, others: Floats) -> Floats:
    """Return the differences per query without what rounding left of them.

    Differences that are equal but for rounding become equal, so that tests count them as ties.
    """
    scale = max(1.0, *(float(np.abs(v).max(initial=0.0)) for v in (values, others)))
    differences: Floats = np.round((values - others) / scale, ROUNDED_DIGITS) * scale
    return differences


def _deviation(differences: Floats) -> float:
    """Return the standard deviation; 0 if all differences are the same but for rounding."""
    if len(differences) < 2 or np.ptp(differences) <= 1e-12 * float(np.abs(differences).max()):
        return 0.0
    return float(differences.std(ddof=1))


def paired_t(differences: Floats) -> float:
    """Return the two-sided p-value of Student's paired t-test; 1 if all differences are 0.

    The test does not apply to differences that are all the same: their deviation of 0 is not that
    of the population.  Their p-value is that of the randomization test.
    """
    if len(differences) < 2 or not differences.any():
        return 1.0
    error = _deviation(differences) / math.sqrt(len(differences))
    if error == 0:
        return randomization(differences)
    return 2 * min(t_tails(float(differences.mean()) / error, len(differences) - 1))


def wilcoxon(differences: Floats) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; zero differences are omitted.

    For few queries it is exact also with tied ranks, for which SciPy takes the normal distribution.
    """
    from scipy.stats import rankdata
    from scipy.stats import wilcoxon as signed_rank

    nonzero = differences[differences != 0]
    if len(nonzero) <= MAX_EXACT_QUERIES:
        return randomization(np.sign(nonzero) * rankdata(np.abs(nonzero)))
    return float(signed_rank(nonzero).pvalue)


def randomization(differences: Floats, rounds: int = 100_000, seed: int = 0) -> float:
    """Return the two-sided p-value of Fisher's randomization test of paired differences.

    Under the null hypothesis the sign of each difference is random.  All sign patterns are
    enumerated for up to MAX_EXACT_QUERIES nonzero differences; else `rounds` patterns are sampled,
    and the observed one counts as one more.
    """
    nonzero = differences[differences != 0]
    if not len(nonzero):
        return 1.0
    # A tolerance, so that rounding does not separate equal sums.
    limit = abs(float(nonzero.sum())) - 1e-9 * float(np.abs(nonzero).sum())
    if len(nonzero) <= MAX_EXACT_QUERIES:
        return float(flip_all_signs(nonzero, limit) / 2 ** (len(nonzero) - 1))
    return (flip_signs(_signed_sums(nonzero), rounds, seed, limit) + 1) / (rounds + 1)


def _signed_sums(differences: Floats) -> Floats:
    """Return the sums of each eight differences for the 256 patterns of their signs, as rows."""
    groups = np.zeros(-(-len(differences) // 8) * 8)
    groups[: len(differences)] = differences
    positive = np.arange(256) >> np.arange(8)[:, None] & 1
    sums: Floats = groups.reshape(-1, 8) @ (2.0 * positive - 1.0)
    return sums


def p_value(
    differences: Floats, test: Test, rounds: int, seed: int, weights: Floats | None = None
) -> float:
    """Return the p-value of the named test; `rounds` and `seed` are for randomization only.

    With weights the hypothesis is about the weighted mean; Wilcoxon's test has no such form.
    """
    if test == "t":
        return paired_t(mean_pseudo_values(differences, weights))
    if test == "wilcoxon":
        if weights is not None:
            raise MeasureError(
                "wilcoxon has no form for weighted queries; take randomization or t."
            )
        return wilcoxon(differences)
    weighted = differences if weights is None else differences * weights / weights.mean()
    return randomization(weighted, rounds, seed)


def format_p(p: float) -> str:
    """Return a p-value as a cell of a table: ``0.0341``, ``<.0001``."""
    return "<.0001" if p < 0.0001 else f"{p:.4f}"


def p_phrase(p: float) -> str:
    """Return a p-value as a part of a sentence: ``p = 0.0341``, ``p < .0001``."""
    return "p < .0001" if p < 0.0001 else f"p = {p:.4f}"


def randomized_tukey(values: Floats, rounds: int = 20_000, seed: int = 0) -> Floats:
    """Return the p-values of all pairs of systems by the randomized Tukey HSD test.

    `values` has one row per system.  The difference of a pair is compared with the distribution of
    the largest difference between any two systems when each query's values are permuted among the
    systems; this controls the family-wise error rate (Carterette 2012).
    """
    systems, queries = values.shape
    ranges = np.empty(rounds)
    tukey_ranges(np.ascontiguousarray(values.T).reshape(-1), systems, rounds, seed, ranges)
    sums = values.sum(axis=1)
    ranges.sort()
    differences = np.abs(sums[:, None] - sums[None, :])
    tolerance = 1e-9 * max(1.0, float(np.abs(values).sum()) / max(queries, 1))
    reached = rounds - np.searchsorted(ranges, differences - tolerance, side="left")
    p: Floats = (reached + 1.0) / (rounds + 1.0)
    np.fill_diagonal(p, 1.0)
    return p


def adjust_p_values(p: Floats, correction: Correction) -> Floats:
    """Return the p-values of a family of tests, corrected for multiple comparisons.

    "holm" controls the family-wise error rate, "bh" (Benjamini-Hochberg) the false discovery rate.
    """
    p = np.array(p, np.float64)
    if correction == "none" or len(p) < 2:
        return p
    order = np.argsort(p, kind="stable")
    if correction == "bh":
        steps = p[order] * len(p) / np.arange(1, len(p) + 1)
        p[order] = np.minimum.accumulate(steps[::-1])[::-1]
    elif correction == "holm":
        steps = p[order] * np.arange(len(p), 0, -1)
        p[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    else:
        raise MeasureError(f"correction must be holm, bh or none; got {correction!r}.")
    return p


def effect_size(differences: Floats, weights: Floats | None = None) -> float:
    """Return Cohen's d of paired differences: their mean divided by their standard deviation."""
    counted = differences if weights is None else differences[weights > 0]
    mean, deviation = mean_of(differences, weights), _deviation(counted)
    if deviation == 0:
        return 0.0 if not counted.any() else math.copysign(math.inf, mean)
    if weights is not None:
        deviation = math.sqrt(mean_of((differences - mean) ** 2, weights))
    return mean / deviation
