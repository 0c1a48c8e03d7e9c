"""Beta priors of probabilities, estimated from many pairs by marginal likelihood."""

from __future__ import annotations

import numpy as np

from firstpage.core import Floats

UNIFORM = (1.0, 1.0)
STRENGTHS = (0.05, 1e6)  # bounds of the pseudo-counts of a prior
BINS = 50.0  # per factor e of a count
RIDGE = 1.0  # precision of the weights of standardized features
TOLERANCE = 1e-12  # relative change of the likelihood
EPS = 1e-6  # distance of prior means from 0 and 1


def estimate_beta(
    hits: Floats, trials: Floats, start: tuple[float, float] = UNIFORM
) -> tuple[float, float]:
    """Return the Beta prior that maximizes the likelihood of events among trials of all pairs.

    Pairs of almost equal counts are replaced by their mean.
    """
    used = trials > 0
    n, k = np.maximum(trials[used], hits[used]), hits[used]
    if not len(n) or k.sum() in (0.0, n.sum()):
        return start
    code = np.floor(BINS * np.log1p(k)) * 1e6 + np.floor(BINS * np.log1p(n))
    _, index = np.unique(code, return_inverse=True)
    count = np.bincount(index).astype(np.float64)
    k, n = np.bincount(index, k) / count, np.bincount(index, n) / count
    weights, strength = maximize_marginal(np.ones((len(n), 1)), k, n, count, start)
    mean = float(prior_means(np.ones((1, 1)), weights)[0])
    return strength * mean, strength * (1 - mean)


def prior_means(design: Floats, weights: Floats) -> Floats:
    """Return logistic functions of features: the means of the priors of pairs."""
    from scipy.special import expit

    return np.clip(expit(design @ weights), EPS, 1 - EPS).astype(np.float64)


def maximize_marginal(
    design: Floats,
    hits: Floats,
    trials: Floats,
    count: Floats | float = 1.0,
    start: tuple[float, float] = UNIFORM,
) -> tuple[Floats, float]:
    """Return the weights of features and the strength of the prior with the largest likelihood.

    The likelihood of the counts is beta-binomial; these need not be integers.  The first feature is
    constant, and the weights of the others have a normal prior.
    """
    from scipy.optimize import minimize
    from scipy.special import betaln, digamma

    n, k = np.maximum(trials, hits), hits

    def loss(x: Floats) -> tuple[float, Floats]:
        strength, mean = float(np.exp(x[-1])), prior_means(design, x[:-1])
        a, b = strength * mean, strength * (1 - mean)
        up, down = digamma(a + k) - digamma(a), digamma(b + n - k) - digamma(b)
        common = digamma(strength + n) - digamma(strength)
        by_weights = design.T @ (count * strength * (up - down) * mean * (1 - mean))
        by_weights[1:] -= RIDGE * x[1:-1]
        by_strength = strength * float((count * (mean * up + (1 - mean) * down - common)).sum())
        value = float((count * (betaln(a + k, b + n - k) - betaln(a, b))).sum())
        value -= RIDGE / 2 * float(x[1:-1] @ x[1:-1])
        return -value, -np.append(by_weights, by_strength)

    first = np.zeros(design.shape[1] + 1)
    first[0], first[-1] = np.log(start[0] / start[1]), np.log(sum(start))
    bounds = [*[(None, None)] * design.shape[1], tuple(np.log(STRENGTHS))]
    best = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, tol=TOLERANCE)
    return best.x[:-1], float(np.exp(best.x[-1]))
