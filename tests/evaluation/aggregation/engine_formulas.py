"""What search engines document: fusions of lists in plain Python, and lists to fuse.

OpenSearch: normalization-processor and score-ranker-processor.  Elasticsearch: rrf and linear
retrievers.  Qdrant: rrf and dbsf.  Vespa: reciprocal_rank and normalize_linear.  Solr: combined
query.  Lists are [(document, score)], best first.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from hypothesis import strategies as st

Listed = Sequence[tuple[int, float]]


def opensearch_normalized(ranked: Listed, technique: str) -> dict[int, float]:
    scores = [score for _, score in ranked]
    out = {}
    for document, score in ranked:
        if technique == "min_max":
            low, high = min(scores), max(scores)
            value = 1.0 if low == high else (score - low) / (high - low)
            out[document] = 0.001 if value == 0 else value
        elif technique == "l2":
            out[document] = score / math.sqrt(sum(s * s for s in scores))
        else:
            value = (score - statistics.mean(scores)) / statistics.stdev(scores)
            out[document] = 0.001 if value <= 0 else value
    return out


def opensearch(lists: Sequence[Listed], technique: str, mean: str, weights) -> dict[int, float]:
    """A document that a clause did not return has the score 0; the two other means skip it."""
    tables = [opensearch_normalized(ranked, technique) if ranked else {} for ranked in lists]
    fused = {}
    for document in {d for ranked in lists for d, _ in ranked}:
        scores = [table.get(document, 0.0) for table in tables]
        pairs = [(w, s) for w, s in zip(weights, scores, strict=True) if s > 0 and w > 0]
        if mean == "arithmetic_mean":
            total = sum(w * s for w, s in zip(weights, scores, strict=True)) / sum(weights)
        elif not pairs:
            total = 0.0
        elif mean == "geometric_mean":
            logs = sum(w * math.log(s) for w, s in pairs)
            total = math.exp(logs / sum(w for w, _ in pairs))
        else:
            total = sum(w for w, _ in pairs) / sum(w / s for w, s in pairs)
        fused[document] = total
    return fused


def reciprocal(lists: Sequence[Listed], weights, k: float) -> dict[int, float]:
    """Elasticsearch, OpenSearch, Solr and Vespa: weight / (k + rank), ranks from 1."""
    fused: dict[int, float] = {}
    for ranked, weight in zip(lists, weights, strict=True):
        for rank, (document, _) in enumerate(ranked, 1):
            fused[document] = fused.get(document, 0.0) + weight * 1.0 / (k + rank)
    return fused


def qdrant_reciprocal(lists: Sequence[Listed], weights, k: int) -> dict[int, float]:
    """Positions from 0: 1 / ((position + 1) / weight + k - 1), nothing for weight 0."""
    fused: dict[int, float] = {}
    for ranked, weight in zip(lists, weights, strict=True):
        for position, (document, _) in enumerate(ranked):
            term = 1.0 / ((position + 1) / weight + k - 1.0) if weight > 0 else 0.0
            fused[document] = fused.get(document, 0.0) + term
    return fused


def qdrant_dbsf(lists: Sequence[Listed]) -> dict[int, float]:
    """Sums of scores scaled from mean - 3 deviations to mean + 3 deviations; 0.5 if constant."""
    fused: dict[int, float] = {}
    for ranked in lists:
        scores = [score for _, score in ranked]
        for document, score in ranked:
            value = 0.5
            if len(scores) > 1 and min(scores) < max(scores):
                mean, deviation = statistics.mean(scores), statistics.stdev(scores)
                low, high = mean - 3 * deviation, mean + 3 * deviation
                value = (score - low) / (high - low)
            fused[document] = fused.get(document, 0.0) + value
    return fused


def linear(lists: Sequence[Listed], weights, normalizer: str) -> dict[int, float]:
    """Elasticsearch: the sum of weight times normalized score, without a floor."""
    fused: dict[int, float] = {}
    for ranked, weight in zip(lists, weights, strict=True):
        scores = [score for _, score in ranked]
        for document, score in ranked:
            if normalizer == "minmax":
                value = (score - min(scores)) / (max(scores) - min(scores))
            else:
                value = score / math.sqrt(sum(s * s for s in scores))
            fused[document] = fused.get(document, 0.0) + weight * value
    return fused


@st.composite
def stage_lists(draw, stages: int = 2) -> list[Listed]:
    """Lists of 2 to 9 of 12 documents, with scores whose statistics are well conditioned."""
    lists: list[Listed] = []
    for _ in range(stages):
        documents = draw(st.lists(st.integers(0, 11), min_size=2, max_size=9, unique=True))
        size = len(documents)
        grid = st.lists(st.integers(1, 400), min_size=size, max_size=size, unique=True)
        scores = sorted((s / 8 for s in draw(grid)), reverse=True)
        lists.append(list(zip(documents, scores, strict=True)))
    return lists
