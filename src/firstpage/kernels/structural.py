"""Hinges of NDCG and precision over many queries, and the true rankings that they compare with."""

from __future__ import annotations

from firstpage.kernels.augmented import ranking_at
from firstpage.kernels.native import kernel
from firstpage.kernels.slack import by_chords, by_golden_section, polish
from firstpage.kernels.sorting import sort_down
from firstpage.types import Array, Floats, Ints, Words

SHORT = 24  # documents of a list in which single exchanges are tried


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
    values: Floats,
    bounds: Floats,
    grad: Floats,
) -> None:
    """The most violated ranking of each query: its value, a bound above any, and the slope.

    docs[starts[q]:starts[q+1]] are the documents that take part, as numbers inside their query;
    `gains` and `own`, the discounts at which the true ranking has them, stand beside.  `a` has the
    discounts of the first places; further ones count nothing.  way 0: margin scaling; 1: slack
    scaling by chords; 2: by golden section.
    """
    base = offsets[0]
    depth = a.size
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        for i in range(lo, hi):
            grad[i] = 0.0
        values[q], bounds[q] = 0.0, 0.0
        start, n = starts[q] - starts[0], starts[q + 1] - starts[q]
        if n < 2:
            continue
        shift = scores[lo + docs[start]]
        mine, most = 0.0, 0.0
        for i in range(n):
            z[i] = scores[lo + docs[start + i]] - shift
            b[i] = gains[start + i]
            most = max(most, b[i])
            mine += own[start + i] * z[i]
        if most == 0.0:
            continue  # nothing is relevant: all rankings are as good
        scale = 1.0  # what the slope of the chosen ranking is multiplied by
        if way == 0:
            if (
                ranking_at(
                    1.0, z, b, a, n, depth, key, bits, items, words, spare_words, spare, found
                )
                == 0
            ):
                continue
            values[q] = found[0] + found[1] - mine
            bounds[q] = values[q]
            for i in range(n):
                kept[i] = items[i]
        else:
            if way == 1:
                bounds[q] = by_chords(
                    mine, z, b, a, n, depth, key, bits, items, words, spare_words, spare, found,
                    best, kept,
                )  # fmt: skip
            else:
                bounds[q] = by_golden_section(
                    mine, z, b, a, n, depth, key, bits, items, words, spare_words, spare, found,
                    best, kept,
                )  # fmt: skip
            if best[0] > 0.0 and n <= SHORT:
                polish(z, b, a, n, depth, best, kept)
                bounds[q] = max(bounds[q], best[0])
            values[q], scale = best[0], best[1]
        if values[q] <= 0.0:
            values[q], bounds[q] = 0.0, max(bounds[q], 0.0)
            continue
        for i in range(n):
            grad[lo + docs[start + i]] = -scale * own[start + i]
        for p in range(min(depth, n)):
            grad[lo + docs[start + kept[p]]] += scale * a[p]


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
