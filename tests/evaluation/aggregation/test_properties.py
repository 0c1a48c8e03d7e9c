"""Invariances: names of documents, scale of weights, order and duplicates of rankers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.evaluation.aggregation.fusion import Fusion
from firstpage.evaluation.aggregation.methods import METHODS, method

tables = st.integers(1, 4).flatmap(
    lambda rankers: st.integers(1, 9).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, 5), min_size=n, max_size=n), min_size=rankers, max_size=rankers
        )
    )
)
NAMES = [
    *(name for name, cls in METHODS.items() if not issubclass(cls, Fusion)),
    "Borda",
    "RRF",
    "RBC",
    "CombMNZ",
]


def make_run(scores: list[int], names: list[str]) -> fp.Run:
    return fp.Run.from_dict({"q": dict(zip(names, map(float, scores), strict=True))})


def order(runs: list[fp.Run], name: str, weights: list[float] | None = None) -> list[str]:
    return list(fp.aggregation.aggregate(runs, name, weights=weights).run.docids)


@pytest.mark.parametrize("name", NAMES)
@given(table=tables, seed=st.integers(0, 99))
def test_order_is_invariant_to_document_names(name: str, table: list[list[int]], seed: int) -> None:
    """Names that are in the same order, in files whose rows are not."""
    n = len(table[0])
    names = [f"d{i}" for i in range(n)]
    new_names = [f"x{2 * i:02}" for i in range(n)]
    rows = np.random.default_rng(seed).permutation(n)
    first = order([make_run(row, names) for row in table], name)
    second = order(
        [make_run([row[i] for i in rows], [new_names[i] for i in rows]) for row in table], name
    )
    renamed = dict(zip(names, new_names, strict=True))
    assert [renamed[d] for d in first] == second


@st.composite
def partial_runs(draw: st.DrawFn) -> list[fp.Run]:
    """Return runs of one or two queries with partial lists and equal scores."""
    lists = st.dictionaries(st.sampled_from("abcdefg"), st.integers(0, 4).map(float), min_size=1)
    tables = st.fixed_dictionaries({"q": lists}, optional={"p": lists})
    return [fp.Run.from_dict(table) for table in draw(st.lists(tables, min_size=2, max_size=5))]


@pytest.mark.filterwarnings("ignore:.*lacks")
@pytest.mark.parametrize("name", [None, *METHODS])
@given(runs=partial_runs(), data=st.data())
def test_result_is_invariant_to_the_order_of_runs(
    name: str | None, runs: list[fp.Run], data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.floats(0.1, 1), min_size=len(runs), max_size=len(runs)))
    weights = data.draw(st.sampled_from([weights, [1.0] * len(runs)]))
    options: dict[str, Any] = {
        "missing": data.draw(st.sampled_from(["last", "ignore"])),
        "base": data.draw(st.sampled_from([None, {"q": {"c": 2.0, "x": 1.0}}])),
        "depth": data.draw(st.sampled_from([None, 3])),
    }
    moved = data.draw(st.permutations(range(len(runs))))
    first = fp.aggregation.aggregate(runs, name, weights=weights, **options)
    second = fp.aggregation.aggregate(
        [runs[a] for a in moved], name, weights=[weights[a] for a in moved], **options
    )
    tables = [result.run.to_dict() for result in (first, second)]
    assert tables[0] == tables[1]
    for query, docs in tables[0].items():
        assert list(docs) == list(tables[1][query])
    if first.points is None:
        ties = [
            dict(zip(r.report.queries, r.report.tied_pairs, strict=True)) for r in (first, second)
        ]
        assert ties[0] == ties[1]


@pytest.mark.parametrize("name", ["Kemeny", "ExactKemeny", "BestInsertion"])
@given(table=tables.filter(lambda table: len(table) == 2))
def test_two_complete_rankings_are_combined_as_by_reciprocal_ranks(
    name: str, table: list[list[int]]
) -> None:
    """Two voters of equal weight have majorities only where they agree."""
    scores = np.array(table) + np.arange(len(table[0])) / 100  # no equal scores
    ballots = fp.aggregation.Ballots.from_scores(scores, [0, scores.shape[1]])
    assert (method(name).order(ballots) == method("RRF").order(ballots)).all()
    assert fp.aggregation.aggregate(ballots, name).report.optimal == 1


@pytest.mark.parametrize("name", NAMES)
@given(table=tables, seed=st.integers(0, 99))
def test_order_is_invariant_to_row_order_given_a_base(
    name: str, table: list[list[int]], seed: int
) -> None:
    """Relabeling documents and the base order relabels the result."""
    scores = np.array(table, float)
    n = scores.shape[1]
    base_scores = np.random.default_rng(seed).permutation(n).astype(float)
    moved = np.random.default_rng(seed + 1).permutation(n)
    first = fp.aggregation.aggregate(
        fp.aggregation.Ballots.from_scores(scores, [0, n], base_scores), name
    ).scores
    second = fp.aggregation.aggregate(
        fp.aggregation.Ballots.from_scores(scores[:, moved], [0, n], base_scores[moved]), name
    ).scores
    assert first[moved].tolist() == second.tolist()


@pytest.mark.filterwarnings("ignore:every ranker has the weight 0")
@pytest.mark.parametrize("name", NAMES)
@given(
    table=tables,
    power=st.integers(-30, 30),
    integers=st.lists(st.integers(0, 5), min_size=4, max_size=4),
)
def test_order_is_invariant_to_the_scale_of_weights(
    name: str, table: list[list[int]], power: int, integers: list[int]
) -> None:
    scores = np.array(table, float)
    weights = np.array(integers[: len(scores)], float)
    ballots = fp.aggregation.Ballots.from_scores(scores, [0, scores.shape[1]])
    chosen = method(name)
    expected = chosen.order(ballots, weights)
    assert (chosen.order(ballots, weights * 2.0**power) == expected).all()
    assert (chosen.order(ballots, weights * 7.3) == expected).all()


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("BestInsertion", "CombMNZ")])
@given(table=tables)
def test_duplicate_ranker_equals_double_weight(name: str, table: list[list[int]]) -> None:
    scores = np.array(table, float)
    offsets = [0, scores.shape[1]]
    weights = [2.0, *[1.0] * (len(scores) - 1)]
    twice = fp.aggregation.Ballots.from_scores(np.concatenate([scores[:1], scores]), offsets)
    once = fp.aggregation.Ballots.from_scores(scores, offsets, weights=weights)
    assert (method(name).order(twice) == method(name).order(once, weights)).all()


@pytest.mark.parametrize("name", NAMES)
@given(table=tables)
def test_unanimous_order_is_returned(name: str, table: list[list[int]]) -> None:
    scores = np.array([table[0]] * 3, float)
    n = scores.shape[1]
    ballots = fp.aggregation.Ballots.from_scores(scores, [0, n])
    chosen = method(name, k_agg=n) if name == "SupervisedKemeny" else method(name)
    result = fp.aggregation.aggregate(ballots, chosen)
    assert result.documents.tolist() == sorted(range(n), key=lambda i: (-scores[0, i], i))
    assert result.cost == 0


@given(table=tables)
def test_bound_optimum_and_search_costs_are_ordered(table: list[list[int]]) -> None:
    scores = np.array(table, float)
    ballots = fp.aggregation.Ballots.from_scores(scores, [0, scores.shape[1]])
    cost = {
        name: fp.aggregation.kemeny_cost(method(name).order(ballots), ballots)[0] for name in NAMES
    }
    assert fp.aggregation.lower_bound(ballots)[0] <= cost["ExactKemeny"] + 1e-9
    assert all(cost["ExactKemeny"] <= c + 1e-9 for c in cost.values())
    assert cost["BestInsertion"] <= min(cost["Borda"], cost["Kemeny"]) + 1e-9
    assert cost["LocalKemeny"] <= cost["Borda"] + 1e-9


@pytest.mark.parametrize("name", NAMES)
@given(table=tables, seed=st.integers(0, 99))
def test_queries_are_independent(name: str, table: list[list[int]], seed: int) -> None:
    scores = np.array(table, float)
    rankers, n = scores.shape
    rng = np.random.default_rng(seed)
    before, after = rng.random((rankers, 3)), rng.random((rankers, 11))
    alone = fp.aggregation.Ballots.from_scores(scores, [0, n], queries=["q"])
    among = fp.aggregation.Ballots.from_scores(
        np.concatenate([before, scores, after], axis=1),
        [0, 3, 3 + n, 14 + n],
        queries=["a", "q", "b"],
    )
    assert (method(name).order(among)[3 : 3 + n] == method(name).order(alone)).all()
