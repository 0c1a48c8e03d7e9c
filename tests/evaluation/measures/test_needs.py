"""Measures sort no more than they need, and get the same values as from complete lists."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.groups import offsets_from_lengths, sort_groups, top_rows
from firstpage.data.ids import Ids
from firstpage.evaluation.measures.base import (
    ALL,
    EVERYTHING,
    needs_of,
    rank_lists,
)
from firstpage.evaluation.measures.registry import measure, measure_classes

MEASURED = (
    "NDCG@10", "DCG@3", "ERR@10", "P@10", "P@1", "Recall@20", "Recall", "Success@5", "RR", "RR@10",
    "AP", "AP@10", "Rprec", "bpref", "Judged@10", "Judged", "RBP@10", "SetP", "SetR", "SetF", "SetSuccess", "CG@5",
    "nERR@10", "Hits@10", "Hits", "F1@10", "F1", "RelP@10", "SetRelP", "SetAP", "SetUtility", "NumQ",
    "NumRet", "NumRel", "NumRelRet", "NumNonrelRet", "Unjudged@10", "IPrec@0.2", "AP11", "GMAP",
    "GMbpref", "binG", "Accuracy@10", "RBP(gain=linear)@10", "SDCG@10",
)  # fmt: skip


def scored(kind: str, relevant: float, lengths: np.ndarray) -> tuple[np.ndarray, fp.Truth]:
    rng = np.random.default_rng(3)
    offsets = offsets_from_lengths(lengths)
    n = int(offsets[-1])
    labels = np.where(rng.random(n) < relevant, rng.integers(1, 5, n), 0).astype(float)
    scores = rng.normal(size=n) + labels / 3
    if kind == "ties":
        scores = np.round(scores * 4)
    if kind == "constant":
        scores[:] = 1.0
    if kind == "infinite":
        scores[rng.random(n) < 0.05] = np.inf
        scores[rng.random(n) < 0.05] = -np.inf
    return scores, fp.Truth(labels, offsets, Ids.from_values(range(len(lengths))))


LENGTHS = np.array([1, 2, 10, 31, 33, 80, 120, 1000, 5])


@pytest.mark.parametrize("text", MEASURED)
@pytest.mark.parametrize("kind", ["distinct", "ties", "constant", "infinite"])
@pytest.mark.parametrize("relevant", [0.01, 0.3])
def test_values_are_those_of_complete_lists(text: str, kind: str, relevant: float) -> None:
    scores, truth = scored(kind, relevant, LENGTHS)
    for ties in ("average", "file"):
        convention = fp.Convention(ties=ties)
        m = measure(text)
        complete = rank_lists(scores, truth, convention)
        needed = needs_of([m], convention)
        assert needed != EVERYTHING
        lists = rank_lists(scores, truth, convention, needs=needed)
        assert np.array_equal(m.values(lists, convention), m.values(complete, convention))


def test_needs_are_planned_for_all_measures_of_a_call() -> None:
    convention = fp.Convention()
    needs = needs_of([measure("NDCG@10"), measure("P@5"), measure("RR"), measure("AP")], convention)
    assert needs.depth == 10
    assert needs.levels == needs.first_levels == {1.0}
    assert needs_of([measure("NDCG"), measure("P@5")], convention).depth == ALL
    lists = rank_lists(*scored("distinct", 0.01, LENGTHS), convention, needs=needs)
    assert lists.depth == 10
    assert lists.lengths.tolist() == LENGTHS.tolist()
    assert np.diff(lists.offsets).max() < 40  # of 1000 documents
    dense = scored("distinct", 0.5, LENGTHS)
    assert rank_lists(*dense, convention, needs=needs).depth == ALL


def test_measures_that_declare_nothing_get_complete_lists() -> None:
    convention = fp.Convention()
    declared = {type(measure(text)) for text in MEASURED}
    for cls in measure_classes():
        if cls not in declared and not cls.of_subtopics:
            create: Any = cls
            example = create(cutoff=1) if cls.without_cutoff else cls()
            assert example.needs(convention) == EVERYTHING, cls


@pytest.mark.filterwarnings("ignore::firstpage.core.errors.FirstpageWarning")
def test_runs_with_unjudged_documents_have_the_same_values_by_any_plan() -> None:
    rng = np.random.default_rng(0)
    run = {f"q{q}": {f"d{i}": float(rng.integers(0, 60)) for i in range(200)} for q in range(20)}
    qrels = {
        f"q{q}": {f"d{i}": int(rng.random() < 0.05) for i in range(0, 300, 2)} for q in range(20)
    }
    for text in MEASURED:
        alone = fp.evaluate(run, qrels, measures=[text])
        together = fp.evaluate(run, qrels, measures=[text, "Tau"])
        assert np.array_equal(alone.values[0], together.values[0]), text


@pytest.mark.parametrize("depth", [1, 3, 10, 11, 100])
def test_top_rows_contain_the_first_ranks_and_their_ties(depth: int) -> None:
    rng = np.random.default_rng(depth)
    for kind in ("distinct", "ties", "constant", "infinite"):
        scores, truth = scored(kind, 0.1, rng.integers(0, 700, 30))
        offsets = truth.offsets
        rows, top_offsets = top_rows(scores, offsets, depth)
        order, _ = sort_groups(scores, offsets)
        for q in range(len(offsets) - 1):
            lo, hi = offsets[q], offsets[q + 1]
            selected = rows[top_offsets[q] : top_offsets[q + 1]]
            assert np.all(np.diff(selected) > 0)
            ranked = order[lo:hi]
            if hi > lo:
                least = scores[ranked[min(depth, hi - lo) - 1]]
                assert set(np.flatnonzero(scores[lo:hi] >= least) + lo) <= set(selected)


@pytest.mark.parametrize("longest", [10, 100, 3000, 20000])
def test_sorting_of_many_lists_matches_numpy(longest: int) -> None:
    rng = np.random.default_rng(longest)
    for kind in ("distinct", "ties", "infinite", "heavy", "tiny"):
        lengths = rng.integers(0, longest, 8) if kind != "ties" else np.full(7, longest)
        lengths[0] = longest
        scores, truth = scored(kind, 0.1, lengths)
        offsets = truth.offsets
        if kind == "heavy":
            scores = rng.standard_cauchy(len(scores)) ** 5
        if kind == "tiny":
            scores = 1.0 + rng.integers(0, 9, len(scores)) * np.finfo(float).eps
        order, keys = sort_groups(scores, offsets)
        for lo, hi in pairwise(offsets):
            expected = lo + np.argsort(-scores[lo:hi], kind="stable")
            assert np.array_equal(order[lo:hi], expected)
        assert np.array_equal(keys, scores[order])
