"""Fusions of stages for search engines: `export_fusion` writes what an engine can express exactly.

What an engine would rank otherwise is refused: every number of a file means in the engine's
documented formula what it means in `StageFusion`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from firstpage.core import DataError, lookup
from firstpage.evaluation.aggregation import StageFusion, candidate_fusions, normalize_weights
from firstpage.interop.export.targets import PLACEHOLDER

FIRST_PAGE = 10  # documents that a request asks for
MAX_OPENSEARCH_STAGES = 5
MAX_OPENSEARCH_CONSTANT = 10_000
NORMALIZERS = {"min-max": "minmax", "l2": "l2_norm"}
TECHNIQUES = {"min-max": "min_max", "l2": "l2", "z-score": "z_score"}
OPENSEARCH_FLOOR = 0.001


@dataclass(frozen=True)
class FusionEngine:
    """A search engine to which fusions can be exported.

    Attributes
    ----------
    program : str
        The name of the engine, for messages.
    output : str
        What the file is.
    suffix : str
        The suffix of the file.
    refusal : callable
        Returns what the engine does not have, as the end of a sentence; "" where it can express
        the fusion.
    build : callable
        Returns the text of the file for a fusion of lists of this depth.
    """

    program: str
    output: str
    suffix: str
    refusal: Callable[[StageFusion], str]
    build: Callable[[StageFusion, int], str]


def export_fusion(fusion: StageFusion, to: str, depth: int = 100) -> str:
    """Return a fusion of stages in the format of a search engine.

    What depends on your index is marked FILL_IN: fields, models, and the queries of the stages.

    Parameters
    ----------
    fusion : StageFusion
        The fusion.
    to : str
        The engine: "opensearch" (a search pipeline), "elasticsearch" (a search with the retriever
        `rrf` or `linear`), "qdrant" (a query), "solr" (a combined query) or "vespa" (a rank
        profile).
    depth : int, default 100
        The number of documents of each stage.

    Returns
    -------
    str
        The text of the file: JSON, or Vespa's rank profile.

    Raises
    ------
    DataError
        If the engine cannot compute this fusion.
    ParameterError
        If there is no such engine.

    Examples
    --------
    >>> import firstpage as fp
    >>> fusion = fp.aggregation.StageFusion("scores", weights=(0.3, 0.7))
    >>> print(fp.export_fusion(fusion, "opensearch"))
    {
      "description": "Firstpage: hybrid queries in the order bm25, dense",
      "phase_results_processors": [
        {
          "normalization-processor": {
            "normalization": {
              "technique": "min_max"
            },
            "combination": {
              "technique": "arithmetic_mean",
              "parameters": {
                "weights": [
                  0.3,
                  0.7
                ]
              }
            }
          }
        }
      ]
    }
    """
    engine = lookup(to, FUSION_ENGINES, "engine")
    if reason := engine.refusal(fusion):
        raise DataError(f"{engine.program} cannot compute the fusion {fusion}: it has no {reason}.")
    return engine.build(fusion, depth)


def exportable_fusions(stages: Sequence[str], engines: Sequence[str]) -> list[StageFusion]:
    """Return the fusions to try that all these engines can express; all if there is no engine."""
    if not engines:
        return candidate_fusions(stages)
    known = [lookup(name, FUSION_ENGINES, "engine") for name in engines]
    fusions = [
        fusion
        for weighting in ("term", "rank")
        for floor in (OPENSEARCH_FLOOR, 0.0)
        for fusion in candidate_fusions(stages, floor, weighting)
        if not any(engine.refusal(fusion) for engine in known)
    ]
    distinct = {_without_idle_fields(fusion): fusion for fusion in reversed(fusions)}
    return list(reversed(distinct.values()))


def _without_idle_fields(fusion: StageFusion) -> tuple[Any, ...]:
    """Return what the scores of a fusion depend on."""
    if fusion.method == "rrf":
        weighting = fusion.weighting if set(fusion.weights) != {1.0} else "term"
        return "rrf", fusion.rank_constant, fusion.weights, weighting
    floor = fusion.floor if fusion.normalization in ("min-max", "z-score") else None
    return fusion.normalization, fusion.mean, fusion.weights, floor


# --- what engines do not have


def _wrong_constant(fusion: StageFusion, least: int) -> str:
    """Return that a rank constant is not an integer of at least this; "" if it is one."""
    constant = fusion.rank_constant
    valid = constant == int(constant) and constant >= least
    return "" if valid else f"rank constant {constant:g}, only integers from {least}"


def _rrf_refusal(fusion: StageFusion, least: int = 1) -> str:
    """Return what engines with weight / (k + rank) do not have."""
    if fusion.weighting == "rank" and set(fusion.weights) != {1.0}:
        return "weights that divide ranks"
    return _wrong_constant(fusion, least)


def _opensearch_refusal(fusion: StageFusion) -> str:
    if len(fusion.stages) > MAX_OPENSEARCH_STAGES:
        return f"hybrid queries of more than {MAX_OPENSEARCH_STAGES} clauses"
    if fusion.method == "rrf":
        too_great = fusion.rank_constant > MAX_OPENSEARCH_CONSTANT
        return f"rank constant above {MAX_OPENSEARCH_CONSTANT}" * too_great or _rrf_refusal(fusion)
    if fusion.normalization not in TECHNIQUES:
        return f"normalization {fusion.normalization}"
    if fusion.normalization == "z-score" and fusion.mean != "arithmetic":
        return f"{fusion.mean} mean of z-scores"
    if fusion.normalization != "l2" and fusion.floor != OPENSEARCH_FLOOR:
        return f"floor {fusion.floor:g}, only {OPENSEARCH_FLOOR:g}"
    return ""


def _elasticsearch_refusal(fusion: StageFusion) -> str:
    if fusion.method == "rrf":
        return _rrf_refusal(fusion)
    if fusion.mean != "arithmetic":
        return f"{fusion.mean} mean"
    if fusion.normalization not in NORMALIZERS:
        return f"normalization {fusion.normalization}"
    if fusion.normalization == "min-max" and fusion.floor:
        return f"floor of normalized scores (use floor=0, not {fusion.floor:g})"
    return ""


def _qdrant_refusal(fusion: StageFusion) -> str:
    equal = len(set(fusion.weights)) == 1
    if fusion.method == "rrf":
        if fusion.weighting == "term" and not equal:
            return 'weights that multiply terms (use weighting="rank")'
        return _wrong_constant(fusion, 0)
    if fusion.normalization != "dbsf" or fusion.mean != "arithmetic":
        return f"{fusion.mean} mean of {fusion.normalization} scores"
    return "" if equal else "weights of normalized scores"


def _solr_refusal(fusion: StageFusion) -> str:
    if fusion.method != "rrf":
        return "fusion of normalized scores"
    if len(set(fusion.weights)) > 1:
        return "weights of queries"
    return _rrf_refusal(fusion)


def _vespa_refusal(fusion: StageFusion) -> str:
    if fusion.method != "rrf":
        return "normalization over the documents of one stage"
    return _rrf_refusal(fusion, 0) if fusion.weighting == "rank" else ""


# --- files


def _json(value: Any) -> str:
    return json.dumps(value, indent=2)


def _opensearch(fusion: StageFusion, _: int) -> str:
    weights = normalize_weights(fusion.weights, len(fusion.weights)).tolist()  # the sum must be 1
    parameters = {"parameters": {"weights": weights}}
    processor: dict[str, Any]
    if fusion.method == "rrf":
        constant = {"rank_constant": int(fusion.rank_constant)}
        combination = {"technique": "rrf", **constant, **parameters}
        processor = {"score-ranker-processor": {"combination": combination}}
    else:
        combination = {"technique": f"{fusion.mean}_mean", **parameters}
        normalization = {"technique": TECHNIQUES[fusion.normalization]}
        steps = {"normalization": normalization, "combination": combination}
        processor = {"normalization-processor": steps}
    order = ", ".join(fusion.stages)
    return _json(
        {
            "description": f"Firstpage: hybrid queries in the order {order}",
            "phase_results_processors": [processor],
        }
    )


def _retriever(number: int, depth: int) -> dict[str, Any]:
    """Return the retriever of a stage: the first one searches words, the others vectors."""
    if number == 0:
        return {"standard": {"query": {"match": {PLACEHOLDER: PLACEHOLDER}}}}
    embedding = {"model_id": PLACEHOLDER, "model_text": PLACEHOLDER}
    return {
        "knn": {
            "field": PLACEHOLDER,
            "query_vector_builder": {"text_embedding": embedding},
            "k": depth,
            "num_candidates": 2 * depth,
        }
    }


def _elasticsearch(fusion: StageFusion, depth: int) -> str:
    normalizer = {"normalizer": NORMALIZERS.get(fusion.normalization)}
    retrievers = [
        {
            "retriever": _retriever(number, depth),
            "weight": weight,
            **(normalizer if fusion.method == "scores" else {}),
        }
        for number, weight in enumerate(fusion.weights)
    ]
    body: dict[str, Any] = {"retrievers": retrievers, "rank_window_size": depth}
    if fusion.method == "rrf":
        body["rank_constant"] = int(fusion.rank_constant)
    kind = "rrf" if fusion.method == "rrf" else "linear"
    return _json({"retriever": {kind: body}, "size": min(FIRST_PAGE, depth)})


def _qdrant(fusion: StageFusion, depth: int) -> str:
    prefetch = [{"query": PLACEHOLDER, "using": name, "limit": depth} for name in fusion.stages]
    query: dict[str, Any] = {"fusion": "dbsf"}
    if fusion.method == "rrf":
        weights = [1.0] * len(prefetch) if fusion.weighting == "term" else list(fusion.weights)
        query = {"rrf": {"k": int(fusion.rank_constant) + 1, "weights": weights}}
    return _json({"prefetch": prefetch, "query": query, "limit": min(FIRST_PAGE, depth)})


def _solr(fusion: StageFusion, depth: int) -> str:
    queries: dict[str, Any] = {
        name: {"knn": {"f": PLACEHOLDER, "topK": depth, "query": PLACEHOLDER}}
        for name in fusion.stages
    }
    queries[fusion.stages[0]] = {"lucene": {"query": PLACEHOLDER}}
    parameters: dict[str, Any] = {
        "combiner": True,
        "combiner.query": list(fusion.stages),
        "combiner.algorithm": "rrf",
        "combiner.rrf.k": str(int(fusion.rank_constant)),
    }
    fields = ["id", "score"]
    return _json({"queries": queries, "limit": depth, "fields": fields, "params": parameters})


def _vespa(fusion: StageFusion, depth: int) -> str:
    names = [f"stage_{number}" for number in range(1, len(fusion.stages) + 1)]
    features = [f"bm25({PLACEHOLDER})", *[f"closeness(field, {PLACEHOLDER})"] * len(names)]
    lines = ["rank-profile hybrid inherits default {", ""]
    for stage, name, feature in zip(fusion.stages, names, features, strict=False):
        lines += [
            f"    # {json.dumps(stage)}: above 0 for the documents of this stage, 0 for others",
            f"    function {name}() {{",
            f"        expression: {feature}",
            "    }",
            "",
        ]
    terms = [
        f"{weight!r} * if ({name} > 0, reciprocal_rank({name}, {float(fusion.rank_constant)!r}), 0)"
        for name, weight in zip(names, fusion.weights, strict=True)
    ]
    lines += [
        "    first-phase {",
        f"        expression: {' + '.join(names)}",
        "    }",
        "",
        "    global-phase {",
        f"        rerank-count: {depth * len(names)}",
        "        expression {",
        *(f"            {'+ ' * (n > 0)}{term}" for n, term in enumerate(terms)),
        "        }",
        "    }",
        "",
        "    match-features {",
        *(f"        {name}" for name in names),
        "    }",
        "}",
    ]
    return "\n".join(lines)


FUSION_ENGINES: dict[str, FusionEngine] = {
    "opensearch": FusionEngine(
        "OpenSearch", "a search pipeline", ".json", _opensearch_refusal, _opensearch
    ),
    "elasticsearch": FusionEngine(
        "Elasticsearch",
        "a search with the retriever rrf or linear",
        ".json",
        _elasticsearch_refusal,
        _elasticsearch,
    ),
    "qdrant": FusionEngine("Qdrant", "a query with prefetches", ".json", _qdrant_refusal, _qdrant),
    "solr": FusionEngine("Solr", "a combined query", ".json", _solr_refusal, _solr),
    "vespa": FusionEngine("Vespa", "a rank profile", ".profile", _vespa_refusal, _vespa),
}
