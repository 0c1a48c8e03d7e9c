"""Confidence sequences: definitions, another package's values, coverage at all looks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import firstpage as fp
from firstpage.core import Array

DAYS = np.arange(40, 1201, 40)  # counts at daily looks


def test_bounds_of_wins_are_where_the_mixture_reaches_one_over_alpha() -> None:
    low, high = fp.clicks.win_sequence([30, 0, 7], [10, 5, 0], alpha=0.1, concentration=8)
    for k, (w, n) in enumerate([(30, 40), (0, 5), (7, 7)]):
        for p in (float(low[k]), float(high[k])):
            if 0 < p < 1:
                steps = np.linspace(1e-6, 1 - 1e-6, 200_001)
                prior = math.gamma(8) / math.gamma(4) ** 2 * (steps * (1 - steps)) ** 3
                ratio = (steps / p) ** w * ((1 - steps) / (1 - p)) ** (n - w)
                assert np.trapezoid(prior * ratio, steps) == pytest.approx(10, rel=1e-6)
    assert low[1] == 0
    assert high[2] == 1
    assert high[1] < 1
    assert low[2] > 0
    nothing = fp.clicks.win_sequence([0], [0])
    assert (float(nothing[0][0]), float(nothing[1][0])) == (0, 1)


@pytest.mark.parametrize(
    ("wins", "losses", "evidence"),
    [  # of confseq 0.0.11: beta_binomial_log_mixture((wins - losses) / 2, (wins + losses) / 4,
        # 5.25 * (2 log 20 + log(1 + 2 log 20)), 1/2, 1/2, 0.05, False), whose r is 20 / 4
        (30, 10, 2.899932035827838),
        (12, 3, 0.9199627873768428),
        (300, 250, 0.5126620256237224),
        (7, 0, 0.8002453161163139),
        (1030, 920, 0.7668295323289662),
        (15, 25, 0.2938445282948905),
    ],
)
def test_a_half_leaves_the_interval_at_the_level_of_confseq(
    wins: int, losses: int, evidence: float
) -> None:
    """Its mixture is around each probability and ours around 1/2: they are the same at 1/2."""
    low, high = fp.clicks.win_sequence([wins], [losses], math.exp(-evidence), concentration=20)
    assert float((low if wins > losses else high)[0]) == pytest.approx(0.5, abs=1e-9)


def test_bounds_of_a_mean_by_the_definition() -> None:
    """Waudby-Smith and Ramdas (2024), equations (14) and (15), term by term."""
    x = np.random.default_rng(2).beta(2, 5, 60)
    low, high = fp.clicks.mean_sequence(x * 4 - 2, -2, 2, alpha=0.1)
    mean, variance = 0.5, 0.25
    weights = products = penalty = 0.0
    squares, total = 0.25, 0.5
    for t, value in enumerate(x.tolist(), 1):
        weight = min(math.sqrt(2 * math.log(20) / (variance * t * math.log(1 + t))), 0.5)
        weights, products = weights + weight, products + weight * value
        penalty += 4 * (value - mean) ** 2 * (-math.log(1 - weight) - weight) / 4
        total += value
        mean = total / (t + 1)
        squares += (value - mean) ** 2
        variance = squares / (t + 1)
        radius = (math.log(20) + penalty) / weights
        center = products / weights
        assert low[t - 1] == pytest.approx(4 * max(center - radius, 0) - 2)
        assert high[t - 1] == pytest.approx(4 * min(center + radius, 1) - 2)


@pytest.mark.parametrize(
    ("shares", "looks", "expected"),
    [  # 1 / odds of savvi 0.3.1, Multinomial(alpha=0.05, theta_0=shares), after each update
        (
            [0.5, 0.5],
            [[50, 60], [450, 590], [100, 100]],
            [1.1421976552516249, 0.0004248317528131136, 0.0015988051652998782],
        ),
        (
            [0.1, 0.3, 0.6],
            [[10, 30, 60], [20, 20, 60], [50, 250, 700]],
            [2.0116956877356884, 0.40953840677475045, 1.745207060985671e-07],
        ),
    ],
)
def test_p_values_are_the_least_of_those_of_savvi(
    shares: list[float], looks: list[list[int]], expected: list[float]
) -> None:
    p = fp.clicks.ratio_mismatch(np.cumsum(looks, axis=0), shares)
    assert p == pytest.approx(np.minimum(np.minimum.accumulate(expected), 1), rel=1e-9)


def test_bounds_of_a_mean_are_near_those_of_confseq() -> None:
    """Values of confseq 0.0.11, predmix_empbern_cs: its center begins at 0 (or 1), not at 1/2."""
    low, high = fp.clicks.mean_sequence(np.random.default_rng(2).beta(2, 5, 2000))
    at = [250, 500, 1000, 1999]
    lower = [0.25711793738387834, 0.2626779175296388, 0.2702569812784175, 0.2772527715693458]
    upper = [0.3374858640346521, 0.31418648747058986, 0.3057088945224896, 0.3025788066477425]
    assert low[at] == pytest.approx(lower, abs=1e-3)
    assert high[at] == pytest.approx(upper, abs=1e-3)


def missed(low: Array, high: Array, truth: float) -> float:
    """Return the fraction of simulations in which any look misses the truth."""
    return float(((low > truth) | (high < truth)).any(axis=1).mean())


@pytest.mark.parametrize("p", [0.5, 0.7])
def test_looking_daily_misses_the_truth_no_more_than_promised(p: float) -> None:
    rng = np.random.default_rng(4)
    wins = np.cumsum(rng.binomial(40, p, (600, len(DAYS))), axis=1)
    bounds = [fp.clicks.win_sequence(row, DAYS - row) for row in wins]
    low, high = np.array([b[0] for b in bounds]), np.array([b[1] for b in bounds])
    assert missed(low, high, p) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)
    radius = 1.96 * np.sqrt(p * (1 - p) / DAYS)  # the interval of one look alone
    assert missed(wins / DAYS - radius, wins / DAYS + radius, p) > 0.15


def test_means_and_shares_keep_their_promise_at_all_looks() -> None:
    rng = np.random.default_rng(5)
    x = rng.beta(0.5, 2, (500, 1200))
    bounds = [fp.clicks.mean_sequence(row) for row in x]
    low, high = np.array([b[0] for b in bounds]), np.array([b[1] for b in bounds])
    assert missed(low, high, 0.2) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 500)
    assert (high - low)[:, -1].mean() < 0.1
    counts = np.cumsum(rng.multinomial(40, [0.5, 0.3, 0.2], (500, len(DAYS))), axis=1)
    p = np.array([fp.clicks.ratio_mismatch(row, [0.5, 0.3, 0.2])[-1] for row in counts])
    assert (p <= 0.05).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 500)
    wrong = [fp.clicks.ratio_mismatch(row, [0.4, 0.4, 0.2])[-1] for row in counts]
    assert np.mean(np.array(wrong) <= 0.05) > 0.9


def test_impossible_values_are_refused() -> None:
    with pytest.raises(fp.DataError, match="between 0 and 1"):
        fp.clicks.mean_sequence([0.5, 1.5])
    with pytest.raises(fp.DataError, match="between 0 and 1"):
        fp.clicks.mean_sequence([0.5, math.nan])
    with pytest.raises(fp.DataError, match="counts from 0"):
        fp.clicks.win_sequence([-1], [2])
    with pytest.raises(fp.DataError, match="positive share"):
        fp.clicks.ratio_mismatch([[1, 2]], [1.0, 0.0])
