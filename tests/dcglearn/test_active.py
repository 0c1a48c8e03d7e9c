"""The next pair to ask for, and whether to ask at all."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.preferences.preferences import Preferences
from firstpage.dcglearn.active import STRATEGIES, choose
from firstpage.dcglearn.advice import MIN_PAIRS, MIN_QUERIES, Advice, _fitted, advice
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.simulation import OTHER_LIST, accuracy_of, reversed_pairs, simulate, world
from firstpage.dcglearn.validation import differences
from firstpage.errors import DataError


def learner(pairs: int = 60, data: int = 2) -> DCGLearn:
    return DCGLearn(10, 5, 100.0).fit(world(data).pairs(pairs, np.random.default_rng(0)))


def test_simple_margin_asks_what_is_least_sure():
    known, pool = learner(), world(2).pairs(300, np.random.default_rng(1))
    sure = np.abs(known.decision_function(pool))
    assert choose(known, pool, 5) == np.argsort(sure, kind="stable")[:5].tolist()
    assert choose(known.utility_.with_form("weights"), pool, 5) == choose(known, pool, 5)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_batch_has_no_pair_twice_and_none_without_difference(strategy):
    pool = world(2).pairs(40, np.random.default_rng(1))
    same = Preferences.from_grades([[5, 4, 3]], [[5, 4, 3]], [0], grades=pool.grades)
    back = Preferences(pool.grades, pool.right, pool.left, pool.outcome, pool.weight)
    found = choose(learner(), same + pool + pool + back, 60, strategy)
    assert len(found) == 40
    assert 0 not in found
    assert len({(row - 1) % 40 for row in found}) == 40


def test_diverse_prefers_what_an_answer_would_change():
    """Of two pairs alike in the batch the second is worth less once the first is chosen."""
    known, pool = learner(30), world(2).pairs(800, np.random.default_rng(1))
    rows = choose(known, pool, 8, "diverse")
    nearest = choose(known, pool, 8, "simple-margin")

    def likeness(chosen: list[int]) -> float:
        pairs = known._encoded(pool[np.array(chosen)])
        x = pairs.sparse().toarray()
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        return float(np.abs(x @ x.T - np.eye(len(x))).mean())

    assert likeness(rows) <= likeness(nearest) + 0.05
    sure = np.abs(differences(known._encoded(pool), known.weights_))
    assert sure[rows].mean() < np.median(sure)


@pytest.mark.slow
def test_choosing_reaches_97_percent_with_half_the_pairs():
    right = world(2)

    def asked(strategy: str, seed: int) -> int:
        rng = np.random.default_rng(seed)
        pool, test = right.pairs(1000, rng), right.pairs(3000, rng)
        rows = list(range(20))
        while len(rows) < 600:
            known = DCGLearn(10, 5, 100.0).fit(pool[np.array(rows)])
            if known.score(test) >= 0.97:
                return len(rows)
            rest = np.setdiff1d(np.arange(1000), rows)
            rows += rest[choose(known, pool[rest], 10, strategy, seed=len(rows))].tolist()
        return len(rows)

    for strategy in ("simple-margin", "diverse"):
        ratio = np.mean([asked(strategy, s) for s in range(2)]) / np.mean(
            [asked("random", s) for s in range(2)]
        )
        assert ratio <= 0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "x"}, "a strategy is one of simple-margin, diverse, committee, random"),
        ({"count": 0}, "count must be 1 or more"),
    ],
)
def test_wishes_that_cannot_be(options, words):
    with pytest.raises(DataError, match=words):
        choose(learner(), world(2).pairs(5, np.random.default_rng(0)), **options)


def test_a_measure_alone_has_no_committee():
    with pytest.raises(DataError, match="needs the preferences so far"):
        choose(learner().utility_, world(2).pairs(5, np.random.default_rng(0)), 1, "committee")


def test_an_empty_pool_has_nothing_to_ask():
    same = Preferences.from_grades([[5, 4]], [[5, 4]], [0], grades=range(1, 6))
    assert choose(learner(), same, 3) == []


@pytest.mark.slow
def test_advice_follows_the_curve():
    rng = np.random.default_rng(0)
    right = world(1)
    few, many = (advice(DCGLearn(10, 5, 10.0).fit(right.pairs(n, rng))) for n in (120, 600))
    assert few.gain > many.gain
    assert few.interval[0] <= few.gain <= few.interval[1]
    assert many.interval[1] - many.interval[0] < few.interval[1] - few.interval[0]
    assert few.accuracy() < many.accuracy() < many.accuracy(100) <= many.ceiling <= 1.0
    assert [m for m, _ in few.curve] == sorted(m for m, _ in few.curve)
    truth = DCGLearn(10, 5, 10.0).fit(right.pairs(600, rng)).score(right.pairs(4000, rng))
    assert many.accuracy() == pytest.approx(truth, abs=0.02)


@pytest.mark.slow
def test_advice_knows_that_people_err():
    rng = np.random.default_rng(0)
    noisy = reversed_pairs(world(1).pairs(600, rng), 0.25, rng)
    told = advice(DCGLearn(10, 5, 0.01).fit(noisy))
    assert told.ceiling < 0.85  # a quarter of the held-out pairs are reversed as well


@pytest.mark.parametrize("count", [25, MIN_PAIRS - 1])
def test_advice_from_too_few(count):
    told = advice(DCGLearn(10, 5, 1.0).fit(world(1).pairs(count, np.random.default_rng(0))))
    assert not told.known
    assert not told.stop
    assert told.verdict == "too few"
    assert "too few to tell" in str(told)
    assert f"which takes {MIN_PAIRS} pairs of {MIN_QUERIES} queries" in str(told)
    assert told.to_dict()["accuracy"] is None
    assert told.needed(0.9) is None


@pytest.mark.parametrize(
    ("interval", "verdict", "words"),
    [
        ((0.0, 0.009), "stop", "more hardly pay"),
        ((0.02, 0.09), "go on", ": go on."),
        ((0.0, 0.05), "unclear", "too uncertain to say"),
    ],
)
def test_advice_is_given_only_where_the_whole_interval_says_so(interval, verdict, words):
    told = Advice(300, 0.8, 1.0, 1.0, (), interval, 300)
    assert (told.verdict, told.stop) == (verdict, verdict == "stop")
    assert words in str(told)
    assert f"95% interval {interval[0]:+.3f} to {interval[1]:+.3f}" in str(told)
    assert told.to_dict()["gain_interval"] == list(interval)


def test_the_law_is_read_off_its_own_points():
    """Curves of the very form, also where the floor or the fall is 0."""
    sizes = np.array([20.0, 35, 50, 70, 100])
    for floor, miss, power in ((0.1, 2.0, 1.0), (0.0, 1.0, 0.5), (0.3, 0.0, 1.0)):
        ceiling, got, shape = _fitted(sizes, 1 - (floor + miss * sizes**-power)[None])
        want = 1 - floor - miss * 200**-power
        assert ceiling[0] - got[0] * 200 ** -shape[0] == pytest.approx(want, abs=1e-9)


@pytest.mark.slow
def test_advice_seldom_says_stop_while_more_would_pay():
    """At 100 pairs the next 100 still bring a point: of ten, hardly one is told to stop."""
    stops = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        noisy = reversed_pairs(world(1).pairs(100, rng), 0.2, rng)
        stops += advice(DCGLearn(10, 5, 1.0).fit(noisy), repeats=1).stop
    assert stops <= 2


def test_pairs_needed_are_read_from_the_law():
    told = Advice(100, 0.99, 2.0, 1.0, ())
    assert told.accuracy() == pytest.approx(0.97)
    assert told.needed(0.98) == 200
    assert told.needed(0.995) is None
    assert told.gain == pytest.approx(0.01)
    assert not told.stop


@pytest.mark.slow
@pytest.mark.parametrize("data", [1, 2])
def test_the_papers_simulation(data):
    found = simulate(data, 800, runs=3).to_dict()
    assert found["accuracy"] >= 0.97
    assert 0.88 <= found["other"] <= 0.92
    assert 0.85 <= found["similarity"] <= 0.95
    noisy = simulate(data, 800, 0.25, runs=3).to_dict()
    assert noisy["accuracy"] >= 0.85


def test_optimal_rankings_teach_nothing_about_the_rest():
    """Proposition 1: all compatible measures agree on them."""
    right, rng = world(2), np.random.default_rng(0)
    test = right.pairs(3000, rng)
    found = [DCGLearn(10, 5, 100.0).fit(right.optimal_pairs(n, rng)).score(test) for n in (50, 800)]
    assert max(found) < 0.8
    other = DCGLearn(10, 5, 100.0).fit(right.optimal_pairs(800, rng, OTHER_LIST)).score(test)
    assert other > 0.9


def test_a_known_measure_agrees_with_itself():
    right = world(1)
    test = right.pairs(500, np.random.default_rng(0))
    assert accuracy_of(right.truth, test) == 1.0
    assert accuracy_of(world(2).truth, test) < 0.95


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"data": 3}, "there are Data 1 and Data 2"),
        ({"data": 1, "noise": 2.0}, "noise is a share"),
        ({"data": 1, "pairs": 0}, "pairs and runs"),
    ],
)
def test_simulations_that_cannot_be(options, words):
    with pytest.raises(DataError, match=words):
        simulate(**options)


def test_chosen_pairs_are_written_as_they_stand(tmp_path, monkeypatch):
    from firstpage.data.preferences.files import rows_to_judge

    monkeypatch.chdir(tmp_path)
    row = {"query": "q", "left": ["d1", "d2"], "right": "old", "outcome": 0, "note": "kept"}
    (tmp_path / "pool.jsonl").write_text(json.dumps(row) + "\n")
    assert rows_to_judge("pool.jsonl", [0]) == [
        {"query": "q", "left": ["d1", "d2"], "right": "old", "note": "kept"}
    ]
    fp.write_preferences(world(1).pairs(3, np.random.default_rng(0)), "pool.npz")
    assert set(rows_to_judge("pool.npz", [2])[0]) == {"left", "right"}
