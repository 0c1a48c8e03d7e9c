"""Hinges of NDCG and precision over many queries, and the true rankings that they compare with."""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, part
from firstpage.kernels.losses.slack import by_chords, by_golden_section, close_gap, ranking_at
from firstpage.kernels.sorting import sort_down
from firstpage.types import Array, Floats, Ints, Words

MARGIN, CHORDS, GOLDEN_SECTION = 0, 1, 2


@part
def read_query(
    scores: Floats, lo: int, rows: Array, gains: Floats, own: Floats, z: Floats, b: Floats
) -> float:
    """Scores and gains of the documents that take part; returns the true ranking's score.

    NaN where nothing is relevant, or there is nothing to rank.
    """
    n = rows.size
    if n < 2:
        return np.nan
    shift = scores[lo + rows[0]]
    total, most = 0.0, 0.0
    for i in range(n):
        z[i] = scores[lo + rows[i]] - shift
        b[i] = gains[i]
        most = max(most, b[i])
        total += own[i] * z[i]
    return total if most > 0.0 else np.nan


@part
def write_slope(
    scale: float, a: Floats, rows: Array, own: Floats, kept: Ints, lo: int, grad: Floats
) -> None:
    """scale * (discounts in the ranking kept - those in the true one)."""
    n = rows.size
    for i in range(n):
        grad[lo + rows[i]] = -scale * own[i]
    for p in range(min(a.size, n)):
        grad[lo + rows[kept[p]]] += scale * a[p]


@kernel
def structural_hinge(
    scores: Floats,
    docs: Array,
    starts: Ints,
    offsets: Ints,
    gains: Floats,
    own: Floats,
    a: Floats,
    way: int,
    z: Floats,
    b: Floats,
    key: Floats,
    bits: Words,
    items: Ints,
    kept: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
    found: Floats,
    best: Floats,
    at: Floats,
    tree: Ints,
    values: Floats,
    bounds: Floats,
    grad: Floats,
) -> None:
    """The most violated ranking of each query: its value, a bound above any, and the slope.

    docs[starts[q]:starts[q+1]] are the documents that take part, as numbers inside their query;
    `gains` and `own`, the discounts at which the true ranking has them, stand beside.  `a` has the
    discounts of the first places; further ones count nothing.  `way` is how to look for rankings.
    """
    base = offsets[0]
    room = (key, bits, items, words, spare_words, spare, found)
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        for i in range(lo, hi):
            grad[i] = 0.0
        values[q], bounds[q] = 0.0, 0.0
        start, n = starts[q] - starts[0], starts[q + 1] - starts[q]
        rows, mine = docs[start : start + n], own[start : start + n]
        total = read_query(scores, lo, rows, gains[start : start + n], mine, z, b)
        if np.isnan(total):
            continue  # nothing is relevant: all rankings are as good
        query = (z, b, a, n, a.size)
        best[0], best[1], best[2], best[3] = 0.0, 0.0, np.inf, 0.0
        if way == MARGIN:
            if ranking_at(1.0, query, room) == 1:
                best[0], best[1] = found[0] + found[1] - total, 1.0
                bounds[q] = best[0]
                for i in range(n):
                    kept[i] = items[i]
        elif way == GOLDEN_SECTION:
            if by_golden_section(total, query, room, best, kept) == 1:
                bounds[q] = best[2]
        elif by_chords(total, query, room, best, kept) == 1:
            close_gap(total, query, room, best, kept, at, tree)
            bounds[q] = best[2]
        values[q] = max(best[0], 0.0)
        bounds[q] = max(bounds[q], values[q])
        if best[0] > 0.0:
            write_slope(best[1], a, rows, mine, kept, lo, grad)


@kernel
def resort(
    scores: Floats,
    docs: Array,
    starts: Ints,
    offsets: Ints,
    firsts: Ints,
    end: Ints,
    a: Floats,
    z: Floats,
    bits: Words,
    items: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
    own: Floats,
) -> None:
    """The true ranking that scores best: levels in order, inside each by falling score.

    Writes the discount at which every document stands in it.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo = offsets[q] - base
        start, n = starts[q] - starts[0], starts[q + 1] - starts[q]
        for i in range(n):
            z[i] = scores[lo + docs[start + i]]
        first = 0
        for level in range(firsts[q], firsts[q + 1]):
            last = min(end[level], n)
            if last > first:
                sort_down(z, bits, first, last, items, words, spare_words, spare)
                for i in range(last - first):
                    place = first + i
                    own[start + items[i]] = a[place] if place < a.size else 0.0
            first = max(first, last)
