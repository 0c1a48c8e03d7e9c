"""Pooling: which documents of several runs are judged."""

from __future__ import annotations

from itertools import pairwise

import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.labeling.pooling import METHODS, pooled_documents

LONG = [[f"a{i}" for i in range(100)], [f"b{i}" for i in range(100)]]


def test_depth_pooling_is_the_union_of_the_first_ranks() -> None:
    rankings = ["abcde", "cbxyz", "qa"]
    assert pooled_documents(rankings, 4) == ["a", "c", "q", "b"]
    assert set(pooled_documents(rankings, 5)) == {"a", "c", "q", "b", "x"}
    assert sorted(pooled_documents(rankings, 50)) == sorted("abcdexyzq")


def test_reciprocal_rank_fusion() -> None:
    rankings = ["abc", "cb", "cx"]
    scores = {"a": 1 / 61, "b": 2 / 62, "c": 1 / 63 + 2 / 61, "x": 1 / 62}
    order = sorted(scores, key=lambda document: -scores[document])
    assert pooled_documents(rankings, 3, "rrf") == order[:3]
    runs = [fp.Run.from_dict({"q": {d: -i for i, d in enumerate(ranking)}}) for ranking in rankings]
    pooled = fp.labeling.pool(runs, 3, "rrf").to_dict()["q"]
    assert pooled == pytest.approx({d: scores[d] for d in order[:3]})


@pytest.mark.parametrize("method", ["random", "stratified"])
def test_samples_depend_on_the_seed_and_the_query_alone(method: str) -> None:
    sample = pooled_documents(LONG, 20, method, 1, "q")
    assert len(set(sample)) == 20
    assert sample == pooled_documents(LONG, 20, method, 1, "q")
    assert sample != pooled_documents(LONG, 20, method, 2, "q")
    assert sample != pooled_documents(LONG, 20, method, 1, "p")


def test_a_random_sample_is_uniform() -> None:
    counts = dict.fromkeys([*LONG[0], *LONG[1]], 0)
    for seed in range(400):
        for document in pooled_documents(LONG, 20, "random", seed):
            counts[document] += 1
    assert 20 < min(counts.values()) <= max(counts.values()) < 65  # 40 expected, sd 6


def test_a_stratified_sample_has_as_many_documents_of_each_stratum() -> None:
    """The best ranks 1-10, 11-20, 21-40, 41-80 and 81-100 have 20, 20, 40, 80 and 40 documents."""
    sample = pooled_documents(LONG, 25, "stratified", 3)
    ranks = sorted(int(document[1:]) + 1 for document in sample)
    ends = (0, 10, 20, 40, 80, 100)
    counts = [sum(lo < rank <= hi for rank in ranks) for lo, hi in pairwise(ends)]
    assert counts == [5, 5, 5, 5, 5]
    large = pooled_documents(LONG, 120, "stratified", 3)
    assert sum(int(document[1:]) < 20 for document in large) == 40, "small strata are exhausted"


@pytest.mark.parametrize("method", METHODS)
def test_no_document_is_pooled_twice_and_few_documents_are_all_taken(method: str) -> None:
    runs = {
        "x": fp.Run.from_dict({"q": {"a": 2, "b": 1}, "p": {"a": 1}}),
        "y": fp.Run.from_dict({"q": {"b": 2, "c": 1}}),
    }
    pooled = fp.labeling.pool(runs, 10, method)
    assert {q: sorted(d) for q, d in pooled.to_dict().items()} == {"q": ["a", "b", "c"], "p": ["a"]}


def test_mistakes_are_reported() -> None:
    run = fp.Run.from_dict({"q": {"a": 1}})
    for arguments, message in (
        ({"method": "best"}, "method must be one of depth, rrf, random, stratified; got 'best'"),
        ({"depth": 0}, "depth must be an integer of at least 1; got 0"),
    ):
        with pytest.raises(DataError, match=message):
            fp.labeling.pool([run], **arguments)
    with pytest.raises(DataError, match="no runs"):
        fp.labeling.pool([])
