"""The nearest word of a vocabulary, against a recursive definition of the distance."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.kernels import spelling as kernel

words = st.text("abcé", max_size=7)


def packed(vocabulary: list[str]) -> tuple[np.ndarray, np.ndarray]:
    letters = np.frombuffer("".join(vocabulary).encode("utf-32-le"), np.uint32)
    return letters, np.cumsum([len(word) for word in vocabulary], dtype=np.int64)


def distance(a: str, b: str) -> int:
    """Return the optimal string alignment distance by its recursive definition."""

    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        least = min(of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + (a[i - 1] != b[j - 1]))
        if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
            least = min(least, of(i - 2, j - 2) + 1)
        return least

    return of(len(a), len(b))


def nearest(word: str, vocabulary: list[str], counts: list[int], max_distance: int) -> str | None:
    number = kernel.nearest_word(
        np.frombuffer(word.encode("utf-32-le"), np.uint32),
        *packed(vocabulary),
        np.array(counts, np.int64),
        max_distance,
        np.empty((3, len(word) + max_distance + 2), np.int64),
    )
    return None if number < 0 else vocabulary[number]


@given(words.filter(bool), st.lists(words, min_size=1, max_size=8), st.integers(1, 2), st.data())
def test_nearest_word(word: str, vocabulary: list[str], allowed: int, data: st.DataObject) -> None:
    counts = data.draw(
        st.lists(st.integers(0, 2), min_size=len(vocabulary), max_size=len(vocabulary))
    )
    eligible = [
        (distance(word, other), -count, number)
        for number, (other, count) in enumerate(zip(vocabulary, counts, strict=True))
        if count and other[:1] == word[0] and distance(word, other) <= allowed
    ]
    expected = vocabulary[min(eligible)[2]] if eligible else None
    assert nearest(word, vocabulary, counts, allowed) == expected


def test_swapped_letters_are_one_edit() -> None:
    assert nearest("shose", ["shoes", "shore"], [1, 1], 1) == "shoes"
    assert nearest("hsoes", ["shoes"], [1], 2) is None  # another first letter
