"""Exported fusions: each ranking is recomputed from the file alone by the engine's formula.

No engine runs here.  The grammar of each file is what the engine's reference lists.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import firstpage as fp
from firstpage.core.errors import FirstpageError
from firstpage.interop.export import FUSION_ENGINES, exportable_fusions
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
STAGES = ("bm25", "dense")
DEPTH = 50


def from_opensearch(text: str, lists: list[Listed]) -> dict[int, float]:
    """A body for PUT /_search/pipeline/NAME."""
    body = json.loads(text)
    assert set(body) == {"description", "phase_results_processors"}
    assert "bm25, dense" in body["description"]  # the weights are in this order
    (processor,) = body["phase_results_processors"]
    ((kind, steps),) = processor.items()
    combination = steps["combination"]
    weights = combination["parameters"]["weights"]
    assert sum(weights) == pytest.approx(1, abs=1e-12)
    assert all(0 <= weight <= 1 for weight in weights)
    if kind == "score-ranker-processor":
        assert set(combination) == {"technique", "rank_constant", "parameters"}
        assert combination["technique"] == "rrf"
        assert isinstance(combination["rank_constant"], int)
        assert 1 <= combination["rank_constant"] <= 10_000
        return reciprocal(lists, weights, combination["rank_constant"])
    assert kind == "normalization-processor"
    technique = steps["normalization"]["technique"]
    assert technique in ("min_max", "l2", "z_score")
    assert combination["technique"] in ("arithmetic_mean", "geometric_mean", "harmonic_mean")
    assert technique != "z_score" or combination["technique"] == "arithmetic_mean"
    return opensearch(lists, technique, combination["technique"], weights)


def from_elasticsearch(text: str, lists: list[Listed]) -> dict[int, float]:
    """A body for POST /INDEX/_search."""
    body = json.loads(text)
    assert set(body) == {"retriever", "size"}
    ((kind, retriever),) = body["retriever"].items()
    assert retriever["rank_window_size"] == DEPTH >= body["size"] >= 1
    inner, weights = retriever["retrievers"], [each["weight"] for each in retriever["retrievers"]]
    assert [list(each["retriever"]) for each in inner] == [["standard"], ["knn"]]
    knn = inner[1]["retriever"]["knn"]
    assert set(knn) == {"field", "query_vector_builder", "k", "num_candidates"}
    assert knn["num_candidates"] >= knn["k"] == DEPTH
    if kind == "rrf":
        assert set(retriever) == {"retrievers", "rank_window_size", "rank_constant"}
        assert isinstance(retriever["rank_constant"], int)
        assert retriever["rank_constant"] >= 1
        return reciprocal(lists, weights, retriever["rank_constant"])
    assert kind == "linear"
    assert set(retriever) == {"retrievers", "rank_window_size"}
    (normalizer,) = {each["normalizer"] for each in inner}
    assert normalizer in ("minmax", "l2_norm")
    return linear(lists, weights, normalizer)


def from_qdrant(text: str, lists: list[Listed]) -> dict[int, float]:
    """A body for POST /collections/NAME/points/query."""
    body = json.loads(text)
    assert set(body) == {"prefetch", "query", "limit"}
    assert [each["using"] for each in body["prefetch"]] == list(STAGES)
    assert all(each["limit"] == DEPTH for each in body["prefetch"])
    if body["query"] == {"fusion": "dbsf"}:
        return qdrant_dbsf(lists)
    assert set(body["query"]) == {"rrf"}
    rrf = body["query"]["rrf"]
    assert set(rrf) == {"k", "weights"}
    assert isinstance(rrf["k"], int)
    assert rrf["k"] >= 1
    return qdrant_reciprocal(lists, rrf["weights"], rrf["k"])


def from_solr(text: str, lists: list[Listed]) -> dict[int, float]:
    """A body for POST /COLLECTION/search, a CombinedQuerySearchHandler."""
    body = json.loads(text)
    assert set(body) == {"queries", "limit", "fields", "params"}
    params = body["params"]
    assert params["combiner"] is True
    assert params["combiner.algorithm"] == "rrf"
    assert params["combiner.query"] == list(body["queries"]) == list(STAGES)
    assert list(body["queries"]["bm25"]) == ["lucene"]
    assert body["queries"]["dense"]["knn"]["topK"] == DEPTH == body["limit"]
    return reciprocal(lists, (1, 1), int(params["combiner.rrf.k"]))


TERM = re.compile(r"([\d.]+) \* if \((\w+) > 0, reciprocal_rank\((\w+), ([\d.]+)\), 0\)")


def from_vespa(text: str, lists: list[Listed]) -> dict[int, float]:
    """A rank profile: hits of all stages are ranked, those without a score of one as 0."""
    assert text.startswith("rank-profile hybrid inherits default {")
    assert text.count("{") == text.count("}")
    functions = re.findall(r'# "(\w+)".*\n    function (\w+)\(\) \{', text)
    assert [stage for stage, _ in functions] == list(STAGES)
    expression = re.search(r"global-phase \{\s+rerank-count: (\d+)\s+expression \{([^}]*)\}", text)
    assert expression is not None
    assert int(expression[1]) >= len({d for ranked in lists for d, _ in ranked})
    terms = [TERM.fullmatch(term.strip()) for term in expression[2].split("+")]
    documents = sorted({d for ranked in lists for d, _ in ranked})
    fused = dict.fromkeys(documents, 0.0)
    for term, (_, function), ranked in zip(terms, functions, lists, strict=True):
        assert term is not None
        assert term[2] == term[3] == function
        scores = {d: dict(ranked).get(d, 0.0) for d in documents}
        order = sorted(documents, key=lambda d: -scores[d])
        for rank, document in enumerate(order, 1):
            guarded = 1.0 / (float(term[4]) + rank) if scores[document] > 0 else 0.0
            fused[document] += float(term[1]) * guarded
    return fused


READERS: dict[str, Any] = {
    "opensearch": from_opensearch,
    "elasticsearch": from_elasticsearch,
    "qdrant": from_qdrant,
    "solr": from_solr,
    "vespa": from_vespa,
}
CASES = [
    (engine, fusion) for engine in READERS for fusion in exportable_fusions(STAGES, [engine])[::5]
]


@pytest.mark.parametrize(("engine", "fusion"), CASES, ids=str)
@given(lists=stage_lists())
@settings(max_examples=15, deadline=None)
def test_the_ranking_follows_from_the_file(engine: str, fusion: Any, lists: list[Listed]) -> None:
    theirs = READERS[engine](fp.export_fusion(fusion, engine, depth=DEPTH), lists)
    rows, scores = fusion.fuse(
        [(np.array([d for d, _ in r]), np.array([s for _, s in r])) for r in lists]
    )
    assert set(rows.tolist()) == set(theirs)
    ratio = theirs[rows[0]] / scores[0]  # sums and means differ by a factor
    assert [theirs[row] for row in rows] == pytest.approx(scores * ratio, rel=1e-12, abs=1e-14)


def test_every_engine_is_recomputed() -> None:
    assert set(READERS) == set(FUSION_ENGINES)
    kinds = {(e, f.method, f.normalization if f.method == "scores" else "") for e, f in CASES}
    assert {
        ("opensearch", "scores", "z-score"),
        ("elasticsearch", "scores", "l2"),
        ("elasticsearch", "scores", "min-max"),
        ("qdrant", "scores", "dbsf"),
        ("qdrant", "rrf", ""),
    } <= kinds
    assert any(e == "qdrant" and len(set(f.weights)) > 1 for e, f in CASES)


@pytest.mark.parametrize(
    ("engine", "fusion", "reason"),
    [
        ("elasticsearch", StageFusion("scores", mean="geometric"), "no geometric mean"),
        ("elasticsearch", StageFusion("scores"), "no floor of normalized scores"),
        ("elasticsearch", StageFusion("scores", normalization="dbsf"), "no normalization dbsf"),
        ("elasticsearch", StageFusion(rank_constant=0), "no rank constant 0, only integers from 1"),
        ("opensearch", StageFusion(rank_constant=2.5), "no rank constant 2.5"),
        ("opensearch", StageFusion(rank_constant=20_000), "no rank constant above 10000"),
        ("opensearch", StageFusion("scores", floor=0), "no floor 0, only 0.001"),
        ("opensearch", StageFusion("scores", normalization="dbsf"), "no normalization dbsf"),
        ("opensearch", StageFusion("scores", normalization="z-score", mean="harmonic"),
         "no harmonic mean of z-scores"),
        ("opensearch", StageFusion(weights=(1, 2), weighting="rank"), "weights that divide ranks"),
        ("opensearch", StageFusion(stages=tuple("abcdef")), "no hybrid queries of more than 5"),
        ("qdrant", StageFusion(weights=(1, 2)), "no weights that multiply terms"),
        ("qdrant", StageFusion("scores"), "no arithmetic mean of min-max scores"),
        ("qdrant", StageFusion("scores", (1, 2), normalization="dbsf"), "no weights of normalized"),
        ("solr", StageFusion(weights=(1, 2)), "no weights of queries"),
        ("solr", StageFusion("scores"), "no fusion of normalized scores"),
        ("vespa", StageFusion("scores"), "no normalization over the documents of one stage"),
        ("vespa", StageFusion(weights=(1, 2), weighting="rank"), "no weights that divide ranks"),
        ("lucene", StageFusion(), "no engine 'lucene'"),
    ],
)  # fmt: skip
def test_what_an_engine_cannot_express_is_refused_in_one_line(engine, fusion, reason) -> None:
    with pytest.raises(FirstpageError, match=re.escape(reason)) as error:
        fp.export_fusion(fusion, engine)
    assert "\n" not in str(error.value)


def test_fusions_for_engines_are_distinct_and_accepted_by_all() -> None:
    assert exportable_fusions(STAGES, []) == fp.aggregation.candidate_fusions(STAGES)
    assert len(exportable_fusions(STAGES, ["opensearch"])) == 108  # all but dbsf
    both = exportable_fusions(STAGES, ["opensearch", "elasticsearch"])
    assert {(f.method, f.normalization) for f in both if f.method == "scores"} == {("scores", "l2")}
    assert {f.mean for f in both} == {"arithmetic"}
    every = exportable_fusions(STAGES, list(FUSION_ENGINES))
    assert str(every[0]) == "rrf(k=60; bm25 1, dense 1)"
    assert len(every) == len(fp.aggregation.candidate_fusions(STAGES)[:45:9]) == 5
    for engine in FUSION_ENGINES:
        for fusion in every:
            assert fp.export_fusion(fusion, engine)
    three = exportable_fusions(("a", "b", "c"), ["vespa"])
    assert "stage_3" in fp.export_fusion(three[-1], "vespa")
