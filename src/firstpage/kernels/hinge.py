"""The hinge over pairs of documents: max(0, 1 - s_u + s_v) for u of a higher level than v.

Laid out as in `pairwise`.  Few pairs are gone through one by one, which vectors of the CPU do
well; of many, documents are sorted by score once, and neighbouring groups of levels are merged:
while merging, two pointers know for every u which v are within its margin.  O(n log n).
"""

from __future__ import annotations

from firstpage.kernels.native import part, vector_kernel
from firstpage.kernels.pairwise import gather
from firstpage.kernels.sorting import sort_down
from firstpage.types import Array, Floats, Ints, Words

MANY = 100  # pairs a document from which on sorting is the shorter way


@part
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


@part
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


@part
def sorted_pairs(
    z: Floats,
    bits: Words,
    above: Floats,
    below: Floats,
    n: int,
    first: int,
    last: int,
    end: Ints,
    starts: Ints,
    run: Ints,
    items: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
    slope: Floats,
) -> float:
    """All pairs of a query whose scores stand in true order in z[:n]."""
    for i in range(n):
        z[i] -= z[n - 1]  # sums of products cancel less about 0
    sort_down(z, bits, 0, n, items, words, spare_words, spare)
    levels = last - first
    starts[0] = 0
    for level in range(levels):
        starts[level + 1] = end[first + level]
        for i in range(starts[level], starts[level + 1]):
            spare[i] = level
    for i in range(n):  # each level by falling score: the sorted order is stable under this
        level = spare[items[i]]
        run[starts[level]] = items[i]
        starts[level] += 1
    for level in range(levels, 0, -1):
        starts[level] = starts[level - 1]
    starts[0] = 0
    value = 0.0
    width = 1
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
def hinge_pairs(
    scores: Floats,
    order: Array,
    weight: Floats,
    offsets: Ints,
    firsts: Ints,
    end: Ints,
    upper: Floats,
    lower: Floats,
    z: Floats,
    bits: Words,
    above: Floats,
    below: Floats,
    slope: Floats,
    starts: Ints,
    run: Ints,
    items: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
    values: Floats,
    grad: Floats,
) -> None:
    """Sum over pairs of max(0, 1 - s_u + s_v).  `bits` are the numbers of `z`, as words."""
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        first, last = firsts[q], firsts[q + 1]
        gather(scores, order, weight, lo, first, last, end, lower, z, below, slope)
        start, pairs = 0, 0
        for level in range(first, last):
            for u in range(start, end[level]):
                above[u] = upper[level] * weight[lo + u]
                pairs += (n - end[level]) * (above[u] > 0.0)
            start = end[level]
        value = 0.0
        if pairs > MANY * n:
            value = sorted_pairs(
                z, bits, above, below, n, first, last, end, starts, run, items, words,
                spare_words, spare, slope,
            )  # fmt: skip
        else:
            start = 0
            for level in range(first, last - 1):
                for u in range(start, end[level]):
                    if above[u] > 0.0:
                        value += pair_row(z, below, slope, u, end[level], n, above[u])
                start = end[level]
        values[q] = value
        for i in range(n):
            grad[lo + order[lo + i]] = slope[i]
