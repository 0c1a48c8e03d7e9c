"""Empirical-Bayes shrinkage: priors, marginal likelihoods, intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom, gamma, poisson

from firstpage.clicks.judgments.shrinkage import BinomialRate, PoissonRate, shrink

QUERIES, DOCUMENTS = 300, 8
STRENGTH, QUERY_STRENGTH = 8.0, 25.0
FAMILIES: dict[str, tuple[BinomialRate | PoissonRate, float]] = {
    "binomial": (BinomialRate(), 0.2),
    "poisson": (PoissonRate(), 1.0),
}


def draw(family, mean: float, rng: np.random.Generator):
    """Return rates, successes, trials and queries of the hierarchy that `shrink` assumes."""
    query = np.repeat(np.arange(QUERIES), DOCUMENTS)
    trials = np.minimum(np.ceil(3 * rng.pareto(1.0, QUERIES)), 1e4)[query]
    if isinstance(family, PoissonRate):
        means = rng.gamma(QUERY_STRENGTH * mean, 1 / QUERY_STRENGTH, QUERIES)[query]
        rates = rng.gamma(STRENGTH * means, 1 / STRENGTH)
        return rates, rng.poisson(trials * rates).astype(float), trials, query
    means = rng.beta(QUERY_STRENGTH * mean, QUERY_STRENGTH * (1 - mean), QUERIES)[query]
    rates = rng.beta(STRENGTH * means, STRENGTH * (1 - means))
    return rates, rng.binomial(trials.astype(int), rates).astype(float), trials, query


@pytest.mark.parametrize("name", FAMILIES)
def test_intervals_cover_the_rates_and_priors_are_recovered(name: str) -> None:
    family, mean = FAMILIES[name]
    rng = np.random.default_rng(3)
    covered, strengths, query_strengths = [], [], []
    for _ in range(8):
        rates, s, n, query = draw(family, mean, rng)
        shrunk = shrink(family, s, n, query, QUERIES)
        low, high = (shrunk.posterior.quantile(p) for p in (0.025, 0.975))
        covered.append(((low <= rates) & (rates <= high)).mean())
        strengths.append(shrunk.strength)
        query_strengths.append(shrunk.query_strength)
        assert shrunk.mean == pytest.approx(mean, rel=0.15)
    assert 0.92 < np.mean(covered) < 0.98
    assert np.median(strengths) == pytest.approx(STRENGTH, rel=0.35)
    assert np.median(query_strengths) == pytest.approx(QUERY_STRENGTH, rel=0.5)


@pytest.mark.parametrize("name", FAMILIES)
def test_shrunk_rates_err_less_than_raw_ones_and_than_means_of_queries(name: str) -> None:
    family, mean = FAMILIES[name]
    rates, s, n, query = draw(family, mean, np.random.default_rng(5))
    shrunk = shrink(family, s, n, query, QUERIES)
    query_means = (np.bincount(query, s) / np.bincount(query, n))[query]
    errors = [
        np.mean((estimate - rates) ** 2) for estimate in (shrunk.posterior.mean, s / n, query_means)
    ]
    assert errors[0] < 0.8 * min(errors[1:])


def test_marginal_likelihoods_equal_integrals() -> None:
    def difference(family, density) -> float:
        one = family.log_marginal(4.0, np.array([0.3]), np.array([2.0]), np.array([5.0]))
        two = family.log_marginal(9.0, np.array([0.3]), np.array([2.0]), np.array([5.0]))
        exact = [np.log(quad(density, 0, 1 if family is binomial else 20, (k,))[0]) for k in (4, 9)]
        return (two - one) - (exact[1] - exact[0])

    binomial, ratio = BinomialRate(), PoissonRate()
    by_beta = difference(binomial, lambda p, k: beta.pdf(p, k * 0.3, k * 0.7) * binom.pmf(2, 5, p))
    by_gamma = difference(
        ratio, lambda r, k: gamma.pdf(r, k * 0.3, scale=1 / k) * poisson.pmf(2, 5 * r)
    )
    assert by_beta == pytest.approx(0, abs=1e-6)
    assert by_gamma == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_many_trials_overrule_the_prior_and_none_return_it(name: str) -> None:
    family, _ = FAMILIES[name]
    s, n = np.array([9e5, 1e5, 3e5, 0.0]), np.array([1e6, 1e6, 1e6, 0.0])
    shrunk = shrink(family, s, n, np.zeros(4, int), 1)
    assert shrunk.posterior.mean[:3] == pytest.approx([0.9, 0.1, 0.3], abs=1e-4)
    assert shrunk.posterior.mean[3] == pytest.approx(1.3 / 3, abs=0.05)  # that of the others
    assert shrunk.posterior.quantile(0.975)[3] - shrunk.posterior.quantile(0.025)[3] > 0.5


def test_extreme_counts_have_finite_posteriors() -> None:
    for family in (BinomialRate(), PoissonRate()):
        for s in ([0.0, 0.0, 1.0], [2.0, 3.0, 4.0]):
            shrunk = shrink(family, np.array(s), np.array([2.0, 3.0, 4.0]), np.arange(3), 3)
            assert np.isfinite(shrunk.posterior.mean).all()
            assert (shrunk.posterior.quantile(0.025) < shrunk.posterior.quantile(0.975)).all()


def test_thin_pages_of_few_clicks_still_tell_documents_apart() -> None:
    """A query's few clicks must not count twice, for its mean and for its documents."""
    rng = np.random.default_rng(2)
    query = np.repeat(np.arange(800), 10)
    rates = rng.gamma(0.7, 1 / 0.7, len(query)) * rng.gamma(2.0, 1 / 2.0, 800)[query]
    n = np.full(len(query), 0.15)
    s = rng.poisson(n * rates).astype(float)
    shrunk = shrink(PoissonRate(), s, n, query, 800)
    assert shrunk.strength < 10
    clicked = shrunk.posterior.mean[s > 0].mean()
    assert clicked == pytest.approx(rates[s > 0].mean(), rel=0.3)
    assert clicked > 1.3 * shrunk.posterior.mean[s == 0].mean()
