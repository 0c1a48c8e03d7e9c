"""Estimates of propensities, with the influence of each query on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from firstpage.clicks.models.pages import totals
from firstpage.clicks.position_bias.counts import SwapCounts
from firstpage.core import Bools, DataError, Floats, Ints

MAX_STEPS, MAX_STEP, CONVERGED = 100, 2.0, 1e-10
MIN_QUERIES = 2.0  # effective ones, below which there is no interval


@dataclass(frozen=True, eq=False)
class LogEstimate:
    """Logarithms of propensities relative to the rank in column `reference`; NaN where unknown.

    `influence` has the influence of each query on each logarithm, and `weights` the information
    (or the clicks) that the query has about each rank.
    """

    values: Floats
    influence: Floats
    weights: Floats
    reference: int

    @property
    def effective_queries(self) -> Floats:
        """How many queries of equal weight are as good as these, by rank."""
        total, squares = self.weights.sum(axis=0), np.square(self.weights).sum(axis=0)
        return np.asarray(total**2 / np.where(squares > 0, squares, 1.0))

    @property
    def errors(self) -> Floats:
        """Standard errors over queries, NaN where there are too few."""
        n, enough = len(self.influence), self.effective_queries >= MIN_QUERIES
        scale = n / (n - 1) if n > 1 else np.nan
        errors = np.sqrt(np.square(self.influence).sum(axis=0) * scale)
        errors[~(enough & np.isfinite(self.values))] = np.nan
        errors[self.reference] = 0.0
        return np.asarray(errors)

    def bounds(self, level: float) -> tuple[Floats, Floats]:
        """Return the bounds of intervals of the logarithms: Student's t by effective queries."""
        half = half_width(self.errors, self.effective_queries - 1, level)
        return self.values - half, self.values + half


def half_width(errors: Floats, freedom: Floats, level: float) -> Floats:
    """Return half the width of intervals with standard errors and degrees of freedom."""
    from scipy.special import stdtrit  # quantile of Student's t

    return np.asarray(errors * stdtrit(np.maximum(freedom, 1.0), (1 + level) / 2))


def sum_by_query(group: Ints, n_groups: int, rows: Floats) -> Floats:
    """Return the sums of the rows of each query."""
    return np.stack([np.bincount(group, column, n_groups) for column in rows.T], axis=1)


def fit_all_pairs(counts: SwapCounts, members: Bools, reference: int) -> tuple[LogEstimate, Floats]:
    """Return the estimate from documents that were seen at several of the member ranks, and links.

    Given how often a document was clicked in total, its clicks fall on the ranks with probabilities
    proportional to impressions times propensity; its relevance cancels.  The links of two ranks are
    the number of clicks that compare them, each counted as the product of both probabilities.
    """
    rows = (counts.clicked[:, members].sum(axis=1) > 0) & (
        (counts.shown[:, members] > 0).sum(axis=1) > 1
    )
    shown, clicked = counts.shown[np.ix_(rows, members)], counts.clicked[np.ix_(rows, members)]
    total, group = clicked.sum(axis=1), counts.group[rows]
    fixed = int(members[:reference].sum())
    free = np.arange(shown.shape[1]) != fixed
    logs = np.zeros(shown.shape[1])
    for _ in range(MAX_STEPS):
        expected = shown * np.exp(logs)
        expected *= (total / expected.sum(axis=1))[:, None]
        gradient = (clicked - expected).sum(axis=0)
        hessian = np.diag(expected.sum(axis=0)) - expected.T @ (expected / total[:, None])
        step = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        logs[free] += np.clip(step, -MAX_STEP, MAX_STEP)
        if np.abs(step).max(initial=0.0) < CONVERGED:
            break
    else:
        raise DataError("propensities of all pairs do not converge; are there enough clicks?")
    n, size = counts.n_groups, len(counts.ranks)
    scores = sum_by_query(group, n, clicked - expected)[:, free]
    influence, weights, links = np.zeros((n, size)), np.zeros((n, size)), np.zeros((size, size))
    places = np.flatnonzero(members)
    influence[:, places[free]] = np.linalg.solve(hessian[np.ix_(free, free)], scores.T).T
    weights[:, members] = sum_by_query(group, n, expected * (1 - expected / total[:, None]))
    links[np.ix_(members, members)] = np.diag(np.diag(hessian)) - hessian
    values = np.full(size, np.nan)
    values[members] = logs
    return LogEstimate(values, influence, weights, reference), links


def fit_steps(counts: SwapCounts, method: Literal["adjacent", "pivot"], first: int) -> LogEstimate:
    """Return the estimate that compares each rank with the one before, or with rank `first`.

    Documents that were seen at both ranks are compared by their click-through rates, weighted by
    n m / (n + m) of the impressions n and m at the two ranks.
    """
    size, n = len(counts.ranks), counts.n_groups
    values, influence, weights = np.zeros(size), np.zeros((n, size)), np.zeros((n, size))
    for column in range(size):
        base = first if method == "pivot" else max(column - 1, 0)
        if column == base:
            weights[:, column] = np.bincount(counts.group, counts.clicked[:, column], n)
            continue
        both = (counts.shown[:, column] > 0) & (counts.shown[:, base] > 0)
        here, there = counts.shown[both, column], counts.shown[both, base]
        group = counts.group[both]
        upper = np.bincount(group, counts.clicked[both, column] * there / (here + there), n)
        lower = np.bincount(group, counts.clicked[both, base] * here / (here + there), n)
        values[column] = np.nan
        if upper.sum() > 0 and lower.sum() > 0:
            values[column] = values[base] + np.log(upper.sum() / lower.sum())
            influence[:, column] = influence[:, base] + upper / upper.sum() - lower / lower.sum()
            weights[:, column] = upper + lower
    return LogEstimate(values - values[first], influence - influence[:, [first]], weights, first)


def fit_randomized(
    group: Ints, rank: Ints, clicked: Bools, weight: Floats, ranks: Ints, reference: int
) -> LogEstimate:
    """Return the estimate from click-through rates by rank, weighted by 1 / propensity."""
    column = np.searchsorted(ranks, rank)
    n, size = int(group.max(initial=-1)) + 1, len(ranks)
    sums = (totals(group * size + column, w, n * size) for w in (weight, weight * clicked))
    shown, hits = (total.reshape(n, size) for total in sums)
    rates = hits.sum(axis=0) / shown.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        influence = (hits - rates * shown) / hits.sum(axis=0)
        values = np.log(rates)
    values[~np.isfinite(values)] = np.nan
    influence = np.nan_to_num(influence - influence[:, [reference]])
    return LogEstimate(values - values[reference], influence, hits, reference)
