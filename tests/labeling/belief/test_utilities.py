"""The belief about utilities: moments, fits, Bradley and Terry, chances of places."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from firstpage.errors import DataError
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
CASES = list(itertools.product((-2.5, -0.3, 0.0, 1.7), (0.05, 1.0, 9.0), (1, 0, -1)))


def chance(d: float, outcome: int, margin: float) -> float:
    """Of an answer about a known difference, from the model's words."""
    first, second = norm.sf(margin - d), norm.cdf(-margin - d)
    return float({1: first, -1: second, 0: 1 - first - second}[outcome])


def random_belief(n: int, seed: int) -> Utilities:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n)) / n**0.5
    return Utilities(rng.standard_normal(n), root @ root.T + 0.3 * np.eye(n))


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "variance", "outcome"), CASES)
def test_moments_are_those_of_the_integral(mean: float, variance: float, outcome: int) -> None:
    def part(power: int) -> float:
        sd = variance**0.5
        density = lambda d: d**power * chance(d, outcome, MARGIN) * norm.pdf(d, mean, sd)  # noqa: E731
        return float(quad(density, mean - 9 * sd, mean + 9 * sd, epsabs=1e-12, limit=200)[0])

    total = part(0)
    after_mean = part(1) / total
    after_variance = part(2) / total - after_mean**2
    log_chance, slope, bend = moments(mean, variance, outcome, MARGIN)
    assert np.exp(log_chance) == pytest.approx(total, abs=1e-8)
    assert mean + variance * slope == pytest.approx(after_mean, abs=1e-6)
    assert variance + variance**2 * bend == pytest.approx(after_variance, abs=1e-6)


@pytest.mark.parametrize(("mean", "variance", "outcome"), CASES)
def test_slope_and_bend_are_derivatives(mean: float, variance: float, outcome: int) -> None:
    step = 1e-4
    low, at, high = (moments(mean + s, variance, outcome, MARGIN) for s in (-step, 0.0, step))
    assert at[1] == pytest.approx((high[0] - low[0]) / (2 * step), abs=1e-6)
    assert at[2] == pytest.approx((high[1] - low[1]) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("mean", [-60.0, -8.0, 0.0, 3.0, 60.0])
@pytest.mark.parametrize("variance", [1e-12, 0.5, 1e4])
def test_extreme_answers_stay_finite(mean: float, variance: float) -> None:
    for outcome in (1, 0, -1):
        found = np.array(moments(mean, variance, outcome, MARGIN))
        assert np.isfinite(found).all()
        assert variance + variance**2 * found[2] >= 0
    told = information(np.array([mean]), np.array([variance]), MARGIN)[0]
    assert 0 <= told <= 1.0 / (variance + 1.0)


@pytest.mark.parametrize("mean", [-2.0, 0.0, 0.4, 5.0])
def test_information_is_the_mean_square_of_the_slope(mean: float) -> None:
    variance = 0.7
    expected = 0.0
    for outcome in (1, 0, -1):
        log_chance, slope, _ = moments(mean, variance, outcome, MARGIN)
        expected += np.exp(log_chance) * slope**2
    assert information(np.array(mean), np.array(variance), MARGIN) == pytest.approx(expected)


def weighted_samples(
    before: Utilities, answers: list[tuple[int, int, int]], seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance after answers, by weighing two million samples."""
    rng = np.random.default_rng(seed)
    drawn = rng.multivariate_normal(before.mean, before.covariance, 2_000_000)
    weight = np.ones(len(drawn))
    for first, second, outcome in answers:
        d = drawn[:, first] - drawn[:, second]
        up, down = norm.sf(MARGIN - d), norm.cdf(-MARGIN - d)
        weight *= np.maximum({1: up, -1: down, 0: 1 - up - down}[outcome], 0.0)
    mean = np.average(drawn, axis=0, weights=weight)
    return mean, np.cov(drawn.T, aweights=weight)


@pytest.mark.slow
@pytest.mark.parametrize("outcome", [1, 0, -1])
def test_one_answer_is_taken_in_exactly(outcome: int) -> None:
    before = random_belief(3, seed=4)
    after = before.updated(2, 0, outcome)
    mean, covariance = weighted_samples(before, [(2, 0, outcome)])
    np.testing.assert_allclose(after.mean, mean, atol=0.005)
    np.testing.assert_allclose(after.covariance, covariance, atol=0.005)
    assert after.evidence < before.evidence == 0.0


@pytest.mark.slow
def test_many_answers_are_taken_in_nearly_exactly() -> None:
    answers = [(0, 1, 1), (1, 2, 1), (0, 2, 1), (3, 2, 0), (3, 0, -1), (1, 3, 0), (0, 1, -1)]
    before = prior(4, 1.5)
    found = fit(before, tuple(zip(*answers, strict=True)))
    mean, covariance = weighted_samples(before, answers)
    np.testing.assert_allclose(found.mean, mean, atol=0.03)
    np.testing.assert_allclose(found.covariance, covariance, atol=0.06)


def test_a_fit_does_not_depend_on_the_order_of_answers() -> None:
    rng = np.random.default_rng(0)
    answers = [(*rng.choice(8, 2, replace=False), int(rng.integers(-1, 2))) for _ in range(40)]
    shuffled = [answers[i] for i in rng.permutation(len(answers))]
    one, other = (fit(prior(8), tuple(zip(*a, strict=True))) for a in (answers, shuffled))
    np.testing.assert_allclose(one.mean, other.mean, atol=2e-3)
    np.testing.assert_allclose(one.covariance, other.covariance, atol=2e-3)


def test_a_weight_of_two_says_about_as_much_as_two_answers() -> None:
    twice = fit(prior(2), ([0, 0], [1, 1], [1, 1])).mean[0]
    once = fit(prior(2), ([0], [1], [1])).mean[0]
    heavy = fit(prior(2), ([0], [1], [1]), [2.0]).mean[0]
    assert once < heavy < 1.1 * twice
    assert fit(prior(2), ([0], [1], [1]), [1.0]).mean[0] == once


@given(st.integers(0, 50), st.sampled_from([1, 0, -1]))
def test_sides_do_not_matter(seed: int, outcome: int) -> None:
    belief = random_belief(5, seed)
    one, other = belief.updated(1, 3, outcome), belief.updated(3, 1, -outcome)
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-12)
    np.testing.assert_allclose(one.covariance, other.covariance, atol=1e-12)


@given(st.integers(0, 50), st.permutations(range(5)), st.sampled_from([1, 0, -1]))
def test_names_do_not_matter(seed: int, names: list[int], outcome: int) -> None:
    belief = random_belief(5, seed)
    renamed = Utilities(belief.mean[names], belief.covariance[np.ix_(names, names)])
    after = renamed.updated(names.index(1), names.index(3), outcome)
    np.testing.assert_allclose(after.mean, belief.updated(1, 3, outcome).mean[names], atol=1e-12)


def test_ten_thousand_equal_answers_leave_a_finite_belief() -> None:
    belief = prior(3, 2.0)
    for _ in range(10_000):
        belief = belief.updated(0, 1, 1)
    assert np.isfinite(belief.mean).all()
    assert (np.linalg.eigvalsh(belief.covariance) > -1e-9).all()
    assert belief.mean[0] > belief.mean[2] == 0.0 > belief.mean[1]


def test_a_prior_order_counts_by_its_ranks() -> None:
    given_scores = prior(5, 2.0, [0.1, 5.0, 0.3, 99.0, 0.2], trust=0.6)
    ranks = prior(5, 2.0, [1, 4, 3, 5, 2], trust=0.6)
    np.testing.assert_allclose(given_scores.mean, ranks.mean)
    assert list(np.argsort(ranks.mean)) == [0, 4, 2, 1, 3]
    np.testing.assert_allclose(ranks.variance, 4.0 * (1 - 0.36))
    np.testing.assert_allclose(prior(5, 2.0, [1, 1, 1, 1, 1]).mean, 0.0, atol=1e-12)


def test_documents_with_like_features_learn_from_each_other() -> None:
    features = np.array([[0.0, 1.0], [0.0, 1.0], [5.0, -2.0], [4.0, 9.0]])
    belief = prior(4, 1.0, features=features)
    np.testing.assert_allclose(belief.variance, 1.0)
    after = belief.updated(0, 3, 1)
    assert after.mean[0] > after.mean[1] > after.mean[2]
    assert np.isfinite(prior(3, features=np.ones((3, 2))).covariance).all()
    with pytest.raises(DataError, match="a row for each of the 4"):
        prior(4, features=np.ones((3, 2)))


def test_the_spread_follows_how_clear_the_answers_are() -> None:
    rng = np.random.default_rng(3)
    clear, coins = BeliefEnsemble.from_prior(12), BeliefEnsemble.from_prior(12)
    for _ in range(150):
        a, b = rng.choice(12, 2, replace=False)
        clear = clear.updated(a, b, 1 if a < b else -1)
        coins = coins.updated(a, b, int(rng.integers(0, 2)) * 2 - 1)
    assert clear.best.prior_sd == max(PRIOR_SDS) == clear.exploratory.prior_sd
    assert coins.best.prior_sd == min(PRIOR_SDS) < coins.exploratory.prior_sd


def likelihood(u: np.ndarray, left: list[int], right: list[int], outcome: list[int]) -> float:
    total = -0.5e-6 * float(u @ u)
    for i, j, y in zip(left, right, outcome, strict=True):
        for side, share in ((1, (1 + y) / 2), (-1, (1 - y) / 2)):
            total -= share * float(np.logaddexp(0.0, -side * (u[i] - u[j])))
    return total


@pytest.mark.slow
def test_bradley_terry_is_the_optimum() -> None:
    rng = np.random.default_rng(5)
    left, right = ([int(x) for x in col] for col in rng.integers(0, 6, (2, 90)))
    outcome = [int(rng.integers(-1, 2)) if i != j else 0 for i, j in zip(left, right, strict=True)]
    found = bradley_terry(6, left, right, outcome)
    best = minimize(lambda u: -likelihood(u, left, right, outcome), np.zeros(6), tol=1e-10)
    np.testing.assert_allclose(found, best.x - best.x.mean(), atol=1e-3)
    assert likelihood(found, left, right, outcome) >= -best.fun - 1e-9


def test_bradley_terry_converges_on_any_data() -> None:
    chain = bradley_terry(4, [0, 1, 2], [1, 2, 3], [1, 1, 1])
    assert np.isfinite(chain).all()
    assert list(np.argsort(-chain)) == [0, 1, 2, 3]
    apart = bradley_terry(5, [0, 2], [1, 3], [1, -1])
    np.testing.assert_allclose(apart, [apart[0], -apart[0], -apart[0], apart[0], 0.0], atol=1e-6)
    assert apart[0] > 1
    np.testing.assert_allclose(bradley_terry(3, [0, 1], [1, 2], [0, 0]), 0.0, atol=1e-12)
    np.testing.assert_allclose(bradley_terry(3, [], [], []), 0.0)
    many = bradley_terry(2, [0] * 10_000, [1] * 10_000, [1] * 10_000)
    assert np.isfinite(many).all()
    assert many[0] > 5


@pytest.mark.slow
def test_places_are_those_of_brute_force() -> None:
    belief = random_belief(6, seed=8)
    found = rank_posterior(belief, 3)
    rng = np.random.default_rng(99)
    drawn = rng.multivariate_normal(belief.mean, belief.covariance, 200_000)
    order = np.argsort(-drawn, axis=1)
    for place in range(3):
        shares = np.bincount(order[:, place], minlength=6) / len(drawn)
        np.testing.assert_allclose(found.ranks[:, place], shares, atol=0.035)
    best = set(np.argsort(-belief.mean)[:3].tolist())
    same = np.mean([set(row) == best for row in order[:, :3].tolist()])
    assert found.set_confidence == pytest.approx(same, abs=0.035)
    np.testing.assert_allclose(found.ranks.sum(axis=0), 1.0)
    np.testing.assert_allclose(found.membership, found.ranks.sum(axis=1))
    np.testing.assert_allclose(found.confidence, found.ranks[found.order, range(3)])


def test_two_documents_have_the_chance_of_their_difference() -> None:
    belief = Utilities(np.array([0.5, 0.0]), np.array([[1.0, 0.3], [0.3, 0.5]]))
    expected = norm.cdf(0.5 / 0.9**0.5)
    assert rank_posterior(belief, 1).set_confidence == pytest.approx(expected, abs=0.03)
    everyone = np.arange(2)
    assert is_confident(expected - 0.08, belief, 1, everyone)
    assert not is_confident(expected + 0.001, belief, 1, everyone)  # known without sampling
    assert is_confident(0.99, belief, 2, everyone)  # both are the top two


def test_documents_left_out_have_no_place() -> None:
    belief = random_belief(5, seed=1)
    found = rank_posterior(belief, 3, np.array([0, 3]))
    assert set(found.order.tolist()) == {0, 3}
    assert found.membership.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0]
    nobody = rank_posterior(belief, 3, np.array([], np.int64))
    assert nobody.order.tolist() == []
    assert nobody.set_confidence == 1.0
