"""Confidence sequences: intervals that are valid at all times, however often one looks."""

from __future__ import annotations

from typing import Any

import numpy as np

from firstpage.core import Array, DataError, Floats

CONCENTRATION = 100.0  # of the Dirichlet mixture around the tested shares
NARROW_AT = 20.0  # the same for wins, whose probability may be far from 1/2
BISECTIONS = 50
LARGEST_BET = 0.5


def win_sequence(
    wins: Any, losses: Any, alpha: float = 0.05, concentration: float = NARROW_AT
) -> tuple[Floats, Floats]:
    """Return a confidence sequence of the probability to win, from counts at several looks.

    With probability 1 - alpha, all intervals at all looks contain it (beta-binomial mixture).

    Parameters
    ----------
    wins, losses : array-like of int
        Wins and losses until each look; ties do not count.
    alpha : float, default 0.05
        The probability that an interval does not contain it.
    concentration : float, default 20
        Pseudo-counts of the mixture around 1/2: few are for large differences, many for small ones.

    Returns
    -------
    tuple of array
        Lower and upper bounds, one per look.

    References
    ----------
    Howard et al., "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of
    Statistics 2021.

    Examples
    --------
    >>> import firstpage as fp
    >>> low, high = fp.clicks.win_sequence([30, 300], [10, 100])
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.5, 0.66], [0.92, 0.83])
    """
    from scipy.special import xlogy  # which is 0 for no counts

    won, lost = np.atleast_1d(np.asarray(wins, np.float64), np.asarray(losses, np.float64))
    if not 0 < alpha < 1 or (won < 0).any() or (lost < 0).any():
        raise DataError("a confidence sequence needs counts from 0, and alpha between 0 and 1.")
    half = concentration / 2
    counts = np.stack([won, lost], axis=-1)
    most = _log_beta(counts + half) - _log_beta(np.full(2, half)) + np.log(alpha)
    center = won / np.maximum(won + lost, 1)
    bounds = []
    for end in (0.0, 1.0):  # the log-likelihood decreases from the center to both ends
        inside, outside = center.copy(), np.full(len(center), end)
        for _ in range(BISECTIONS):
            middle = (inside + outside) / 2
            accepted = xlogy(won, middle) + xlogy(lost, 1 - middle) >= most
            inside = np.where(accepted, middle, inside)
            outside = np.where(accepted, outside, middle)
        bounds.append(np.where(won + lost > 0, outside, end))
    return bounds[0], bounds[1]


def mean_sequence(
    values: Any, low: float = 0.0, high: float = 1.0, alpha: float = 0.05
) -> tuple[Floats, Floats]:
    """Return a confidence sequence of the mean of bounded values, in their order.

    It is an empirical-Bernstein bound with predictable weights: the interval after t values needs
    no assumption but that the mean, given the values before, is always the same.

    Parameters
    ----------
    values : array-like
        The values in the order in which they were observed.
    low, high : float
        The least and the largest possible value; by default 0 and 1.
    alpha : float, default 0.05
        The probability that any interval does not contain the mean.

    Returns
    -------
    tuple of array
        Lower and upper bounds after each value.

    Raises
    ------
    DataError
        If a value is not between `low` and `high`.

    References
    ----------
    Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 2024,
    Theorem 2.

    Examples
    --------
    >>> import firstpage as fp
    >>> low, high = fp.clicks.mean_sequence([1, 0, 1, 1] * 250)
    >>> [round(float(x), 2) for x in (low[-1], high[-1])]
    [0.7, 0.8]
    """
    raw = np.asarray(values, np.float64)
    if not low < high or not ((raw >= low) & (raw <= high)).all() or not 0 < alpha < 1:
        raise DataError(f"the values of a confidence sequence are between {low:g} and {high:g}.")
    x = (raw - low) / (high - low)
    t = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    before = np.concatenate([[0.5], mean[:-1]])[: len(x)]
    spread = np.concatenate([[0.25], variance[:-1]])[: len(x)]
    weight = np.sqrt(2 * np.log(2 / alpha) / (spread * t * np.log1p(t)))
    weight = np.minimum(weight, LARGEST_BET)
    penalty = (x - before) ** 2 * (-np.log1p(-weight) - weight)
    total = np.cumsum(weight)
    center = np.cumsum(weight * x) / total
    radius = (np.log(2 / alpha) + np.cumsum(penalty)) / total
    lower, upper = np.maximum(center - radius, 0.0), np.minimum(center + radius, 1.0)
    return low + (high - low) * lower, low + (high - low) * upper


def ratio_mismatch(counts: Any, shares: Any, concentration: float = CONCENTRATION) -> Floats:
    """Return p-values, valid at all looks, that counts are drawn with these shares.

    Parameters
    ----------
    counts : array-like of shape (looks, groups)
        How many were in each group until each look, such as users per ranking.
    shares : array-like
        The share of each group.
    concentration : float, default 100
        Pseudo-counts of the Dirichlet mixture around the shares.

    Returns
    -------
    array of float
        One p-value per look; none is larger than the one before.

    Raises
    ------
    DataError
        If counts and shares do not fit.

    References
    ----------
    Lindon and Malek, "Anytime-valid inference for multinomial count data", NeurIPS 2022.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.clicks.ratio_mismatch([[50, 60], [500, 650]], [0.5, 0.5]).round(4).tolist()
    [1.0, 0.0004]
    """
    table, expected = np.atleast_2d(np.asarray(counts, np.float64)), np.asarray(shares, np.float64)
    if table.shape[1:] != expected.shape or not (expected > 0).all() or (table < 0).any():
        raise DataError("a test of shares needs a positive share and counts for each group.")
    expected = expected / expected.sum()
    prior = concentration * expected
    evidence = _log_beta(table + prior) - _log_beta(prior) - table @ np.log(expected)
    return np.asarray(np.minimum(np.exp(-np.maximum.accumulate(evidence)), 1.0))


def _log_beta(parameters: Array) -> Array:
    """Return the logarithm of the multivariate beta function of each row."""
    from scipy.special import gammaln

    return np.asarray(gammaln(parameters).sum(axis=-1) - gammaln(parameters.sum(axis=-1)))
