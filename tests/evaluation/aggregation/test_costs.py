"""Kemeny cost and its lower bound against sums over pairs and all permutations."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.data.ids import Ids
from firstpage.evaluation.aggregation.costs import CostReport
from firstpage.evaluation.aggregation.methods import method
from tests.evaluation.aggregation import reference as ref
from tests.evaluation.aggregation.cases import Query, ballots_of, random_query, some_weights


@pytest.mark.parametrize("missing", ["last", "ignore"])
@pytest.mark.parametrize("partial", [False, True])
def test_cost_and_bounds_of_random_orders(partial: bool, missing: str) -> None:
    rng = np.random.default_rng(0)
    for rankers in (1, 2, 3, 5):
        queries = [random_query(rng, rankers, int(rng.integers(0, 7)), partial) for _ in range(40)]
        ballots, weights = ballots_of(queries, missing), some_weights(rng, rankers)
        orders = [rng.permutation(q.n).tolist() for q in queries]
        costs = fp.aggregation.kemeny_cost(np.concatenate(orders).astype(int), ballots, weights)
        plain = fp.aggregation.lower_bound(ballots, weights, cycles=False)
        strong = fp.aggregation.lower_bound(ballots, weights)
        for q, query in enumerate(queries):
            m = ref.votes(query.lists, weights.tolist(), query.n, ignore=missing == "ignore")
            assert costs[q] == pytest.approx(ref.cost(orders[q], m), abs=1e-9)
            assert plain[q] == pytest.approx(ref.bound(m), abs=1e-9)
            assert plain[q] - 1e-9 <= strong[q] <= ref.cheapest(m) + 1e-9


def test_disjoint_cycles_make_the_bound_exact() -> None:
    lists = [[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3], [2, 0, 1, 5, 3, 4]]
    ballots = ballots_of([Query(6, lists)])
    assert fp.aggregation.lower_bound(ballots, cycles=False)[0] == pytest.approx(6 / 3)
    assert fp.aggregation.lower_bound(ballots)[0] == pytest.approx(8 / 3)  # a lead of 1/3 per cycle
    best = fp.aggregation.kemeny_cost(method("exact").order(ballots), ballots)[0]
    assert best == pytest.approx(8 / 3)


def test_cycles_close_most_of_the_gap_of_large_queries() -> None:
    rng = np.random.default_rng(1)
    size = 90  # more than one word of bits
    scores = rng.normal(size=size) + rng.normal(size=(3, size))
    ballots = fp.aggregation.Ballots.from_scores(scores, [0, size])
    best = fp.aggregation.kemeny_cost(method("BestInsertion").order(ballots), ballots)[0]
    plain, strong = (
        fp.aggregation.lower_bound(ballots, cycles=False)[0],
        fp.aggregation.lower_bound(ballots)[0],
    )
    assert plain < strong <= best
    assert best - strong < 0.3 * (best - plain)


def test_report_totals() -> None:
    report = CostReport(
        Ids.from_values("abc"),
        np.array([2.0, 1.0, 0.0]),
        np.array([1.5, 1.0, 0.0]),
        np.array([2, 0, 1]),
        np.array([3, 1, 1]),
    )
    assert report.gap.tolist() == [0.5, 0.0, 0.0]
    assert report.optimal == 2
    assert report.ratio == pytest.approx(3 / 2.5)
    assert report.to_dict()["cost"] == 3.0
    ties = ("pairs", "tied_pairs", "queries_with_ties")
    assert [report.to_dict()[name] for name in ties] == [5, 3, 2]
    assert "2 of 3 queries proven optimal" in str(report)
    zero = CostReport(Ids.from_values("a"), *np.zeros((2, 1)), *np.zeros((2, 1), np.int64))
    assert zero.ratio == 1.0


@pytest.mark.parametrize(
    "order", [[0, 1], [0, 1, 3], [0, 1, 1], [-1, 0, 1], [[0, 1, 2]], [1, 2, 3]]
)
def test_invalid_orders_are_refused(order: list) -> None:
    ballots = ballots_of([Query(3, [[0, 1, 2]])])
    with pytest.raises(DataError, match="an order must list"):
        fp.aggregation.kemeny_cost(order, ballots)


def test_order_refers_to_candidates_of_its_query() -> None:
    ballots = ballots_of([Query(2, [[0, 1]]), Query(1, [[0]])])
    with pytest.raises(DataError):
        fp.aggregation.kemeny_cost([0, 0, 1], ballots)
    assert fp.aggregation.kemeny_cost([1, 0, 0], ballots).tolist() == [1.0, 0.0]


def test_infinite_ratio_is_null_in_json() -> None:
    scores = np.array([[3.0, 2.0, 1.0]])
    ballots = fp.aggregation.Ballots.from_scores(scores, [0, 3], base_scores=-scores[0])
    result = fp.aggregation.aggregate(ballots, "skr")
    summary = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert summary["kemeny"]["ratio"] is None or summary["kemeny"]["ratio"] >= 1
