"""The hinge over pairs of documents: max(0, 1 - s_u + s_v) for u of a higher level than v.

Laid out as in `pairwise`.  Few pairs are gone through one by one.  Of many, documents are sorted by
score: a solver's scores change little from look to look, so that the order found before is nearly
right, and insertion mends it.  Then two pointers know for every u which v are within its margin:
in one sweep each way that keeps a sum a level, O(n levels); or while neighboring groups of
levels are merged, O(n log levels).
"""

from __future__ import annotations

from firstpage.kernels.compiler.decorators import subroutine, vector_kernel
from firstpage.kernels.sorting import sort_down
from firstpage.types import Array, Floats, Ints, Words

ONE_BY_ONE, SWEPT, MERGED = 0, 1, 2
MOVES = 6  # of a document on average, beyond which insertion gives up


@subroutine
def pair_row(
    z: Floats, below: Floats, slope: Floats, u: int, start: int, n: int, share: float
) -> float:
    """One u against all v from `start` on."""
    margin = 1.0 - z[u]
    total, value = 0.0, 0.0
    for v in range(start, n):
        t = margin + z[v]
        b = below[v] if t > 0.0 else 0.0
        total += b
        value += b * t
        slope[v] += share * b
    slope[u] -= share * total
    return share * value


@subroutine
def single_pairs(
    z: Floats, above: Floats, below: Floats, first: int, last: int, end: Ints, n: int,
    slope: Floats,
) -> float:  # fmt: skip
    """All pairs, one by one."""
    for i in range(n):
        slope[i] = 0.0
    value, start = 0.0, 0
    for level in range(first, last - 1):
        for u in range(start, end[level]):
            if above[u] > 0.0:
                value += pair_row(z, below, slope, u, end[level], n, above[u])
        start = end[level]
    return value


@subroutine
def merge_levels(
    z: Floats,
    above: Floats,
    below: Floats,
    run: Ints,
    lo: int,
    mid: int,
    hi: int,
    spare: Ints,
    slope: Floats,
) -> float:
    """Pairs of u in run[lo:mid] with v in run[mid:hi], both by falling score; merges the two."""
    value, weight, mass = 0.0, 0.0, 0.0
    at = mid
    for i in range(lo, mid):  # every v above z_u - 1 stays so for the lower u that follow
        u = run[i]
        while at < hi and z[run[at]] > z[u] - 1.0:
            weight += below[run[at]]
            mass += below[run[at]] * z[run[at]]
            at += 1
        value += above[u] * ((1.0 - z[u]) * weight + mass)
        slope[u] -= above[u] * weight
    weight = 0.0
    at = mid - 1
    for i in range(hi - 1, mid - 1, -1):  # the same upward, for the v
        v = run[i]
        while at >= lo and z[v] > z[run[at]] - 1.0:
            weight += above[run[at]]
            at -= 1
        slope[v] += below[v] * weight
    a, b = lo, mid
    for out in range(lo, hi):
        if a < mid and (b >= hi or z[run[a]] >= z[run[b]]):
            spare[out] = run[a]
            a += 1
        else:
            spare[out] = run[b]
            b += 1
    for out in range(lo, hi):
        run[out] = spare[out]
    return value


@subroutine
def mend_order(z: Floats, items: Ints, n: int) -> int:
    """Insertion sort of items[:n], nearly by falling z already; 0 if it takes too long."""
    left = MOVES * n
    for i in range(1, n):
        mine = items[i]
        key = z[mine]
        j = i - 1
        while j >= 0 and z[items[j]] < key:
            items[j + 1] = items[j]
            j -= 1
        items[j + 1] = mine
        left -= i - 1 - j
        if left < 0:
            return 0
    return 1


@subroutine
def in_order(
    z: Floats, above: Floats, below: Floats, level: Ints, items: Ints, n: int, rows: Floats,
    ranks: Ints,
) -> None:  # fmt: skip
    """Scores, weights and levels by falling score, side by side: sweeps read them in a line."""
    for i in range(n):
        at = items[i]
        rows[0, i], rows[1, i], rows[2, i] = z[at], above[at], below[at]
        ranks[i] = level[at]


@subroutine
def swept_pairs(
    rows: Floats, ranks: Ints, levels: int, items: Ints, n: int, weight: Floats, slope: Floats
) -> float:
    """All pairs, in a sweep down for the better and one up for the worse documents.

    `weight` holds, a level, the sum over the documents in reach that pair with it.  A pair of
    weight w within the margin has the value w - w s_u + w s_v: all together, the summed weight and
    the slopes times the scores.
    """
    z, above, below = rows[0], rows[1], rows[2]
    for k in range(levels):
        weight[k] = 0.0
    value, at = 0.0, 0
    for i in range(n):
        low = z[i] - 1.0
        while at < n and z[at] > low:
            b, rank = below[at], ranks[at]
            for k in range(levels):  # always all of them: no branch to guess
                weight[k] += b if k < rank else 0.0
            at += 1
        found = above[i] * weight[ranks[i]]
        value += found - found * z[i]
        slope[items[i]] = -found
    for k in range(levels):
        weight[k] = 0.0
    at = n - 1
    for i in range(n - 1, -1, -1):
        while at >= 0 and z[i] > z[at] - 1.0:  # as above, to the last bit
            a, rank = above[at], ranks[at]
            for k in range(levels):
                weight[k] += a if k > rank else 0.0
            at -= 1
        found = below[i] * weight[ranks[i]]
        value += found * z[i]
        slope[items[i]] += found
    return value


@subroutine
def merged_pairs(
    z: Floats,
    above: Floats,
    below: Floats,
    level: Ints,
    levels: int,
    items: Ints,
    n: int,
    starts: Ints,
    run: Ints,
    spare: Ints,
    slope: Floats,
) -> float:
    """All pairs, while groups of levels are merged; `starts` are the places of the levels."""
    for i in range(n):  # each level by falling score: items are so, and this is stable
        run[starts[level[items[i]]]] = items[i]
        starts[level[items[i]]] += 1
        slope[i] = 0.0
    for i in range(levels, 0, -1):
        starts[i] = starts[i - 1]
    starts[0] = 0
    value, width = 0.0, 1
    while width < levels:
        left = 0
        while left + width < levels:
            right = min(left + 2 * width, levels)
            value += merge_levels(
                z, above, below, run, starts[left], starts[left + width], starts[right],
                spare, slope,
            )  # fmt: skip
            left = right
        width *= 2
    return value


@vector_kernel
def pairwise_hinge(
    scores: Floats,
    order: Array,
    offsets: Ints,
    firsts: Ints,
    end: Ints,
    above: Floats,
    below: Floats,
    level_of: Ints,
    way: Ints,
    last_order: Ints,
    z: Floats,
    bits: Words,
    slope: Floats,
    sums: Floats,
    rows: Floats,
    ranks: Ints,
    starts: Ints,
    run: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
    values: Floats,
    grad: Floats,
) -> None:
    """Sum over pairs of max(0, 1 - s_u + s_v).  `bits` are the numbers of `z`, as words.

    In true order: `above` and `below` are what a document weighs as the better and as the worse
    one, `level_of` its level in the query; `way` says how to go through each query's pairs.
    `last_order` holds every query's documents by falling score, as of the run before.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        n, first, levels = hi - lo, firsts[q], firsts[q + 1] - firsts[q]
        if n == 0:
            values[q] = 0.0
            continue
        shift = scores[lo + order[hi - 1]]  # sums of products cancel less about 0
        for i in range(n):
            z[i] = scores[lo + order[lo + i]] - shift
        mine, its, ranked = above[lo:hi], below[lo:hi], level_of[lo:hi]
        if way[q] == ONE_BY_ONE:
            value = single_pairs(z, mine, its, first, first + levels, end, n, slope)
        else:
            items = last_order[lo:hi]
            if mend_order(z, items, n) == 0:
                sort_down(z, bits, 0, n, items, words, spare_words, spare)
            if way[q] == SWEPT:
                in_order(z, mine, its, ranked, items, n, rows, ranks)
                value = swept_pairs(rows, ranks, levels, items, n, sums, slope)
            else:
                starts[0] = 0
                for level in range(levels):
                    starts[level + 1] = end[first + level]
                value = merged_pairs(z, mine, its, ranked, levels, items, n, starts, run, spare,
                                     slope)  # fmt: skip
        values[q] = value
        for i in range(n):
            grad[lo + order[lo + i]] = slope[i]
