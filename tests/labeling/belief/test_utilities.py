"""The posterior of utilities: moments, fits, Bradley-Terry, rank probabilities."""

from __future__ import annotations

import itertools
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import norm
from scipy.stats.qmc import MultivariateNormalQMC

from firstpage.core.errors import DataError
from firstpage.labeling.belief.posterior_ranks import is_confident, rank_posterior
from firstpage.labeling.belief.utilities import (
    PRIOR_SDS,
    BeliefEnsemble,
    Utilities,
    bradley_terry,
    fit,
    information,
    moments,
    prior,
)

MARGIN = 0.4
STANDARD_NORMAL = NormalDist()
CASES = list(itertools.product((-2.5, -0.3, 0.0, 1.7), (0.05, 1.0, 9.0), (1, 0, -1)))


def probability(d: float, outcome: int, margin: float) -> float:
    """Return the probability of an answer about a known difference, by the model."""
    first, second = STANDARD_NORMAL.cdf(d - margin), STANDARD_NORMAL.cdf(-margin - d)
    return float({1: first, -1: second, 0: 1 - first - second}[outcome])


def random_belief(n: int, seed: int) -> Utilities:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n)) / n**0.5
    return Utilities(rng.standard_normal(n), root @ root.T + 0.3 * np.eye(n))


@pytest.mark.parametrize(("mean", "variance", "outcome"), CASES)
def test_moments_match_numerical_integration(mean: float, variance: float, outcome: int) -> None:
    def moment(power: int) -> float:
        sd = variance**0.5
        before = NormalDist(mean, sd)
        density = lambda d: d**power * probability(d, outcome, MARGIN) * before.pdf(d)  # noqa: E731
        return float(quad(density, mean - 9 * sd, mean + 9 * sd, epsabs=1e-12, limit=200)[0])

    total = moment(0)
    after_mean = moment(1) / total
    after_variance = moment(2) / total - after_mean**2
    log_probability, gradient, curvature = moments(mean, variance, outcome, MARGIN)
    assert np.exp(log_probability) == pytest.approx(total, abs=1e-8)
    assert mean + variance * gradient == pytest.approx(after_mean, abs=1e-6)
    assert variance + variance**2 * curvature == pytest.approx(after_variance, abs=1e-6)


@pytest.mark.parametrize(("mean", "variance", "outcome"), CASES)
def test_derivatives_match_finite_differences(mean: float, variance: float, outcome: int) -> None:
    step = 1e-4
    low, at, high = (moments(mean + s, variance, outcome, MARGIN) for s in (-step, 0.0, step))
    assert at[1] == pytest.approx((high[0] - low[0]) / (2 * step), abs=1e-6)
    assert at[2] == pytest.approx((high[1] - low[1]) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("mean", [-60.0, -8.0, 0.0, 3.0, 60.0])
@pytest.mark.parametrize("variance", [1e-12, 0.5, 1e4])
def test_moments_of_extreme_answers_are_finite(mean: float, variance: float) -> None:
    for outcome in (1, 0, -1):
        values = np.array(moments(mean, variance, outcome, MARGIN))
        assert np.isfinite(values).all()
        assert variance + variance**2 * values[2] >= 0
    gain = information(np.array([mean]), np.array([variance]), MARGIN)[0]
    assert 0 <= gain <= 1.0 / (variance + 1.0)


@pytest.mark.parametrize("mean", [-2.0, 0.0, 0.4, 5.0])
def test_information_is_the_expected_squared_gradient(mean: float) -> None:
    variance = 0.7
    expected = 0.0
    for outcome in (1, 0, -1):
        log_probability, gradient, _ = moments(mean, variance, outcome, MARGIN)
        expected += np.exp(log_probability) * gradient**2
    assert information(np.array(mean), np.array(variance), MARGIN) == pytest.approx(expected)


def weighted_samples(
    before: Utilities, answers: list[tuple[int, int, int]], seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance after answers, by importance sampling of a Sobol sequence."""
    normal = MultivariateNormalQMC(before.mean, before.covariance, rng=seed)
    drawn = normal.random(2**17)
    weight = np.ones(len(drawn))
    for first, second, outcome in answers:
        d = drawn[:, first] - drawn[:, second]
        up, down = ndtr(d - MARGIN), ndtr(-MARGIN - d)
        weight *= np.maximum({1: up, -1: down, 0: 1 - up - down}[outcome], 0.0)
    mean = np.average(drawn, axis=0, weights=weight)
    return mean, np.cov(drawn.T, aweights=weight)


@pytest.mark.parametrize("outcome", [1, 0, -1])
def test_the_update_by_one_answer_is_exact(outcome: int) -> None:
    before = random_belief(3, seed=4)
    after = before.updated(2, 0, outcome)
    mean, covariance = weighted_samples(before, [(2, 0, outcome)])
    np.testing.assert_allclose(after.mean, mean, atol=0.005)
    np.testing.assert_allclose(after.covariance, covariance, atol=0.005)
    assert after.evidence < before.evidence == 0.0


def columns(answers: list[tuple[int, int, int]]) -> tuple[list[int], list[int], list[int]]:
    left, right, outcome = zip(*answers, strict=True)
    return list(left), list(right), list(outcome)


def test_the_fit_of_many_answers_is_nearly_exact() -> None:
    answers = [(0, 1, 1), (1, 2, 1), (0, 2, 1), (3, 2, 0), (3, 0, -1), (1, 3, 0), (0, 1, -1)]
    before = prior(4, 1.5)
    posterior = fit(before, columns(answers))
    mean, covariance = weighted_samples(before, answers)
    np.testing.assert_allclose(posterior.mean, mean, atol=0.03)
    np.testing.assert_allclose(posterior.covariance, covariance, atol=0.06)


def test_the_fit_is_invariant_to_the_order_of_answers() -> None:
    rng = np.random.default_rng(0)
    pairs = [rng.choice(8, 2, replace=False).tolist() for _ in range(40)]
    answers = [(a, b, int(rng.integers(-1, 2))) for a, b in pairs]
    shuffled = [answers[i] for i in rng.permutation(len(answers))]
    first, second = (fit(prior(8), columns(a)) for a in (answers, shuffled))
    np.testing.assert_allclose(first.mean, second.mean, atol=2e-3)
    np.testing.assert_allclose(first.covariance, second.covariance, atol=2e-3)


def test_a_weight_of_two_counts_about_as_two_answers() -> None:
    twice = fit(prior(2), ([0, 0], [1, 1], [1, 1])).mean[0]
    once = fit(prior(2), ([0], [1], [1])).mean[0]
    weighted = fit(prior(2), ([0], [1], [1]), [2.0]).mean[0]
    assert once < weighted < 1.1 * twice
    assert fit(prior(2), ([0], [1], [1]), [1.0]).mean[0] == once


@given(st.integers(0, 50), st.sampled_from([1, 0, -1]))
def test_the_update_is_symmetric_in_the_sides(seed: int, outcome: int) -> None:
    belief = random_belief(5, seed)
    first, second = belief.updated(1, 3, outcome), belief.updated(3, 1, -outcome)
    np.testing.assert_allclose(first.mean, second.mean, atol=1e-12)
    np.testing.assert_allclose(first.covariance, second.covariance, atol=1e-12)


@given(st.integers(0, 50), st.permutations(range(5)), st.sampled_from([1, 0, -1]))
def test_the_update_is_invariant_to_names(seed: int, names: list[int], outcome: int) -> None:
    belief = random_belief(5, seed)
    renamed = Utilities(belief.mean[names], belief.covariance[np.ix_(names, names)])
    after = renamed.updated(names.index(1), names.index(3), outcome)
    np.testing.assert_allclose(after.mean, belief.updated(1, 3, outcome).mean[names], atol=1e-12)


def test_the_belief_is_finite_after_ten_thousand_equal_answers() -> None:
    belief = prior(3, 2.0)
    for _ in range(10_000):
        belief = belief.updated(0, 1, 1)
    assert np.isfinite(belief.mean).all()
    assert (np.linalg.eigvalsh(belief.covariance) > -1e-9).all()
    assert belief.mean[0] > belief.mean[2] == 0.0 > belief.mean[1]


def test_a_prior_enters_by_its_ranks() -> None:
    by_scores = prior(5, 2.0, [0.1, 5.0, 0.3, 99.0, 0.2], prior_correlation=0.6)
    ranks = prior(5, 2.0, [1, 4, 3, 5, 2], prior_correlation=0.6)
    np.testing.assert_allclose(by_scores.mean, ranks.mean)
    assert list(np.argsort(ranks.mean)) == [0, 4, 2, 1, 3]
    np.testing.assert_allclose(ranks.variance, 4.0 * (1 - 0.36))
    np.testing.assert_allclose(prior(5, 2.0, [1, 1, 1, 1, 1]).mean, 0.0, atol=1e-12)


def test_documents_with_similar_features_are_correlated() -> None:
    features = np.array([[0.0, 1.0], [0.0, 1.0], [5.0, -2.0], [4.0, 9.0]])
    belief = prior(4, 1.0, features=features)
    np.testing.assert_allclose(belief.variance, 1.0)
    after = belief.updated(0, 3, 1)
    assert after.mean[0] > after.mean[1] > after.mean[2]
    assert np.isfinite(prior(3, features=np.ones((3, 2))).covariance).all()
    with pytest.raises(DataError, match="a row for each of the 4"):
        prior(4, features=np.ones((3, 2)))


def test_the_prior_sd_is_chosen_by_the_evidence() -> None:
    rng = np.random.default_rng(3)
    consistent, random = BeliefEnsemble.from_prior(12), BeliefEnsemble.from_prior(12)
    for _ in range(150):
        a, b = rng.choice(12, 2, replace=False)
        consistent = consistent.updated(a, b, 1 if a < b else -1)
        random = random.updated(a, b, int(rng.integers(0, 2)) * 2 - 1)
    assert consistent.best.prior_sd == max(PRIOR_SDS) == consistent.exploratory.prior_sd
    assert random.best.prior_sd == min(PRIOR_SDS) < random.exploratory.prior_sd


def likelihood(u: np.ndarray, left: list[int], right: list[int], outcome: list[int]) -> float:
    total = -0.5e-6 * float(u @ u)
    for i, j, y in zip(left, right, outcome, strict=True):
        for side, weight in ((1, (1 + y) / 2), (-1, (1 - y) / 2)):
            total -= weight * float(np.logaddexp(0.0, -side * (u[i] - u[j])))
    return total


def test_bradley_terry_maximizes_the_likelihood() -> None:
    rng = np.random.default_rng(5)
    left, right = ([int(x) for x in col] for col in rng.integers(0, 6, (2, 90)))
    outcome = [int(rng.integers(-1, 2)) if i != j else 0 for i, j in zip(left, right, strict=True)]
    utilities = bradley_terry(6, left, right, outcome)

    def loss(u: np.ndarray) -> float:
        return -likelihood(u, left, right, outcome)

    best = minimize(loss, np.zeros(6), tol=1e-10)
    np.testing.assert_allclose(utilities, best.x - best.x.mean(), atol=1e-3)
    assert likelihood(utilities, left, right, outcome) >= -best.fun - 1e-9


def test_bradley_terry_converges_on_any_data() -> None:
    chain = bradley_terry(4, [0, 1, 2], [1, 2, 3], [1, 1, 1])
    assert np.isfinite(chain).all()
    assert list(np.argsort(-chain)) == [0, 1, 2, 3]
    disconnected = bradley_terry(5, [0, 2], [1, 3], [1, -1])
    np.testing.assert_allclose(
        disconnected,
        [disconnected[0], -disconnected[0], -disconnected[0], disconnected[0], 0.0],
        atol=1e-6,
    )
    assert disconnected[0] > 1
    np.testing.assert_allclose(bradley_terry(3, [0, 1], [1, 2], [0, 0]), 0.0, atol=1e-12)
    np.testing.assert_allclose(bradley_terry(3, [], [], []), 0.0)
    many = bradley_terry(2, [0] * 10_000, [1] * 10_000, [1] * 10_000)
    assert np.isfinite(many).all()
    assert many[0] > 5


def test_rank_probabilities_match_simulation() -> None:
    belief = random_belief(6, seed=8)
    posterior = rank_posterior(belief, 3)
    rng = np.random.default_rng(99)
    drawn = rng.multivariate_normal(belief.mean, belief.covariance, 200_000)
    order = np.argsort(-drawn, axis=1)
    for rank in range(3):
        frequencies = np.bincount(order[:, rank], minlength=6) / len(drawn)
        np.testing.assert_allclose(posterior.ranks[:, rank], frequencies, atol=0.035)
    best = set(np.argsort(-belief.mean)[:3].tolist())
    same = np.mean([set(row) == best for row in order[:, :3].tolist()])
    assert posterior.set_confidence == pytest.approx(same, abs=0.035)
    np.testing.assert_allclose(posterior.ranks.sum(axis=0), 1.0)
    np.testing.assert_allclose(posterior.membership, posterior.ranks.sum(axis=1))
    np.testing.assert_allclose(posterior.confidence, posterior.ranks[posterior.order, range(3)])


def test_set_confidence_of_two_documents_is_the_probability_of_their_order() -> None:
    belief = Utilities(np.array([0.5, 0.0]), np.array([[1.0, 0.3], [0.3, 0.5]]))
    expected = norm.cdf(0.5 / 0.9**0.5)
    assert rank_posterior(belief, 1).set_confidence == pytest.approx(expected, abs=0.03)
    documents = np.arange(2)
    assert is_confident(expected - 0.08, belief, 1, documents)
    assert not is_confident(expected + 0.001, belief, 1, documents)  # known without sampling
    assert is_confident(0.99, belief, 2, documents)  # both are the top two


def test_excluded_documents_have_probability_zero() -> None:
    belief = random_belief(5, seed=1)
    posterior = rank_posterior(belief, 3, np.array([0, 3]))
    assert set(posterior.order.tolist()) == {0, 3}
    assert posterior.membership.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0]
    empty = rank_posterior(belief, 3, np.array([], np.int64))
    assert empty.order.tolist() == []
    assert empty.set_confidence == 1.0
