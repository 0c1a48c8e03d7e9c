"""Prediction-powered estimates: by hand, coverage by simulation, and the commands."""

from __future__ import annotations

import json
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.evaluation.planning.prediction_powered import powered_mean
from firstpage.evaluation.planning.query_sample import _systematic_draw

ROUNDS = 1500


def lower_bound(level: float = 0.95, rounds: int = ROUNDS) -> float:
    """Return the coverage that a valid interval has in a simulation, but for 1 in 1000."""
    return level - 3.1 * math.sqrt(level * (1 - level) / rounds)


def test_by_hand() -> None:
    """Four queries, two of them judged by people, weight 1, about these queries."""
    machine, drawn = np.array([0.5, 0.25, 1.0, 0.0]), np.array([True, False, True, False])
    estimate = powered_mean(np.array([0.5, 0.5]), machine, np.full(4, 0.5), drawn, 1.0, "queries")
    errors = [0.5 - 0.5, 0.5 - 1.0]
    assert estimate.value == pytest.approx(1.75 / 4 + sum(errors) / 2)
    variance = (1 / 2 - 1 / 4) * (2 * 0.25**2)  # of a mean of 2 of 4, deviations of 0.25
    assert estimate.error == pytest.approx(math.sqrt(variance))
    assert estimate.freedom == 1


def test_people_alone_are_the_plain_mean_with_its_t_interval() -> None:
    from scipy.stats import t

    rng = np.random.default_rng(0)
    human, drawn = rng.random(12), np.arange(1000) < 12
    estimate = powered_mean(human, rng.random(1000), np.full(1000, 0.012), drawn, 0.0)
    half = t.ppf(0.975, 11) * human.std(ddof=1) / math.sqrt(12)
    assert estimate.value == pytest.approx(human.mean())
    assert estimate.interval(0.95) == pytest.approx((human.mean() - half, human.mean() + half))
    assert estimate.equivalent_queries == pytest.approx(12)


@pytest.mark.filterwarnings("ignore:the machine's error varies")
def test_intervals_are_cut_to_the_possible_values() -> None:
    """Nearly all values are 1, so that the interval of a mean would exceed 1."""
    names = [f"q{n}" for n in range(40)]
    human = {query: {"a": int(n != 3), "b": 1} for n, query in enumerate(names)}
    machine = {query: {"a": 1, "b": int(n % 5 > 0)} for n, query in enumerate(names)}
    systems = {
        "x": {q: {"a": 2.0, "b": 1.0} for q in names},
        "y": {q: {"a": 1.0, "b": 2.0} for q in names},
    }
    sample = fp.planning.QuerySample(tuple(names), np.full(40, 0.5), np.arange(40) < 20)
    result = fp.planning.estimate(systems, human, machine, sample, measures=["RR", "DCG"])
    for mean in result.means:
        if mean.measure == "RR":
            assert 0 <= mean.low <= mean.value <= mean.high <= 1
    assert max(mean.high for mean in result.means if mean.measure == "RR") == 1
    assert max(mean.high for mean in result.means if mean.measure == "DCG") > 1
    for difference in result.differences:
        assert -1 <= difference.low <= difference.value <= difference.high


def test_tuning_is_the_regression_estimate() -> None:
    rng = np.random.default_rng(0)
    machine, drawn = rng.random(200), np.arange(200) % 4 == 0
    human = 0.3 + 0.5 * machine[drawn] + 0.1 * rng.random(50)
    tuned = powered_mean(human, machine, np.full(200, 0.25), drawn)
    slope, intercept = np.polyfit(machine[drawn], human, 1)
    assert tuned.machine_weight == pytest.approx(slope)
    assert tuned.value == pytest.approx(intercept + slope * machine.mean())


def test_all_queries_judged_leave_nothing_to_the_machine() -> None:
    rng = np.random.default_rng(0)
    human, certain = rng.random(30), np.ones(30)
    estimate = powered_mean(human, rng.random(30), certain, certain > 0, None, "queries")
    assert estimate.value == pytest.approx(human.mean())
    assert estimate.error == 0.0


def simulate(kind: str, target: Any, rounds: int = ROUNDS) -> dict[str, float]:
    """Return the coverage of several intervals for a noisy machine that is too lenient.

    The values are skewed, as those of NDCG.  With unequal probabilities, queries that the machine
    rates high are drawn more often.
    """
    rng = np.random.default_rng(3)
    size, count = 200, 40
    names = [str(q) for q in range(size)]
    equal, certain = np.full(size, count / size), np.ones(size, bool)
    hits = dict.fromkeys(["tuned", "plain", "people", "machine", "unweighted"], 0)
    for seed in range(rounds):
        human = rng.beta(0.7, 1.3, size)
        machine = np.clip(0.2 + 0.6 * human + rng.normal(0, 0.15, size), 0, 1)
        truth = human.mean() if target == "queries" else 0.35
        sizes = None if kind == "equal" else dict(zip(names, 0.2 + machine, strict=True))
        sample = fp.planning.QuerySample.draw(names, count, sizes=sizes, seed=seed)
        p, drawn = sample.probabilities, sample.drawn
        values = human[drawn], machine
        estimates = {
            "tuned": powered_mean(*values, p, drawn, None, target),
            "plain": powered_mean(*values, p, drawn, 1.0, target),
            "people": powered_mean(*values, p, drawn, 0.0, target),
            "machine": powered_mean(machine, machine, 0.01 * equal, certain, 0.0),
            "unweighted": powered_mean(*values, equal, drawn, 0.0, target),
        }
        for name, estimate in estimates.items():
            low, high = estimate.interval(0.95)
            hits[name] += low <= truth <= high
    return {name: count / rounds for name, count in hits.items()}


@pytest.mark.parametrize("target", ["population", "queries"])
@pytest.mark.parametrize("kind", ["equal", "proportional"])
def test_intervals_cover(kind: str, target: str) -> None:
    """Valid intervals pass the binomial bound; the naive ones of the same data fail it."""
    coverage = simulate(kind, target)
    for name in ("tuned", "plain", "people"):
        assert lower_bound() <= coverage[name] <= 0.98, coverage
    assert coverage["machine"] < 0.5  # machine judgments taken for human ones
    if kind == "proportional":
        assert coverage["unweighted"] < 0.8  # the inclusion probabilities ignored


def test_inclusion_probabilities_are_those_of_the_draw() -> None:
    """Every query is drawn as often as its probability says, and the size never varies."""
    p = np.array([0.1, 0.9, 0.5, 1.0, 0.25, 0.25])
    rng = np.random.default_rng(0)
    draws = np.array([_systematic_draw(p, rng) for _ in range(4000)])
    assert set(draws.sum(axis=1)) == {3}
    error = np.sqrt(p * (1 - p) / len(draws))
    assert (np.abs(draws.mean(axis=0) - p) <= 4 * error + 1e-12).all()


def test_equal_probabilities_are_a_simple_random_sample() -> None:
    rng = np.random.default_rng(0)
    pairs = dict.fromkeys(combinations(range(5), 2), 0)
    for _ in range(5000):
        first, second = np.flatnonzero(_systematic_draw(np.full(5, 0.4), rng)).tolist()
        pairs[first, second] += 1
    assert max(abs(count - 500) for count in pairs.values()) < 4 * math.sqrt(5000 * 0.1 * 0.9)


def test_sizes_above_the_limit_are_certain() -> None:
    sample = fp.planning.QuerySample.draw("abcd", 2, sizes={"a": 100, "b": 1, "c": 2, "d": 1})
    assert sample.probabilities.tolist() == [1.0, 0.25, 0.5, 0.25]
    assert "a" in sample.drawn_queries


HUMAN = {f"q{n}": {"a": 1, "b": n % 2, "c": 0} for n in range(40)}
MACHINE = {q: {"a": 1, "b": 1 - (n % 5 == 0), "c": 0} for n, q in enumerate(HUMAN)}
SYSTEMS = {
    "x": {q: {"a": 3.0, "b": 2.0, "c": 1.0} for q in HUMAN},
    "y": {q: {"b": 3.0, "c": 2.0, "a": 1.0} for q in HUMAN},
}


@pytest.mark.filterwarnings("ignore::firstpage.FirstpageWarning")
def test_estimates_of_systems_agree_with_evaluate_where_all_is_judged() -> None:
    sample = fp.planning.QuerySample.draw(HUMAN, 40)
    result = fp.planning.estimate(
        SYSTEMS, HUMAN, MACHINE, sample, measures=["NDCG@3", "RR"], baseline="x"
    )
    compared = fp.compare(SYSTEMS, HUMAN, measures=["NDCG@3", "RR"], baseline="x")
    for row in result.means:
        expected = compared.values(row.measure)[compared.systems.index(row.system)].mean()
        assert row.value == pytest.approx(expected)
    assert [row.value for row in result.differences] == pytest.approx(
        [difference.difference for difference in compared.differences]
    )
    assert all(math.isnan(result.worth(row)) for row in result.means)


@pytest.mark.filterwarnings("ignore::firstpage.FirstpageWarning")
def test_judgments_that_were_not_drawn_are_ignored() -> None:
    sample = fp.planning.QuerySample.draw(HUMAN, 20, seed=2)
    drawn = {query: HUMAN[query] for query in sample.drawn_queries}
    others = {q: {"a": 0, "b": 4, "c": 4} for q in HUMAN if q not in drawn}
    plain = fp.planning.estimate(SYSTEMS, drawn, MACHINE, sample, measures="RR")
    chosen = fp.planning.estimate(SYSTEMS, {**drawn, **others}, MACHINE, sample, measures="RR")
    assert plain.to_dict() == chosen.to_dict()
    assert "20 of 40 queries" in str(plain)
    assert plain.to_pandas()["system"].tolist() == ["x", "y", "y"]
    json.dumps(plain.to_dict(), allow_nan=False)


def test_a_machine_that_never_errs_gets_a_warning_and_is_worth_much() -> None:
    sample = fp.planning.QuerySample.draw(HUMAN, 20, seed=2)
    with pytest.warns(fp.FirstpageWarning, match="varies on fewer than 10 sampled queries in y"):
        result = fp.planning.estimate({"y": SYSTEMS["y"]}, HUMAN, HUMAN, sample, measures="RR")
    # Two more queries on which the machine knows nothing: errors of variance 2 s^2 in 2 of 20.
    variance = 2 / 20 * 2 * (1 / 20 - 1 / 40) + 1 / 40  # in units of s^2
    assert result.means[0].equivalent_queries == pytest.approx(1 / variance)
    assert result.worth(result.means[0]) == pytest.approx((1 / variance - 20) / 20)


def test_a_machine_that_errs_rarely_has_no_interval_of_zero_width() -> None:
    """It errs on 5 % of the queries, so 28 % of the samples of 25 show no error at all."""
    rng = np.random.default_rng(0)
    human = rng.beta(0.7, 1.3, 400)
    machine = np.where(rng.random(400) < 0.05, rng.permutation(human), human)
    hits = 0
    for seed in range(200):
        sample = fp.planning.QuerySample.draw(map(str, range(400)), 25, seed=seed)
        p, drawn = sample.probabilities, sample.drawn
        low, high = powered_mean(human[drawn], machine, p, drawn, None, "queries").interval(0.95)
        hits += low <= human.mean() <= high
    assert hits / 200 >= lower_bound(rounds=200)


def draw(**changes: object) -> dict[str, object]:
    return {
        "human": HUMAN,
        "machine": MACHINE,
        "sample": fp.planning.QuerySample.draw(HUMAN, 9),
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"human": {"q0": {"a": 1}}}, r"of 9 drawn queries have no human judgments: q"),
        ({"machine": {"q0": {"a": 1}}}, r"39 of 40 queries have no machine judgments: q1, q2"),
        (
            {"sample": fp.planning.QuerySample.draw(HUMAN, 2)},
            "2 queries; estimates need at least 3",
        ),
        ({"target": "all"}, "target must be population or queries; got 'all'"),
        ({"level": 95}, "level must be between 0 and 1; got 95"),
        ({"machine_weight": math.nan}, "machine_weight must be a finite number"),
        ({"baseline": "z"}, "there is no system 'z'; there are x, y"),
        (
            {"convention": fp.Convention(without_relevant="skip")},
            "the sample would not be random; take zero or one",
        ),
        ({"measures": "GMAP"}, "GMAP is not a mean over queries"),
        ({"machine": 3}, "a file or mapping of judgments is required; got int"),
    ],
)
def test_refused(changes: dict[str, object], message: str) -> None:
    arguments = draw(**changes)
    with pytest.raises(fp.FirstpageError, match=message):
        fp.planning.estimate(SYSTEMS, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,probability,drawn\nq,0.5,maybe\n", "must be yes or no; query 'q' has 'maybe'"),
        ("query,probability,drawn\nq,0,yes\n", "above 0 and at most 1; got 0"),
        ("query,probability,drawn\nq,0.5,yes\nr,0.25,no\n", "must list all queries"),
        ("query,probability,drawn\nq,0.5,yes\nr,0.5,yes\n", "a row is missing or was changed"),
        ("query,drawn\nq,yes\n", "no column 'probability'"),
        ("query,probability,drawn\nq,half,yes\n", "half"),
    ],
)
def test_files_of_samples_are_checked(tmp_path, text: str, message: str) -> None:
    path = tmp_path / "sample.csv"
    path.write_text(text)
    with pytest.raises(fp.DataError, match=message):
        fp.planning.QuerySample.read(path)


@pytest.mark.parametrize(
    ("size", "sizes", "message"),
    [
        (0, None, "from 1 to the number of queries, 2; got 0"),
        (3, None, "number of queries, 2; got 3"),
        (1, {"a": 1}, "1 of 2 queries have no size: 'b'"),
        (1, {"a": 1, "b": -1}, "size of query 'b' must be a positive number"),
    ],
)
def test_wrong_draws_are_refused(size: int, sizes: dict[str, float], message: str) -> None:
    with pytest.raises(fp.DataError, match=message):
        fp.planning.QuerySample.draw("ab", size, sizes=sizes)
