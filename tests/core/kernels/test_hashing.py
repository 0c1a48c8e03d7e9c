"""Hashes, joins and random words, against reference implementations in Python."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.core.kernels.hashing import equal_ranges, random_words
from firstpage.data.ids import Ids
from firstpage.data.joins import join_documents, match_queries

WORD = (1 << 64) - 1


def reference_mix(word: int) -> int:
    """Return the output of SplitMix64 for a state, with Python integers."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & WORD
    return word ^ (word >> 31)


def reference_hash(name: bytes) -> int:
    """Return the mixed FNV-1a hash, with Python integers."""
    word = 0xCBF29CE484222325
    for byte in name:
        word = (word ^ byte) * 0x100000001B3 & WORD
    return reference_mix(word)


def test_random_words_match_splitmix64() -> None:
    """The first three words of seed 0 are those published with the generator (Vigna 2015)."""
    out = np.empty(3, np.uint64)
    random_words(np.array([0], np.uint64), np.array([0, 3]), out)
    assert [f"{word:x}" for word in out.tolist()] == [
        "e220a8397b1dcdaf",
        "6e789e6aa1b965f4",
        "6c45d188009454f",
    ]
    state = 12345
    random_words(np.array([state], np.uint64), np.array([0, 3]), out)
    for word in out.tolist():
        state = state + 0x9E3779B97F4A7C15 & WORD
        assert word == reference_mix(state)


def test_random_words_depend_on_their_own_seed_only() -> None:
    seeds = np.array([1, 2, 3], np.uint64)
    a = np.empty(9, np.uint64)
    random_words(seeds, np.array([0, 3, 6, 9]), a)
    b = np.empty(5, np.uint64)
    random_words(seeds[[2, 0]], np.array([0, 3, 5]), b)
    assert a[6:9].tolist() == b[:3].tolist()
    assert a[:2].tolist() == b[3:].tolist()
    many = np.empty(100_000, np.uint64)
    random_words(np.array([7], np.uint64), np.array([0, 100_000]), many)
    uniform = (many >> np.uint64(40)).astype(float) / 2**24
    assert abs(uniform.mean() - 0.5) < 0.005
    assert len(np.unique(many)) == len(many)


@pytest.mark.parametrize("size", range(20))
def test_equal_ranges_compares_all_bytes_and_no_others(size: int) -> None:
    rng = np.random.default_rng(size)
    for before, after in itertools.product((0, 3, 9), repeat=2):
        a = rng.integers(0, 256, before + size + after).astype(np.uint8)
        b = rng.integers(0, 256, after + size + before).astype(np.uint8)
        b[after : after + size] = a[before : before + size]
        ranges = a, before, before + size, b, after, after + size
        assert equal_ranges(*ranges)
        assert not equal_ranges(*ranges[:-1], after + size + 1)
        for at in range(size):
            b[after + at] ^= np.uint8(1 << at % 8)
            assert not equal_ranges(*ranges)
            b[after + at] ^= np.uint8(1 << at % 8)


@given(st.lists(st.text(max_size=9), max_size=9))
def test_identifiers_are_hashed_and_copied_as_bytes(names: list[str]) -> None:
    ids = Ids.from_values(names)
    assert ids.hashes.tolist() == [reference_hash(name.encode()) for name in names]
    picked = ids[np.arange(len(names))[::-2]]
    assert list(picked.compact()) == names[::-2]
    assert bytes(picked.compact().data) == "".join(names[::-2]).encode()


lists = st.dictionaries(
    st.sampled_from("pqrs"),
    st.dictionaries(st.text("abc", max_size=3), st.integers(0, 3)),
    max_size=4,
)


@given(lists, lists)
def test_join_matches_a_join_by_dictionary(left, right) -> None:
    run, qrels = fp.Run.from_dict(left), fp.Qrels.from_dict(right)
    rows = join_documents(run, qrels, match_queries(run.queries, qrels.queries))
    expected = [right.get(query, {}).get(doc) for query, docs in left.items() for doc in docs]
    assert [None if row < 0 else qrels.values[row] for row in rows.tolist()] == expected


def test_a_large_join_matches_a_join_by_dictionary() -> None:
    """So many identifiers are joined by compiled code; lengths are below and above a word."""
    rng = np.random.default_rng(0)
    names = sorted(
        {"a" * (n % 23) + f"{int(1e9 * m)}"[: 1 + n % 9] for n, m in enumerate(rng.random(50_000))}
    )
    left = {"q": {str(names[i]): 1.0 for i in rng.permutation(len(names))[: len(names) // 2]}}
    right = {"q": {str(names[i]): float(i) for i in rng.permutation(len(names))}}
    run, qrels = fp.Run.from_dict(left), fp.Qrels.from_dict(right)
    rows = join_documents(run, qrels, match_queries(run.queries, qrels.queries))
    assert qrels.values[rows].tolist() == [right["q"][doc] for doc in left["q"]]


@pytest.mark.parametrize("side_name", ["run", "judgments"])
def test_duplicate_documents_raise_an_error_on_both_sides(side_name: str) -> None:
    unique, duplicated = (["q", "q"], ["a", "b"]), (["p", "q", "q"], ["a", "b", "b"])
    sides = (duplicated, unique) if side_name == "run" else (unique, duplicated)
    run = fp.Run.from_arrays(*sides[0], np.ones(len(sides[0][0])))
    qrels = fp.Qrels.from_arrays(*sides[1], np.ones(len(sides[1][0])))
    with pytest.raises(DataError, match=f"the {side_name}: document 'b' occurs twice in query 'q'"):
        join_documents(run, qrels, match_queries(run.queries, qrels.queries))
