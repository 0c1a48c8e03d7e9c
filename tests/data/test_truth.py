"""Conversions between kinds of truth."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from tests.narrow import dense, present

QID = [1, 1, 1, 1, 2, 2, 3]
GRADES = fp.Truth.from_labels([2, 0, 1, 1, 0, 0, 5], QID)

truths = st.lists(st.lists(st.integers(-1, 3), min_size=1, max_size=9), min_size=1, max_size=5).map(
    lambda g: fp.Truth.from_labels(
        [y for q in g for y in q], np.repeat(range(len(g)), [len(q) for q in g])
    )
)


def queries(truth: fp.Truth) -> list[np.ndarray]:
    return np.split(truth.labels, truth.offsets[1:-1])


@given(truth=truths, seed=st.integers(0, 5))
def test_full_order_agrees_with_the_grades(truth: fp.Truth, seed: int) -> None:
    for grades, order in zip(queries(truth), queries(truth.full_order(seed)), strict=True):
        assert sorted(order) == list(range(len(grades)))
        better = grades[:, None] > grades[None, :]
        assert (order[:, None] > order[None, :])[better].all()


@given(truth=truths, k=st.integers(1, 12), seed=st.integers(0, 5))
def test_top_k_is_the_head_of_the_full_order(truth: fp.Truth, k: int, seed: int) -> None:
    depth = truth.top_k_depth or 0
    if depth > 2 and (truth.depth < np.minimum(k, truth.lengths)).any():  # a top-k truth itself
        with pytest.raises(fp.DataError, match=f"only the top {depth}; a top {k} cannot"):
            truth.top_k(k, seed)
        return
    top, full = truth.top_k(k, seed), truth.full_order(seed)
    for labels, order in zip(queries(top), queries(full), strict=True):
        n = len(labels)
        rank = n - order  # from 1
        assert labels.tolist() == [max(k + 1 - p, 0) for p in rank]
        assert labels.max() == k  # also in short queries: k is global
    assert full.top_k(k).labels.tolist() == top.labels.tolist()


def test_edge_cases() -> None:
    top = GRADES.top_k(3)
    assert sorted(top.labels[:4], reverse=True) == [3, 2, 1, 0]
    assert sorted(top.labels[4:6], reverse=True) == [3, 2]  # n <= k: all are in the top
    assert top.labels[6] == 3  # one document
    better, worse = GRADES.pairs()
    assert set(zip(better.tolist(), worse.tolist(), strict=True)) == {
        (0, 1),
        (0, 2),
        (0, 3),
        (2, 1),
        (3, 1),
    }
    cross = fp.Truth.from_labels([3, 2, 0, 0]).pairs("cross")
    assert set(zip(*(c.tolist() for c in cross), strict=True)) == {(0, 2), (0, 3), (1, 2), (1, 3)}
    assert len(fp.Truth.from_labels([3, 2, 1]).pairs("cross")[0]) == 0  # F is empty


def test_order_of_ties_depends_on_seed_and_query_only() -> None:
    labels = np.zeros(6)
    counts = Counter(
        tuple(fp.Truth.from_labels(labels[:3]).full_order(s).labels) for s in range(600)
    )
    assert len(counts) == 6
    assert min(counts.values()) > 60
    alone = fp.Truth.from_labels(labels[:4], ["b"] * 4).full_order(3).labels
    among = (
        fp.Truth.from_labels(np.zeros(8), ["a", "a", "a", "b", "b", "b", "b", "c"])
        .full_order(3)
        .labels
    )
    assert among[3:7].tolist() == alone.tolist()


def test_min_grade_excludes_irrelevant_documents() -> None:
    top = fp.Truth.from_labels([1, 0, 0, 0]).top_k(3, min_grade=1)
    assert top.labels.tolist() == [3, 0, 0, 0]


def test_kinds_and_depths() -> None:
    assert GRADES.kind == "graded"
    assert GRADES.depth.tolist() == [1, 0, 1]
    assert GRADES.full_order().kind == "full order"
    top = fp.Truth.from_labels([3, 2, 1, 0, 0])
    assert (top.kind, top.top_k_depth, top.depth.tolist()) == ("top-k", 3, [3])
    assert fp.Truth.from_labels([3, 1, 0, 0]).kind == "graded"  # a gap: these are grades


def test_top_k_truth_cannot_be_deepened() -> None:
    top = fp.Truth.from_labels([5, 4, 3, 2, 1, 0, 0])
    assert top.top_k(2).labels.tolist() == [2, 1, 0, 0, 0, 0, 0]
    with pytest.raises(fp.DataError, match="only the top 5; a top 6 cannot be derived"):
        top.top_k(6)
    with pytest.raises(fp.DataError, match="k must be an integer of at least 1"):
        top.top_k(0)


def test_binary_labels_and_invalid_labels() -> None:
    assert GRADES.binary(2).labels.tolist() == [1, 0, 0, 0, 0, 0, 1]
    with pytest.raises(fp.DataError, match="label of query '8' is inf"):
        fp.Truth.from_labels([1, np.inf], [7, 8])
    with pytest.raises(fp.DataError, match="must be contiguous"):
        fp.Truth.from_labels([1, 2, 3], [1, 2, 1])


def test_intersection_has_grades_of_one_and_order_of_the_other() -> None:
    graded = fp.Dataset.from_arrays(
        np.arange(5.0).reshape(-1, 1), [2, 0, 1, 1, 0], [1, 1, 1, 2, 3], ["a", "b", "c", "a", "z"]
    )
    ordered = fp.Dataset.from_arrays(
        np.zeros((4, 1)), [10, 30, 20, 5], [1, 1, 1, 2], ["c", "a", "x", "a"]
    )
    data, order = fp.intersect(graded, ordered)
    assert list(present(data.docids)) == ["a", "c", "a"]
    assert data.y.tolist() == [2, 1, 1]
    assert dense(data.X[:, 0]).tolist() == [0, 2, 3]
    assert order.labels.tolist() == [1, 0, 0]
    assert list(data.queries) == ["1", "2"]
    with pytest.raises(fp.DataError, match="share no document"):
        fp.intersect(graded[2], ordered)


def test_dataset_labels_convert_through_truth() -> None:
    data = fp.Dataset.from_arrays(np.zeros((3, 1)), [2, 0, 1], [1, 1, 1])
    assert data.with_labels(data.truth.top_k(2)).y.tolist() == [2, 0, 1]
    assert data.with_labels(data.truth.top_k(1)).y.tolist() == [1, 0, 0]


def test_three_grades_convert_to_a_deeper_top_k() -> None:
    assert sorted(fp.Truth.from_labels([2, 1, 0, 0]).top_k(3).labels) == [0, 1, 2, 3]


@pytest.mark.parametrize("depth", [1, 3, 64, 65, 10**9])
@pytest.mark.parametrize("kind", ["grades", "large", "reals", "negative"])
def test_ideal_lists_are_the_sorted_labels(kind: str, depth: int) -> None:
    rng = np.random.default_rng(0)
    lengths = np.array([0, 1, 2, 5, 70, 300])
    n = int(lengths.sum())
    labels = {
        "grades": rng.integers(0, 4, n),
        "large": rng.integers(0, 40, n),
        "reals": rng.normal(size=n),
        "negative": -rng.integers(1, 4, n),
    }[kind].astype(float)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    queries = fp.Truth.from_labels(np.zeros(len(lengths)), range(len(lengths))).queries
    truth = fp.Truth(labels, offsets, queries)
    best, ideal_offsets = truth.ideal(depth)
    for q in range(len(lengths)):
        expected = np.sort(labels[offsets[q] : offsets[q + 1]])[::-1]
        ours = best[ideal_offsets[q] : ideal_offsets[q + 1]]
        assert len(ours) >= min(depth, lengths[q])
        assert ours.tolist() == expected[: len(ours)].tolist()
        assert truth.max_labels[q] == max(expected.max(initial=0), 0)
        assert truth.relevant_counts(1.0)[q] == (expected >= 1).sum()


def test_what_is_computed_once_stays_true() -> None:
    """Ideal lists are shared by all evaluations, so labels cannot be changed."""
    labels = np.array([1.0, 0.0])
    truth = fp.Truth.from_labels(labels)
    assert truth.ideal(1)[0] is truth.ideal(1)[0]
    shared = (truth.labels, *truth.ideal(1), truth.relevant_counts(1), truth.max_labels)
    for array in (*shared, *truth.by_label):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3
    labels[0] = 3.0
    assert truth.labels.tolist() == [1.0, 0.0]
    with pytest.raises(fp.DataError, match="depth must be at least 1; got 0"):
        truth.ideal(0)
    data = fp.Dataset.from_arrays([[0.0], [1.0]], [1, 0], [1, 1])
    assert data.truth is data.truth


@pytest.mark.parametrize(
    "values",
    [[0, 1, 2, 3, 4], [0, 15], [0, 16, 3], [0.5, 0, 2], [-1, 0, 1], [-0.0, 0.0, 1], [7]],
    ids=str,
)
def test_labels_are_sorted_stably_whether_they_are_counted_or_compared(values) -> None:
    rng = np.random.default_rng(0)
    lengths = [40, 1, 0, 200, 3]
    labels = rng.choice(np.array(values, float), sum(lengths))
    truth = fp.Truth.from_labels(labels, np.repeat(np.arange(5), lengths))
    order, keys = truth.by_label
    for lo, hi in zip(truth.offsets[:-1], truth.offsets[1:], strict=True):
        expected = lo + np.argsort(-labels[lo:hi], kind="stable")
        assert order[lo:hi].tolist() == expected.tolist()
    assert keys.tolist() == labels[order].tolist()
