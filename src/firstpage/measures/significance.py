"""Is a difference between systems more than chance?  Tests over paired per-query values."""

from __future__ import annotations

from typing import Literal

import numpy as np

from firstpage.errors import MeasureError
from firstpage.kernels.measures.resampling import flip_all_signs, flip_signs, tukey_ranges
from firstpage.types import Floats

EXACT_UP_TO = 20  # queries; beyond, sign patterns are sampled
Test = Literal["randomization", "t", "wilcoxon"]
Correction = Literal["holm", "bh", "none"]


def paired_t(differences: Floats) -> float:
    """Two-sided p of Student's paired t test; 1 where all queries are equal."""
    from scipy.special import stdtr

    n = len(differences)
    if n < 2 or not differences.any():
        return 1.0
    spread = differences.std(ddof=1)
    if spread == 0:
        return 0.0
    t = abs(differences.mean()) / (spread / np.sqrt(n))
    return float(2 * stdtr(n - 1, -t))


def wilcoxon(differences: Floats) -> float:
    """Two-sided p of Wilcoxon's signed-rank test; equal queries are left out."""
    from scipy.stats import wilcoxon as signed_rank

    if not differences.any():
        return 1.0
    return float(signed_rank(differences[differences != 0]).pvalue)


def randomization(differences: Floats, rounds: int = 100_000, seed: int = 0) -> float:
    """Two-sided p of Fisher's randomisation test: the sign of every difference is chance.

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
    """p of the named test; the last two matter to randomisation only."""
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


def corrected(p: Floats, how: Correction) -> Floats:
    """p-values of a family of tests, made larger for their number.

    "holm" holds the chance of any false finding, "bh" (Benjamini-Hochberg) their share.
    """
    p = np.asarray(p, np.float64)
    n = len(p)
    if how == "none" or n < 2:
        return p.copy()
    order = np.argsort(p, kind="stable")
    out = np.empty(n)
    if how == "holm":
        raised = np.maximum.accumulate(p[order] * (n - np.arange(n)))
    elif how == "bh":
        raised = np.minimum.accumulate((p[order] * n / np.arange(1, n + 1))[::-1])[::-1]
    else:
        raise MeasureError(f"correction must be holm, bh or none; got {how!r}.")
    out[order] = np.minimum(raised, 1.0)
    return out


def effect_size(differences: Floats) -> float:
    """Cohen's d of paired differences: mean over standard deviation."""
    spread = differences.std(ddof=1) if len(differences) > 1 else 0.0
    if spread == 0:
        return 0.0 if not differences.any() else float(np.copysign(np.inf, differences.mean()))
    return float(differences.mean() / spread)
