"""Choosing the next pairs to judge, and advice whether to go on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.data.preferences.preferences import Preferences
from firstpage.evaluation.dcglearn.active import STRATEGIES, choose
from firstpage.evaluation.dcglearn.advisor import (
    MIN_PAIRS,
    MIN_QUERIES,
    LearningCurve,
    _fit_power_law,
    advice,
)
from firstpage.evaluation.dcglearn.learn import DCGLearn
from firstpage.evaluation.dcglearn.simulation import (
    OTHER_LIST,
    reverse_pairs,
    simulate,
    utility_accuracy,
    zhou_simulator,
)
from firstpage.evaluation.dcglearn.validation import differences


def learner(pairs: int = 60, data: int = 2) -> DCGLearn:
    return DCGLearn(10, 5, 100.0).fit(zhou_simulator(data).pairs(pairs, np.random.default_rng(0)))


def test_simple_margin_chooses_the_smallest_differences():
    fitted, pool = learner(), zhou_simulator(2).pairs(300, np.random.default_rng(1))
    margins = np.abs(fitted.decision_function(pool))
    assert choose(fitted, pool, 5) == np.argsort(margins, kind="stable")[:5].tolist()
    assert choose(fitted.utility_.with_form("weights"), pool, 5) == choose(fitted, pool, 5)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batch_has_distinct_pairs_with_a_difference(strategy):
    pool = zhou_simulator(2).pairs(40, np.random.default_rng(1))
    without_difference = Preferences.from_grades([[5, 4, 3]], [[5, 4, 3]], [0], grades=pool.grades)
    swapped = Preferences(pool.grades, pool.right, pool.left, pool.outcome, pool.weight)
    rows = choose(learner(), without_difference + pool + pool + swapped, 60, strategy)
    assert len(rows) == 40
    assert 0 not in rows
    assert len({(row - 1) % 40 for row in rows}) == 40


def test_diverse_batch_avoids_similar_pairs():
    """Once a pair is chosen, similar pairs become less informative."""
    fitted, pool = learner(30), zhou_simulator(2).pairs(800, np.random.default_rng(1))
    rows = choose(fitted, pool, 8, "diverse")
    nearest = choose(fitted, pool, 8, "simple-margin")

    def similarity(chosen: list[int]) -> float:
        pairs = fitted._encode(pool[np.array(chosen)])
        x = pairs.sparse().toarray()
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        return float(np.abs(x @ x.T - np.eye(len(x))).mean())

    assert similarity(rows) <= similarity(nearest) + 0.05
    margins = np.abs(differences(fitted._encode(pool), fitted.weights_))
    assert margins[rows].mean() < np.median(margins)


def test_active_learning_reaches_97_percent_with_half_the_pairs():
    simulator = zhou_simulator(2)

    def pairs_needed(strategy: Any, seed: int) -> int:
        rng = np.random.default_rng(seed)
        pool, test = simulator.pairs(1000, rng), simulator.pairs(3000, rng)
        rows = list(range(20))
        while len(rows) < 600:
            fitted = DCGLearn(10, 5, 100.0).fit(pool[np.array(rows)])
            if fitted.score(test) >= 0.97:
                return len(rows)
            unlabeled = np.setdiff1d(np.arange(1000), rows)
            rows += unlabeled[
                choose(fitted, pool[unlabeled], 10, strategy, seed=len(rows))
            ].tolist()
        return len(rows)

    needed = {
        strategy: np.mean([pairs_needed(strategy, seed) for seed in range(2)])
        for strategy in ("random", "simple-margin", "diverse")
    }
    assert needed["simple-margin"] <= needed["random"] / 2
    assert needed["diverse"] <= needed["random"] / 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "x"}, "strategy must be one of simple-margin, diverse, committee, random"),
        ({"count": 0}, "count must be at least 1"),
    ],
)
def test_invalid_options_raise(options, message):
    with pytest.raises(DataError, match=message):
        choose(learner(), zhou_simulator(2).pairs(5, np.random.default_rng(0)), **options)


def test_committee_needs_a_fitted_learner():
    with pytest.raises(DataError, match="needs a learner fitted to the preferences so far"):
        choose(
            learner().utility_, zhou_simulator(2).pairs(5, np.random.default_rng(0)), 1, "committee"
        )


def test_pool_without_differences_gives_no_pairs():
    pool = Preferences.from_grades([[5, 4]], [[5, 4]], [0], grades=range(1, 6))
    assert choose(learner(), pool, 3) == []


def test_expected_gain_decreases_with_the_number_of_pairs():
    rng = np.random.default_rng(0)
    simulator = zhou_simulator(1)
    few, many = (advice(DCGLearn(10, 5, 10.0).fit(simulator.pairs(n, rng))) for n in (120, 600))
    assert few.gain > many.gain
    assert few.interval[0] <= few.gain <= few.interval[1]
    assert many.interval[1] - many.interval[0] < few.interval[1] - few.interval[0]
    assert few.accuracy() < many.accuracy() < many.accuracy(100) <= many.ceiling <= 1.0
    assert [m for m, _ in few.curve] == sorted(m for m, _ in few.curve)
    truth = DCGLearn(10, 5, 10.0).fit(simulator.pairs(600, rng)).score(simulator.pairs(4000, rng))
    assert many.accuracy() == pytest.approx(truth, abs=0.02)


def test_noisy_judgments_lower_the_ceiling():
    rng = np.random.default_rng(0)
    noisy = reverse_pairs(zhou_simulator(1).pairs(600, rng), 0.25, rng)
    result = advice(DCGLearn(10, 5, 0.01).fit(noisy))
    assert result.ceiling < 0.85  # a quarter of the held-out pairs are reversed as well


@pytest.mark.parametrize("count", [25, MIN_PAIRS - 1])
def test_no_advice_below_the_minimum_number_of_pairs(count):
    result = advice(
        DCGLearn(10, 5, 1.0).fit(zhou_simulator(1).pairs(count, np.random.default_rng(0)))
    )
    assert not result.known
    assert not result.stop
    assert result.verdict == "too few"
    assert "too few to estimate" in str(result)
    assert f"which needs {MIN_PAIRS} pairs of {MIN_QUERIES} queries" in str(result)
    assert result.to_dict()["accuracy"] is None
    assert result.pairs_needed(0.9) is None


@pytest.mark.parametrize(
    ("interval", "verdict", "message"),
    [
        ((0.0, 0.009), "stop", "more judgments would hardly help"),
        ((0.02, 0.09), "continue", ": continue judging."),
        ((0.0, 0.05), "unclear", "too uncertain to say"),
    ],
)
def test_verdict_needs_the_whole_interval(interval, verdict, message):
    result = LearningCurve(300, 0.8, 1.0, 1.0, (), interval, 300)
    assert (result.verdict, result.stop) == (verdict, verdict == "stop")
    assert message in str(result)
    assert f"95% interval {interval[0]:+.3f} to {interval[1]:+.3f}" in str(result)
    assert result.to_dict()["gain_interval"] == list(interval)


def test_power_law_fits_its_own_curves():
    """Curves of the modeled form, also where the floor or the amplitude is 0."""
    sizes = np.array([20.0, 35, 50, 70, 100])
    for floor, amplitude, exponent in ((0.1, 2.0, 1.0), (0.0, 1.0, 0.5), (0.3, 0.0, 1.0)):
        ceiling, fitted_amplitude, shape = _fit_power_law(
            sizes, 1 - (floor + amplitude * sizes**-exponent)[None]
        )
        expected = 1 - floor - amplitude * 200**-exponent
        assert ceiling[0] - fitted_amplitude[0] * 200 ** -shape[0] == pytest.approx(
            expected, abs=1e-9
        )


def test_advice_rarely_stops_too_early():
    """At 100 pairs the next 100 still add .01; at most two of ten runs advise to stop."""
    stops = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        noisy = reverse_pairs(zhou_simulator(1).pairs(100, rng), 0.2, rng)
        stops += advice(DCGLearn(10, 5, 1.0).fit(noisy), repeats=1).stop
    assert stops <= 2


def test_pairs_needed_follow_from_the_power_law():
    result = LearningCurve(100, 0.99, 2.0, 1.0, ())
    assert result.accuracy() == pytest.approx(0.97)
    assert result.pairs_needed(0.98) == 200
    assert result.pairs_needed(0.995) is None
    assert result.gain == pytest.approx(0.01)
    assert not result.stop


@pytest.mark.parametrize("data", [1, 2])
def test_simulation_reproduces_the_accuracies_of_the_paper(data):
    summary = simulate(data, 800, runs=3).to_dict()
    assert summary["accuracy"] >= 0.97
    assert 0.88 <= summary["other_accuracy"] <= 0.92
    assert 0.85 <= summary["similarity"] <= 0.95
    noisy = simulate(data, 800, 0.25, runs=3).to_dict()
    assert noisy["accuracy"] >= 0.85


def test_optimal_rankings_do_not_determine_the_measure():
    """Proposition 1: all compatible measures agree on optimal rankings."""
    simulator, rng = zhou_simulator(2), np.random.default_rng(0)
    test = simulator.pairs(3000, rng)
    accuracies = [
        DCGLearn(10, 5, 100.0).fit(simulator.optimal_pairs(n, rng)).score(test) for n in (50, 800)
    ]
    assert max(accuracies) < 0.8
    other_list_accuracy = (
        DCGLearn(10, 5, 100.0).fit(simulator.optimal_pairs(800, rng, OTHER_LIST)).score(test)
    )
    assert other_list_accuracy > 0.9


def test_measure_agrees_with_its_own_preferences():
    simulator = zhou_simulator(1)
    test = simulator.pairs(500, np.random.default_rng(0))
    assert utility_accuracy(simulator.truth, test) == 1.0
    assert utility_accuracy(zhou_simulator(2).truth, test) < 0.95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": 3}, "data must be 1 or 2"),
        ({"data": 1, "noise": 2.0}, "noise is a fraction"),
        ({"data": 1, "pairs": 0}, "pairs and runs"),
    ],
)
def test_invalid_simulation_options_raise(options, message):
    with pytest.raises(DataError, match=message):
        simulate(**options)


def test_chosen_rows_keep_all_fields_but_the_outcome(tmp_path, monkeypatch):
    from firstpage.data.preferences.files import rows_to_judge

    monkeypatch.chdir(tmp_path)
    row = {"query": "q", "left": ["d1", "d2"], "right": "old", "outcome": 0, "note": "kept"}
    (tmp_path / "pool.jsonl").write_text(json.dumps(row) + "\n")
    assert rows_to_judge("pool.jsonl", [0]) == [
        {"query": "q", "left": ["d1", "d2"], "right": "old", "note": "kept"}
    ]
    fp.dcglearn.write_preferences(zhou_simulator(1).pairs(3, np.random.default_rng(0)), "pool.npz")
    assert set(rows_to_judge("pool.npz", [2])[0]) == {"left", "right"}
