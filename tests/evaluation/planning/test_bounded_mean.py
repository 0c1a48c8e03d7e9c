"""Gaffke's test: exact for two values, and its level and power under simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from firstpage.core.types import Floats
from firstpage.evaluation.planning.bounded_mean import BoundedSample, queries_to_exclude

ALPHA = 0.05
Draw = Callable[[np.random.Generator, int], Floats]


def sample(values: Floats, weights: Floats | None = None) -> BoundedSample:
    return BoundedSample(values, np.ones(len(values)) if weights is None else weights, -1.0, 1.0)


@pytest.mark.parametrize(
    ("size", "broken", "margin"),
    [(1, 0, 0.5), (2, 1, 0.5), (3, 1, 0.6), (50, 0, 0.01), (300, 2, 0.03), (20_000, 300, 0.017)],
)
def test_two_values_have_the_binomial_test(size: int, broken: int, margin: float) -> None:
    values = np.where(np.arange(size) < broken, -1.0, 0.0)
    exact = stats.binom.cdf(broken, size, margin)
    assert sample(values).p_at_most(-margin) == pytest.approx(exact, rel=1e-3, abs=1e-10)
    assert sample(-values).p_at_least(margin) == pytest.approx(exact, rel=1e-3, abs=1e-10)
    limit = -stats.beta.ppf(1 - ALPHA, broken + 1, size - broken)  # of Clopper and Pearson
    assert sample(values).lower_limit(ALPHA) == pytest.approx(limit, abs=1e-5)


@pytest.mark.parametrize("size", [1, 2, 5, 40, 1500])
def test_the_p_value_is_that_of_random_weights(size: int) -> None:
    rng = np.random.default_rng(size)
    values, weights = rng.normal(0.03, 0.3, size).clip(-1, 1), rng.uniform(0.2, 3, size)
    limit = 0.05 - 0.2 / np.sqrt(size)
    shifted = np.append(weights * (values - limit), weights.max() * (1 - limit))
    drawn = [rng.standard_exponential((500, size + 1)) @ shifted >= 0 for _ in range(40)]
    p = sample(values, weights).p_at_least(limit)
    assert p == pytest.approx(np.mean(drawn), abs=0.015)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limit", [0.0, 0.003, 0.02])
def test_many_values_have_the_p_value_of_random_weights(seed: int, limit: float) -> None:
    """More values than are kept apart, on both sides of the limit."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([[-1e-4], rng.beta(0.5, 5, 599), rng.normal(-0.0003, 0.0003, 400)])
    for sign in (1.0, -1.0):
        shifted = np.append(sign * values - limit, 1.0 - limit)
        drawn = np.mean(rng.standard_exponential((4000, len(shifted))) @ shifted >= 0)
        assert sample(sign * values).p_at_least(limit) == pytest.approx(drawn, abs=0.03)
    mean = float(values.mean())
    assert mean - 0.02 < sample(values).lower_limit(ALPHA) < mean


def test_better_systems_pass_with_many_values() -> None:
    rng = np.random.default_rng(1)
    better = np.concatenate([[-1e-4], rng.beta(0.5, 5, 599)])
    assert sample(better).p_at_least(0.0) > 0.99
    same = np.random.default_rng(0).normal(-0.0003, 0.0003, 5000)
    assert sample(same).p_at_most(-0.01) < 1e-6
    assert -0.01 < sample(same).lower_limit(ALPHA) < 0


def test_extreme_samples_have_a_p_value() -> None:
    for values in (np.zeros(5), np.full(5, -1.0), np.full(5, 1.0), np.array([1e-300, -1e-9])):
        checked = sample(values)
        assert 0 <= checked.p_at_least(0.0) <= 1
        assert 0 <= checked.p_at_most(0.0) <= 1
        assert -1 <= checked.lower_limit(ALPHA) <= values.mean()
    assert sample(np.zeros(5)).p_at_least(0) == sample(np.zeros(5)).p_at_most(0) == 1


BROKEN: dict[str, tuple[Draw, float]] = {  # differences, and their true mean
    "rare queries lose everything": (lambda rng, n: -(rng.random(n) < 0.03).astype(float), -0.03),
    "and the others change a little": (
        lambda rng, n: rng.normal(0, 0.01, n) - (rng.random(n) < 0.03),
        -0.03,
    ),
    "few queries change": (
        lambda rng, n: rng.choice([0, 0.5, -0.25], n, p=[0.8, 0.05, 0.15]),
        -0.0125,
    ),
    "skewed losses": (lambda rng, n: 0.06 - rng.exponential(0.1, n).clip(0, 0.9), -0.04),
    "skewed changes": (lambda rng, n: rng.choice([1.0, -0.25], n, p=[0.2, 0.8]), 0.0),
    "differences of RR": (
        lambda rng, n: 1 / rng.integers(1, 6, n) - 1 / rng.integers(1, 6, n),
        0.0,
    ),
}


@pytest.mark.parametrize("size", [2, 3, 5, 10, 50, 200])
@pytest.mark.parametrize("name", BROKEN)
def test_the_level_holds(name: str, size: int) -> None:
    """A hypothesis that is just true is rejected in at most 5 % of the samples, on both sides."""
    draw, mean = BROKEN[name]
    rng, rounds = np.random.default_rng(size), 200
    errors = np.zeros(2)
    for _ in range(rounds):
        drawn = sample(draw(rng, size))
        errors += drawn.p_at_most(mean) < ALPHA, drawn.p_at_least(mean) < ALPHA
    assert (errors / rounds <= ALPHA + 2.5 * np.sqrt(ALPHA * (1 - ALPHA) / rounds)).all()


def test_large_losses_are_found() -> None:
    """Power at sizes that docs/evaluate.md names: differences of deviation .15, margin .01."""
    rng, rounds = np.random.default_rng(0), 100
    for size, loss, low, high in [(50, 0.1, 0.6, 0.9), (50, 0.05, 0, 0.2), (200, 0.05, 0.85, 1)]:
        values = rng.normal(-loss, 0.15, (rounds, size)).clip(-1, 1)
        power = np.mean([sample(row).p_at_least(-0.01) < ALPHA for row in values])
        assert low <= power <= high, (size, loss, power)


@pytest.mark.parametrize("deviation", [0.0, 0.05, 0.2])
def test_as_many_queries_as_asked_for_show_a_system_to_be_safe(deviation: float) -> None:
    rng, rounds, margin = np.random.default_rng(1), 60, 0.03
    size = queries_to_exclude(margin, deviation, 1.0, ALPHA, 0.8)
    values = rng.normal(0, deviation, (rounds, size)).clip(-1, 1)
    passes = np.mean([sample(row).p_at_most(-margin) < ALPHA for row in values])
    assert passes >= 0.65
    assert queries_to_exclude(0.01, 0.0, 1.0, ALPHA, 0.8) == 300  # the rule of three
