"""Sample sizes: against simulation, R, and through `fp.planning.plan`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas
import pytest
from scipy import stats

import firstpage as fp
from firstpage.evaluation.planning.power import (
    power_of_shift,
    required_queries,
)
from firstpage.evaluation.planning.query_plan import pool_documents, upper_deviation

pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning")


@pytest.mark.parametrize("sides", [1, 2])
def test_power_agrees_with_a_simulation(sides) -> None:
    rng = np.random.default_rng(0)
    queries, shift = 30, 2.2
    samples = rng.normal(shift / math.sqrt(queries), 1, (20_000, queries))
    alternative: Any = "greater" if sides == 1 else "two-sided"
    found = stats.ttest_1samp(samples, 0, axis=1, alternative=alternative).pvalue
    assert power_of_shift(shift, queries, 0.05, sides) == pytest.approx(
        np.mean(found < 0.05), abs=0.012
    )


@pytest.mark.parametrize("shape", [0.5, 5.0])
def test_the_planned_queries_give_the_power_for_skewed_differences(shape: float) -> None:
    """Differences of gamma variables have the deviation of the plan, and heavier tails."""
    rng = np.random.default_rng(1)
    deviation, difference = 0.2, 0.04
    queries = required_queries(difference, deviation)
    size = (4000, queries)
    noise = rng.gamma(shape, size=size) - rng.gamma(shape, size=size)
    sample = difference + noise * deviation / math.sqrt(2 * shape)
    p = stats.ttest_1samp(sample, 0, axis=1).pvalue
    assert 0.77 < np.mean(p < 0.05) < 0.84


def test_the_number_of_queries_is_the_least_that_suffices() -> None:
    for difference, deviation, power in ((0.05, 0.3, 0.8), (0.2, 0.3, 0.95), (1.0, 0.1, 0.8)):
        queries = required_queries(difference, deviation, power=power)

        def reached(n: int, d: float = difference / deviation) -> float:
            return power_of_shift(d * math.sqrt(n), n, 0.05)

        assert reached(queries) >= power
        assert queries == 2 or reached(queries - 1) < power
    assert required_queries(0.1, 0.0) == 2
    # R: power.t.test(delta = 0.5, sd = 1, power = 0.8, type = "one.sample") gives n = 33.37
    assert required_queries(0.5, 1.0) == 34


def test_the_power_at_extreme_shifts() -> None:
    assert power_of_shift(5.0, 1, 0.05) == 0
    assert power_of_shift(100.0, 50, 0.05) == 1
    assert power_of_shift(0.0, 50, 0.05) == 0.05


def test_the_upper_limit_of_the_deviation_covers_the_truth() -> None:
    rng = np.random.default_rng(2)
    limits = [upper_deviation(rng.normal(size=20).std(ddof=1), 20) for _ in range(500)]
    assert 0.74 < np.mean(np.array(limits) >= 1) < 0.86


def runs(queries: int = 30) -> tuple[dict, dict]:
    rng = np.random.default_rng(3)
    qrels = {str(q): {f"d{i}": int(i < 2) for i in range(8)} for q in range(queries)}
    noisy = {
        name: {q: {d: g + rng.normal() for d, g in docs.items()} for q, docs in qrels.items()}
        for name in ("a", "b")
    }
    return noisy, qrels


def test_a_plan_is_estimated_from_runs() -> None:
    systems, qrels = runs()
    plan = fp.planning.plan(
        systems, qrels, measures=["NDCG@5", "AP"], differences=[0.02, 0.05], depth=3
    )
    comparison = fp.compare(systems, qrels, measures=["NDCG@5", "AP"], ci=False)
    a, b = comparison.values("AP")
    row = plan.rows[2]
    assert (row.measure, row.difference) == ("AP", 0.02)
    assert row.deviation == pytest.approx((a - b).std(ddof=1))
    assert row.correlation == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert row.queries == required_queries(0.02, row.deviation)
    assert row.careful_queries is not None
    assert row.careful_queries > row.queries
    assert plan.pool_size is not None
    assert 3 <= plan.pool_size <= 6
    assert row.judgments == math.ceil(row.queries * plan.pool_size)
    assert plan.rows[3].power_now == pytest.approx(
        power_of_shift(0.05 / row.deviation * math.sqrt(30), 30, 0.05)
    )
    stricter = fp.planning.plan(systems, qrels, measures="AP", differences=[0.02], comparisons=6)
    assert stricter.rows[0].queries == required_queries(0.02, row.deviation, 0.05 / 6)


def test_the_pool_counts_different_documents() -> None:
    first = {"q1": {"a": 3, "b": 2, "c": 1}, "q2": {"a": 1}}
    second = {"q1": {"a": 3, "d": 2, "b": 1}, "q3": {"x": 1, "y": 0}}
    assert pool_documents([first, second], 2) == pytest.approx((3 + 1 + 2) / 3)
    assert pool_documents([first, [1.0, 2.0]], 2) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give two systems with judgments, or a positive deviation"),
        ({"deviation": 0.2, "correlation": 1.0}, "correlation from -1 to below 1"),
        ({"deviation": 0.2, "power": 1.5}, "power must be between 0 and 1; got 1.5"),
        ({"deviation": 0.2, "differences": [0.0]}, "must be a positive number"),
        ({"deviation": 0.2, "differences": [1e-9]}, "more than 1,000,000,000 queries"),
        ({"deviation": 0.2, "comparisons": 0}, "at least 1; got 0"),
        ({"systems": runs()[0]}, "need judgments"),
        ({"systems": runs()[0], "truth": runs()[1], "deviation": 1}, "leave out deviation"),
        ({"systems": [runs()[0]["a"]] * 2, "truth": runs()[1]}, "in NDCG@10 are the same on all"),
    ],
)
def test_invalid_plans_raise_an_error(options, message: str) -> None:
    with pytest.raises(fp.FirstpageError, match=message):
        fp.planning.plan(**options)


def test_the_power_of_few_queries_agrees_with_a_simulation() -> None:
    """Two queries and a strict level: the limit of t is far beyond the usual shifts."""
    generator = np.random.default_rng(0)
    for queries, alpha, shift in ((2, 0.001, 60.0), (2, 0.001, 600.0), (3, 1e-4, 80.0)):
        drawn = shift / np.sqrt(queries) + generator.normal(size=(40_000, queries))
        statistic = drawn.mean(axis=1) / (drawn.std(axis=1, ddof=1) / np.sqrt(queries))
        limit = stats.t.isf(alpha / 2, queries - 1)
        simulated = float((np.abs(statistic) > limit).mean())
        assert power_of_shift(shift, queries, alpha) == pytest.approx(simulated, abs=0.01)


def test_a_plan_of_weighted_queries_is_that_of_the_weighted_mean() -> None:
    generator = np.random.default_rng(1)
    labels, qid = [1, 0, 0] * 20, np.repeat(np.arange(20), 3)
    systems = {name: generator.normal(size=60) for name in "ab"}
    weights = {str(q): 1.0 + 9 * (q == 0) for q in range(20)}
    options: dict[str, Any] = {"qid": qid, "measures": "RR", "differences": [0.1]}
    plain, equal, weighted = (
        fp.planning.plan(systems, labels, **options, weights=chosen).rows[0]
        for chosen in (None, dict.fromkeys(weights, 2.0), weights)
    )
    assert equal.deviation == pytest.approx(plain.deviation)
    comparison = fp.compare(systems, labels, qid=qid, measures="RR")
    first, second = comparison.values("RR")
    numbers = np.array(list(weights.values()))
    mean = np.average(first - second, weights=numbers)
    errors = numbers / numbers.mean() * (first - second - mean)
    assert weighted.deviation == pytest.approx(errors.std(ddof=1))


def test_data_frames_are_runs_with_a_pool() -> None:
    tables = [{str(q): {"a": float(q % 2), "b": 0.5} for q in range(s, s + 4)} for s in (0, 1)]
    frames = [
        pandas.DataFrame(
            [(q, d, s) for q, docs in table.items() for d, s in docs.items()],
            columns=["query_id", "doc_id", "score"],
        )
        for table in tables
    ]
    assert pool_documents(frames, 10) == pool_documents(tables, 10) == 2


def test_a_pilot_with_few_changes_warns() -> None:
    labels, qid = [1, 0] * 30, np.repeat(np.arange(30), 2)
    systems = {"a": [2, 1] * 30, "b": [1, 2] * 3 + [2, 1] * 27}
    with pytest.warns(fp.FirstpageWarning, match="vary on 3 of 30 pilot queries"):
        fp.planning.plan(systems, labels, qid=qid, measures="RR", differences=[0.05])
