"""Fusion of stages: the formulas of engine_formulas.py, edge cases, runs, errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.core.registry import ParameterError
from tests.evaluation.aggregation.engine_formulas import (
    Listed,
    linear,
    opensearch,
    qdrant_dbsf,
    qdrant_reciprocal,
    reciprocal,
    stage_lists,
)

StageFusion = fp.aggregation.StageFusion


def fused(fusion: fp.aggregation.StageFusion, lists: Sequence[Listed]) -> dict[int, float]:
    rows, scores = fusion.fuse(
        [(np.array([d for d, _ in ranked], int), np.array([s for _, s in ranked], float))
         for ranked in lists]
    )  # fmt: skip
    assert len(set(rows.tolist())) == len(rows)
    return dict(zip(rows.tolist(), scores.tolist(), strict=True))


def same(ours: dict[int, float], theirs: dict[int, float]) -> None:
    assert ours.keys() == theirs.keys()
    for document, score in theirs.items():
        assert ours[document] == pytest.approx(score, rel=1e-12, abs=1e-14)


positive = st.tuples(st.integers(1, 20), st.integers(1, 20)).map(lambda w: (w[0] / 20, w[1] / 20))
TECHNIQUES: dict[str, Any] = {"min_max": "min-max", "l2": "l2", "z_score": "z-score"}


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("mean", ["arithmetic", "geometric", "harmonic"])
@given(lists=stage_lists(), weights=positive)
def test_scores_are_those_of_opensearch(technique, mean, lists, weights) -> None:
    fusion = StageFusion("scores", weights, normalization=TECHNIQUES[technique], mean=mean)
    same(fused(fusion, lists), opensearch(lists, technique, f"{mean}_mean", weights))


@given(lists=stage_lists(3), weights=st.tuples(positive, st.just(0.0)))
def test_a_weight_of_0_and_three_stages(lists, weights) -> None:
    weights = (*weights[0], weights[1])
    for mean in ("arithmetic", "geometric", "harmonic"):
        fusion = StageFusion("scores", weights, mean=mean, stages=("a", "b", "c"))
        same(fused(fusion, lists), opensearch(lists, "min_max", f"{mean}_mean", weights))


@given(lists=stage_lists(), weights=positive, k=st.integers(1, 100))
def test_reciprocal_ranks_of_elasticsearch_opensearch_solr_and_vespa(lists, weights, k) -> None:
    fusion = StageFusion(weights=weights, rank_constant=k)
    same(fused(fusion, lists), reciprocal(lists, weights, k))
    same(fused(StageFusion(), lists), reciprocal(lists, (1.0, 1.0), 60))


@given(lists=stage_lists(), weights=positive, k=st.integers(1, 100))
def test_reciprocal_ranks_of_qdrant_count_from_0_and_divide_ranks(lists, weights, k) -> None:
    fusion = StageFusion(weights=weights, rank_constant=k - 1, weighting="rank")
    same(fused(fusion, lists), qdrant_reciprocal(lists, weights, k))
    unweighted = StageFusion(rank_constant=1)  # Qdrant's default k of 2
    same(fused(unweighted, lists), qdrant_reciprocal(lists, (1.0, 1.0), 2))


@given(lists=stage_lists())
def test_distribution_based_scores_are_half_of_qdrants_sums(lists) -> None:
    theirs = {document: score / 2 for document, score in qdrant_dbsf(lists).items()}
    same(fused(StageFusion("scores", normalization="dbsf"), lists), theirs)


@pytest.mark.parametrize("normalizer", ["minmax", "l2_norm"])
@given(lists=stage_lists(), weights=positive)
def test_weighted_sums_of_elasticsearch_have_no_floor(normalizer, lists, weights) -> None:
    kind: Any = {"minmax": "min-max", "l2_norm": "l2"}[normalizer]
    fusion = StageFusion("scores", weights, normalization=kind, floor=0)
    theirs = linear(lists, weights, normalizer)
    same(fused(fusion, lists), {d: s / sum(weights) for d, s in theirs.items()})


@given(lists=stage_lists(), weights=positive)
def test_normalize_linear_of_vespa_where_stages_score_all_documents(lists, weights) -> None:
    documents = sorted({d for ranked in lists for d, _ in ranked})
    complete = [
        sorted(((d, dict(ranked).get(d, -d - 1.0)) for d in documents), key=lambda pair: -pair[1])
        for ranked in lists
    ]
    fusion = StageFusion("scores", weights, floor=0)
    theirs = linear(complete, weights, "minmax")
    same(fused(fusion, complete), {d: s / sum(weights) for d, s in theirs.items()})


def test_constant_lists_have_no_range_or_deviation() -> None:
    lists = [[(1, 3.0)], [(2, 0.7), (3, 0.7), (4, 0.7)]]
    constants: dict[Any, float] = {"min-max": 1.0, "z-score": 1.0, "dbsf": 0.5}
    for kind, constant in constants.items():
        fusion = StageFusion("scores", normalization=kind)
        same(fused(fusion, lists), dict.fromkeys(range(1, 5), constant / 2))
    zeros = [[(1, 0.0), (2, 0.0)], []]
    same(fused(StageFusion("scores", normalization="l2"), zeros), {1: 0.0, 2: 0.0})


def test_equal_scores_are_ordered_by_best_rank_then_row() -> None:
    lists = [[(9, 3.0), (4, 2.0), (1, 1.0)], [(1, 3.0), (4, 2.0), (9, 1.0)]]
    rows, scores = StageFusion("scores", floor=0).fuse(
        [(np.array([d for d, _ in r]), np.array([s for _, s in r])) for r in lists]
    )
    assert scores.tolist() == [0.5, 0.5, 0.5]
    assert rows.tolist() == [1, 9, 4]  # best ranks 1, 1 and 2


def test_empty_lists() -> None:
    empty = np.array([], int), np.array([])
    for method in ("rrf", "scores"):
        assert StageFusion(method).fuse([empty, empty])[0].tolist() == []
        rows, scores = StageFusion(method).fuse([empty, (np.array([3]), np.array([2.0]))])
        assert rows.tolist() == [3]
        assert scores[0] > 0


@pytest.mark.parametrize(
    "fusion",
    [
        StageFusion(),
        StageFusion(weights=(1, 3), rank_constant=5, weighting="rank"),
        *(StageFusion("scores", (0.3, 0.7), normalization=n, mean=m)
          for n in ("min-max", "z-score", "dbsf", "l2")
          for m in ("arithmetic", "geometric", "harmonic")),
    ],
    ids=str,
)  # fmt: skip
def test_runs_are_fused_as_lists_are(fusion) -> None:
    rng = np.random.default_rng(4)
    tables = [
        {
            f"q{q}": {
                str(d): float(s)
                for d, s in zip(rng.permutation(30)[:size], rng.normal(9, 2, size), strict=True)
            }
            for q, size in enumerate(sizes)
        }
        for sizes in ((12, 1, 20, 7), (9, 15, 1))
    ]
    run = fusion.fuse_runs([fp.Run.from_dict(table) for table in tables])
    assert set(run.queries) == {"q0", "q1", "q2", "q3"}
    for query, scores in run.to_dict().items():
        lists = [
            sorted(((int(d), s) for d, s in table.get(query, {}).items()), key=lambda p: -p[1])
            for table in tables
        ]
        ids = [[d for d, _ in ranked] for ranked in lists]
        expected = fused(fusion, lists)
        same({int(d): score for d, score in scores.items()}, expected)
        best = {d: min(r.index(d) for r in ids if d in r) for d in expected}
        order = [(-round(score, 12), best[int(d)]) for d, score in scores.items()]
        assert order == sorted(order)
    assert fusion.to_dict() == StageFusion.from_dict(fusion.to_dict()).to_dict()
    assert StageFusion.from_dict(fusion.to_dict()) == fusion


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"method": "sum"}, "no method 'sum'"),
        ({"normalization": "rank"}, "no normalization 'rank'"),
        ({"weights": (1,)}, "1 weights for the 2 stages bm25, dense"),
        ({"weights": (0, 0)}, "not all 0"),
        ({"weights": (1, float("nan"))}, "must be finite"),
        ({"weights": ("much", 1)}, "must be numbers"),
        ({"rank_constant": -1}, "rank_constant of StageFusion must be a number of at least 0"),
        ({"floor": -1}, "floor of StageFusion"),
        ({"stages": ("a", "a")}, "two stages have the same name"),
        ({"stages": "bm25"}, "stages must be a tuple"),
    ],
)
def test_wrong_parameters_are_refused_in_one_line(values, message) -> None:
    with pytest.raises(ParameterError, match=message) as error:
        StageFusion(**values)
    assert "\n" not in str(error.value)


def test_wrong_lists_are_refused_in_one_line() -> None:
    one = np.array([1]), np.array([1.0])
    cases = [
        ([one], "1 lists for the 2 stages"),
        ([one, (np.array([1, 1]), np.array([1.0, 2.0]))], "dense: a row occurs twice"),
        ([one, (np.array([1]), np.array([np.nan]))], "dense: there must be one finite score"),
        ([one, (np.array([1, 2]), np.array([1.0]))], "one finite score per row"),
    ]
    for lists, message in cases:
        with pytest.raises(DataError, match=message):
            StageFusion().fuse(lists)
    run = fp.Run.from_dict({"q": {"a": 1.0}}, name="words")
    infinite = fp.Run.from_dict({"q": {"a": np.inf}}, name="vectors")
    with pytest.raises(DataError, match="1 runs for the 2 stages"):
        StageFusion().fuse_runs([run])
    with pytest.raises(DataError, match="score of vectors in query 'q' is infinite"):
        StageFusion("scores").fuse_runs([run, infinite])
    with pytest.raises(DataError, match="no field 'k'"):
        StageFusion.from_dict({"k": 60})
