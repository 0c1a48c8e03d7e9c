"""Empirical-Bayes shrinkage of the rates of documents, towards their query and the log.

A pair of query and document has s successes in n trials.  Two conjugate families describe its rate:

- `BinomialRate`: s is binomial, and the rate has a beta distribution (attractiveness);
- `PoissonRate`: s is Poisson with mean rate n, and the rate has a gamma distribution (clicks over
  expected clicks).

The prior of a pair has the mean m_q of its query and the strength k, which counts pseudo-trials.
The mean of a query has in turn a prior around the mean of the log.  Both strengths maximize the
marginal likelihood of the counts (parametric empirical Bayes: Morris 1983, JASA 78).  The weight
of a pair in the mean of its query is its information, n / (1 + n / k) up to constants, so that one
popular document does not decide about the others.  The prior of a pair has the mean of the other
pairs of its query, so that its own clicks count once, and is as wide as the error of this mean
requires.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from firstpage.clicks.models.pages import totals
from firstpage.core import Floats, Ints

MAX_STRENGTH = 1e6  # pseudo-trials of a prior, at which rates are equal
CERTAIN = 1e12  # trials of a mean that is known
EPS = 1e-6  # of the mean, at which the mean of others that are never clicked is set
ROUNDS = 5  # of strengths and means; they settle after three


@dataclass(frozen=True, eq=False)
class RatePosterior:
    """Distributions of rates with two parameters each: beta, or gamma of shape a and rate b."""

    a: Floats
    b: Floats
    is_ratio: bool

    @property
    def mean(self) -> Floats:
        """The means."""
        return self.a / (self.b if self.is_ratio else self.a + self.b)

    def quantile(self, p: float) -> Floats:
        """Return the quantiles of p."""
        from scipy.special import betaincinv, gammaincinv

        if self.is_ratio:
            return np.asarray(gammaincinv(self.a, p) / self.b)
        return np.asarray(betaincinv(self.a, self.b, p))

    def below(self, level: Floats | float) -> Floats:
        """Return the probabilities that the rates are below a level."""
        from scipy.special import betainc, gammainc

        if self.is_ratio:
            return np.asarray(gammainc(self.a, self.b * level))
        return np.asarray(betainc(self.a, self.b, np.clip(level, 0.0, 1.0)))

    def after(self, s: Floats, n: Floats) -> RatePosterior:
        """Return the distributions after s more successes in n more trials."""
        return RatePosterior(self.a + s, self.b + (n if self.is_ratio else n - s), self.is_ratio)

    def rows(self, rows: Ints) -> RatePosterior:
        """Return the distributions of these rows."""
        return replace(self, a=self.a[rows], b=self.b[rows])


class BinomialRate:
    """Rates between 0 and 1: beta-binomial counts."""

    def log_marginal(self, strength: float | Floats, mean: Floats, s: Floats, n: Floats) -> float:
        """Return the logarithm of the marginal likelihood, without terms of s and n alone."""
        from scipy.special import betaln

        a, b = strength * mean, strength * (1 - mean)
        return float((betaln(a + s, b + n - s) - betaln(a, b)).sum())

    def posterior(self, strength: Floats, mean: Floats, s: Floats, n: Floats) -> RatePosterior:
        """Return beta distributions."""
        return RatePosterior(strength * mean + s, strength * (1 - mean) + n - s, False)

    def information(self, strength: Floats | float, n: Floats) -> Floats:
        """Return n (k + 1) / (k + n): the variance of s / n is m (1 - m) / information."""
        return n * (strength + 1) / (strength + n)

    def widened(self, strength: float, trials: Floats) -> Floats:
        """Return the strengths of priors whose means are known from so many trials."""
        return strength * trials / (1 + trials + strength)

    def multiples(self, mean: float, factors: Floats) -> Floats:
        """Return the probabilities whose odds are so many times those of the mean."""
        odds = mean / (1 - mean) * factors
        return odds / (1 + odds)


class PoissonRate:
    """Rates from 0 without bound: negative binomial counts."""

    def log_marginal(self, strength: float | Floats, mean: Floats, s: Floats, n: Floats) -> float:
        """Return the logarithm of the marginal likelihood, without terms of s and n alone."""
        from scipy.special import gammaln

        a = strength * mean
        terms = gammaln(a + s) - gammaln(a) + a * np.log(strength) - (a + s) * np.log(strength + n)
        return float(terms.sum())

    def posterior(self, strength: Floats, mean: Floats, s: Floats, n: Floats) -> RatePosterior:
        """Return gamma distributions."""
        return RatePosterior(strength * mean + s, strength + n, True)

    def information(self, strength: Floats | float, n: Floats) -> Floats:
        """Return n k / (k + n): the variance of s / n is m / information."""
        return n * strength / (strength + n)

    def widened(self, strength: float, trials: Floats) -> Floats:
        """Return the strengths of priors whose means are known from so many trials."""
        return strength * trials / (trials + strength)

    def multiples(self, mean: float, factors: Floats) -> Floats:
        """Return multiples of the mean."""
        return mean * factors


RateFamily = BinomialRate | PoissonRate


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Posteriors of pairs, with what was estimated about their priors.

    `mean` is the mean of the log; `strength` and `query_strength` count the pseudo-trials of a
    pair's and of a query's prior.
    """

    posterior: RatePosterior
    mean: float
    strength: float
    query_strength: float


def shrink(
    family: RateFamily,
    s: Floats,
    n: Floats,
    query: Ints,
    queries: int,
    factor: Floats | float = 1.0,
) -> Shrunk:
    """Return the posteriors of pairs with s successes in n trials, of these queries.

    The prior mean of a pair is that of its query times its factor (of Poisson rates only).
    """
    n = n * factor
    total = max(float(n.sum()), 1e-9)
    mean = _inside(family, float(s.sum()) / total, total)
    rates = np.divide(s, n, out=np.zeros(len(s)), where=n > 0)
    strength = query_strength = 1.0
    others_mean, others_trials = np.full(len(s), mean), np.ones(len(s))
    for _ in range(ROUNDS):
        worth = family.information(strength, n)
        trials, successes = (totals(query, part, queries) for part in (worth, worth * rates))
        query_strength = _fit_strength(family, np.full(queries, mean), successes, trials, CERTAIN)
        weight = family.information(query_strength, trials)
        known = trials > 0
        mean = float(weight[known] @ (successes[known] / trials[known]) / weight.sum())
        mean = _inside(family, mean, total)
        others_trials = query_strength + trials[query] - worth
        of_others = query_strength * mean + successes[query] - worth * rates
        others_mean = np.clip(of_others, mean * EPS, None) / others_trials
        strength = _fit_strength(family, others_mean, s, n, others_trials)
    posterior = family.posterior(family.widened(strength, others_trials), others_mean, s, n)
    posterior = replace(posterior, b=posterior.b / factor)
    return Shrunk(posterior, mean, strength, query_strength)


def _inside(family: RateFamily, mean: float, trials: float) -> float:
    """Return a mean that is neither 0 nor, for probabilities, 1."""
    smallest = min(0.5 / trials, 0.25)
    largest = 1 - smallest if isinstance(family, BinomialRate) else np.inf
    return float(np.clip(mean, smallest, largest))


def _fit_strength(
    family: RateFamily, mean: Floats, s: Floats, n: Floats, trials: Floats | float
) -> float:
    """Return the strength with the largest marginal likelihood; means are known from the trials."""
    from scipy.optimize import minimize_scalar

    rows = n > 0
    known = np.broadcast_to(trials, n.shape)[rows]

    def loss(logarithm: float) -> float:
        strengths = family.widened(10**logarithm, known)
        return -family.log_marginal(strengths, mean[rows], s[rows], n[rows])

    best = minimize_scalar(loss, bounds=(0.0, np.log10(MAX_STRENGTH)), method="bounded")
    return float(10**best.x)
