"""Hinges of NDCG, precision and average precision, and the rankings that they compare with."""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, subroutine
from firstpage.kernels.losses.slack import by_chords, by_golden_section, close_gap, ranking_at
from firstpage.kernels.sorting import sort_down
from firstpage.types import Array, Floats, Ints, Words

# --- average precision: the most violated ranking (Yue et al. 2007), exactly
#
# Relevant and other documents stand in the order of their scores; what is open is how they
# interleave.  The j-th other document gains, by going above relevant i, i+1, .. R, a sum with a
# closed form in harmonic numbers.  Whatever j, what it gains at each step falls with j: so the best
# places are monotone, and halving finds all of them in O((R + N) log N).


@subroutine
def step_gain(
    j: int, i: int, R: int, N: int, harmonic: Floats, tail: Floats, score: float
) -> float:
    """What the j-th other document (from 1) gains above relevant i .. R; i = R + 1: nothing.

    `harmonic[x]` is 1 + 1/2 + .. + 1/x, and `tail[i]` the summed score of relevant i .. R.
    """
    mine = j * (harmonic[j + R] - harmonic[j + i - 1])
    without = (j - 1) * (harmonic[j + R - 1] - harmonic[j + i - 2]) if j > 1 else 0.0
    moved = tail[i] - (R - i + 1) * score
    return (mine - without) / R - 2.0 * moved / (R * N)


@subroutine
def best_places(
    R: int, N: int, harmonic: Floats, tail: Floats, others: Floats, stack: Ints, place: Ints
) -> None:
    """place[j - 1]: the first relevant document (from 1) that the j-th other one goes above."""
    stack[0], stack[1], stack[2], stack[3] = 1, N, 1, R + 1
    depth = 1
    while depth > 0:
        depth -= 1
        at = 4 * depth
        low, high, first, last = stack[at], stack[at + 1], stack[at + 2], stack[at + 3]
        j = (low + high) // 2
        best, found = -1.0, last
        for i in range(last, first - 1, -1):
            gain = step_gain(j, i, R, N, harmonic, tail, others[j - 1])
            if i == last or gain > best:
                best, found = gain, i
        place[j - 1] = found
        if j > low:
            stack[at], stack[at + 1], stack[at + 2], stack[at + 3] = low, j - 1, first, found
            depth += 1
            at += 4
        if j < high:
            stack[at], stack[at + 1], stack[at + 2], stack[at + 3] = j + 1, high, found, last
            depth += 1


@subroutine
def average_precision_cut(
    z: Floats,
    items: Ints,
    size: int,
    relevant: int,
    harmonic: Floats,
    tail: Floats,
    others: Floats,
    who: Ints,
    stack: Ints,
    place: Ints,
    share: float,
    slope: Floats,
) -> float:
    """One cut: the first `relevant` of `size` documents, in true order, are relevant.

    `items` are all of them by falling score.  Adds share * slope, returns share * value.
    """
    R, N = relevant, size - relevant
    rel, non = 0, 0
    for at in range(size):
        if items[at] < relevant:
            who[rel] = items[at]
            rel += 1
        else:
            who[R + non] = items[at]
            others[non] = z[items[at]]
            non += 1
    tail[R + 1] = 0.0
    for i in range(R, 0, -1):
        tail[i] = tail[i + 1] + z[who[i - 1]]
    best_places(R, N, harmonic, tail, others, stack, place)
    value = 1.0
    above = 0  # others above the i-th relevant document
    for i in range(1, R + 1):
        while above < N and place[above] <= i:
            above += 1
        value -= float(i) / float(i + above) / R
        value -= 2.0 * above * z[who[i - 1]] / (R * N)
        slope[who[i - 1]] -= share * 2.0 * above / (R * N)
    for j in range(N):
        beaten = R - place[j] + 1
        value += 2.0 * beaten * others[j] / (R * N)
        slope[who[R + j]] += share * 2.0 * beaten / (R * N)
    return share * max(value, 0.0)


@kernel
def average_precision_hinge(
    scores: Floats,
    order: Array,
    offsets: Ints,
    firsts: Ints,
    levels: Ints,
    end: Ints,
    harmonic: Floats,
    z: Floats,
    bits: Words,
    tail: Floats,
    others: Floats,
    slope: Floats,
    items: Ints,
    who: Ints,
    stack: Ints,
    place: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
    values: Floats,
    grad: Floats,
) -> None:
    """max over rankings of 1 - AP + the score it has above the true one's; the mean over cuts.

    Of each query the first `levels` levels take part; every boundary between two of them is a cut,
    relevant above and not below.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        for i in range(lo, hi):
            grad[i] = 0.0
        values[q] = 0.0
        count = levels[q]
        if count < 2:
            continue
        size = end[firsts[q] + count - 1]
        shift = scores[lo + order[lo]]
        for i in range(size):
            z[i] = scores[lo + order[lo + i]] - shift
            slope[i] = 0.0
        sort_down(z, bits, 0, size, items, words, spare_words, spare)
        share = 1.0 / (count - 1)
        for cut in range(count - 1):
            values[q] += average_precision_cut(
                z, items, size, end[firsts[q] + cut], harmonic, tail, others, who, stack, place,
                share, slope,
            )  # fmt: skip
        for i in range(size):
            grad[lo + order[lo + i]] = slope[i]


# --- NDCG and precision


MARGIN, CHORDS, GOLDEN_SECTION = 0, 1, 2


@subroutine
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


@subroutine
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
def best_reference(
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
