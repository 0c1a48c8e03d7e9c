"""The nearest words of a vocabulary to a misspelled word."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from firstpage.core.kernels.compiler.decorators import compiled_kernel, subroutine
from firstpage.core.types import Ints

Letters = NDArray[np.uint32]


@subroutine
def edit_distance(word: Letters, letters: Letters, begin: int, end: int, table: Ints) -> int:
    """Return the optimal string alignment distance of a word and `letters[begin:end]`.

    It counts insertions, deletions, substitutions and transpositions of neighbors.  `table` has
    three rows of one number per letter of the other word, and one more.
    """
    size = end - begin
    for j in range(size + 1):
        table[1, j] = j
    for i in range(word.size):
        row, above, before = (i + 2) % 3, (i + 1) % 3, i % 3
        table[row, 0] = i + 1
        for j in range(size):
            differs = word[i] != letters[begin + j]
            least = table[above, j] + differs
            least = min(least, table[above, j + 1] + 1, table[row, j] + 1)
            if (
                i > 0
                and j > 0
                and word[i] == letters[begin + j - 1]
                and word[i - 1] == letters[begin + j]
            ):
                least = min(least, table[before, j - 1] + 1)
            table[row, j + 1] = least
    return table[(word.size + 1) % 3, size]


@compiled_kernel
def nearest_word(
    word: Letters,
    letters: Letters,
    ends: Ints,
    counts: Ints,
    max_distance: int,
    table: Ints,
) -> int:
    """Return the word of a vocabulary that is nearest to a word, or -1 if none is near enough.

    Word w of the vocabulary is `letters[ends[w - 1]:ends[w]]`; words with a count of 0 do not
    count.  Among equally near words the one with the largest count wins, then the
    first.  Only words with the same first letter are near.
    """
    best, best_distance = -1, max_distance + 1
    for w in range(ends.size):
        begin = ends[w - 1] if w > 0 else 0
        size = ends[w] - begin
        if counts[w] == 0 or size == 0 or size >= table.shape[1]:
            continue
        if abs(size - word.size) > max_distance or letters[begin] != word[0]:
            continue
        distance = edit_distance(word, letters, begin, ends[w], table)
        if distance < best_distance or (
            distance == best_distance and best >= 0 and counts[w] > counts[best]
        ):
            best, best_distance = w, distance
    return best
