"""Sorting by score, ties, and the greatest labels, against Python and NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.kernels.selection import top_labels
from firstpage.core.kernels.ties import order_ties_by_key, tie_blocks
from firstpage.data.groups import labels_by_score, sort_groups

groups = st.lists(
    st.lists(st.one_of(st.integers(0, 3), st.floats(allow_nan=False)), max_size=70), max_size=4
)


def flat(lists):
    offsets = np.concatenate([[0], np.cumsum([len(g) for g in lists])]).astype(np.int64)
    return np.array([x for g in lists for x in g], float), offsets


@given(groups)
def test_rank_sorts_every_group_in_descending_order_and_is_stable(lists) -> None:
    values, offsets = flat(lists)
    order, keys = sort_groups(values, offsets)
    for lo, hi in itertools.pairwise(offsets):
        expected = sorted(range(lo, hi), key=lambda i: -values[i])
        assert order[lo:hi].tolist() == expected
        assert np.array_equal(keys[lo:hi], values[expected])


def test_rank_of_long_lists_matches_numpy() -> None:
    rng = np.random.default_rng(0)
    for n in (15, 16, 17, 31, 64, 65, 1000, 4097):
        values = rng.integers(0, 50, n).astype(float)
        order, _ = sort_groups(values, np.array([0, n]))
        assert np.array_equal(order, np.argsort(-values, kind="stable"))


def scores_of_kind(kind: str, size: int, rng: np.random.Generator) -> np.ndarray:
    normal = rng.normal(size=size)
    if kind == "skewed":  # as in fusion by rank: clusters of equal leading digits
        return 0.9 ** rng.integers(0, 900, size) + 0.9 ** rng.integers(0, 900, size)
    kinds = {
        "normal": normal,
        "grades": np.rint(2 * normal),
        "equal": np.ones(size),
        "long tails": np.sign(normal) * np.exp(30 * np.abs(normal)),
        "two clusters": np.where(normal > 0, 1e9, 0.0) + 1e-3 * rng.normal(size=size),
        "outlier": np.where(np.arange(size) == size // 2, 1e12, normal),
        "infinite": np.where(np.abs(normal) > 2, np.copysign(np.inf, normal), normal),
        "descending": -np.sort(-normal),
        "ascending": np.sort(normal),
    }
    return kinds[kind]


@pytest.mark.parametrize(
    "kind",
    ["normal", "grades", "equal", "long tails", "two clusters", "outlier", "infinite", "skewed",
     "descending", "ascending"],
)  # fmt: skip
def test_short_and_long_lists_are_sorted_together(kind: str) -> None:
    """Short lists are counted; others are sorted as words of 32 bits, or of 64 where need be."""
    rng = np.random.default_rng(2)
    several = [*range(20), 0, 100, 1023, 16384, 16, 20_000, 60_000, 17]
    for lengths in (several, [*several, 80_000], [40] * 50, [7] * 300):
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        values = np.concatenate([scores_of_kind(kind, n, rng) for n in lengths])
        labels = rng.integers(0, 5, len(values)).astype(float)
        order, keys = sort_groups(values, offsets)
        ranked, tie_sizes, longest = labels_by_score(values, labels, offsets)
        sizes = np.ones(len(values), np.int64)
        assert longest == tie_blocks(keys, offsets, sizes)
        assert np.array_equal(tie_sizes, sizes)
        assert np.array_equal(ranked, labels[order])
        assert np.array_equal(keys, values[order])
        for lo, hi in itertools.pairwise(offsets.tolist()):
            expected = np.argsort(-values[lo:hi], kind="stable")
            assert np.array_equal(order[lo:hi] - lo, expected)


def test_scores_that_differ_in_their_last_bits_are_sorted() -> None:
    """Packed words do not distinguish them; the sort by full scores does, few or many, with ties."""
    rng = np.random.default_rng(1)
    for n in (5, 33, 300):
        for base in (1.0, -3e9, 1e-300):
            steps = rng.integers(0, n // 2 + 1, n)
            values = np.full(n, base)
            for _ in range(int(steps.max())):
                values = np.where(steps > 0, np.nextafter(values, np.inf), values)
                steps = steps - 1
            offsets = np.array([0, n])
            assert np.array_equal(
                sort_groups(values, offsets)[0], np.argsort(-values, kind="stable")
            )
            labels, _, longest = labels_by_score(values, np.arange(float(n)), offsets)
            assert np.array_equal(labels, np.argsort(-values, kind="stable"))
            assert longest == np.unique(values, return_counts=True)[1].max()


def test_signed_zeros_tie_and_infinities_rank() -> None:
    values = np.array([0.0, -np.inf, -0.0, np.inf, 5e-324, -5e-324])
    order, _ = sort_groups(values, np.array([0, 6]))
    assert order.tolist() == [3, 4, 0, 2, 5, 1]
    assert labels_by_score(values, values, np.array([0, 6]))[2] == 2


@given(groups, st.randoms(use_true_random=False))
def test_ties_are_detected_and_reordered_by_key(lists, random) -> None:
    values, offsets = flat(lists)
    order, keys = sort_groups(values, offsets)
    tie_sizes = np.ones(len(values), np.int64)
    longest = tie_blocks(keys, offsets, tie_sizes)
    tie_key = np.array(random.sample(range(len(values)), len(values)), float)
    order_ties_by_key(keys, offsets, order, tie_key)
    longest_seen = 1
    for lo, hi in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        expected = sorted(range(lo, hi), key=lambda i: (-values[i], tie_key[i]))
        assert order[lo:hi].tolist() == expected
        at = lo
        while at < hi:
            size = tie_sizes[at]
            assert len(set(keys[at : at + size].tolist())) == 1
            assert at + size == hi or keys[at + size] != keys[at]
            longest_seen = max(longest_seen, size)
            at += size
    assert longest == longest_seen


@given(groups, st.integers(1, 20))
def test_top_labels_are_the_greatest_in_descending_order(lists, depth: int) -> None:
    values, offsets = flat(lists)
    sizes = np.minimum(np.diff(offsets), depth)
    best_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    best = np.empty(int(best_offsets[-1]))
    top_labels(values, offsets, np.empty(4, np.int64), best_offsets, best)
    for q, group in enumerate(lists):
        labels = best[best_offsets[q] : best_offsets[q + 1]]
        assert labels.tolist() == sorted(map(float, group), reverse=True)[:depth]
