"""Rankings that score high and lose much: loss-augmented inference for NDCG and precision.

A ranking has the score sum of a_p * s over places p, and the loss 1 - sum of a_p * b (Delta),
with discounts a and gains b.  For a weight `lam` the ranking of greatest score + lam * Delta is
the order of s - lam * b (rearrangement).  Rankings without loss are no constraints: where the
order has Delta = 0 the best of those with a loss is one transposition away.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.native import kernel, part
from firstpage.kernels.sorting import sort_down
from firstpage.types import Array, Floats, Ints, Words

NOTHING = 1e-12  # a Delta below it is rounding
GOLDEN = 0.6180339887498949
TURNS = 60
SHORT = 24  # documents of a list in which single exchanges are tried


@part
def cheapest_swap(
    key: Floats, b: Floats, a: Floats, items: Ints, n: int, depth: int
) -> tuple[int, int]:
    """The two places whose exchange gives a loss and costs the least; (-1, -1): there are none.

    The order is ideal, so of places p < r only those matter where r is the first after p with
    another gain and a smaller discount.  Places from `depth` on have no discount.
    """
    best, first, second = np.inf, -1, -1
    after = -1  # the partner of the place looked at before, one further down
    for p in range(min(depth, n) - 1, -1, -1):
        r = p + 1
        while r < n and r < depth and a[r] == a[p]:
            r += 1
        if r < n and b[items[r]] == b[items[p]]:
            if after > r and b[items[p + 1]] == b[items[p]]:
                r = after
            while r < n and b[items[r]] == b[items[p]]:
                r += 1
        after = r
        if r >= n:
            continue
        drop = a[p] - (a[r] if r < depth else 0.0)
        cost = drop * (key[items[p]] - key[items[r]])
        if cost < best:
            best, first, second = cost, p, r
    return first, second


@part
def ranking_at(
    lam: float,
    z: Floats,
    b: Floats,
    a: Floats,
    n: int,
    depth: int,
    key: Floats,
    bits: Words,
    items: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
    found: Floats,
) -> int:
    """The ranking with a loss of greatest score + lam * Delta, into items; 0: there is none.

    found[0] becomes its Delta, found[1] its score.
    """
    for i in range(n):
        key[i] = z[i] - lam * b[i]
    sort_down(key, bits, 0, n, items, words, spare_words, spare)
    gain = 0.0
    for p in range(min(depth, n)):
        gain += a[p] * b[items[p]]
    if 1.0 - gain <= NOTHING:
        p, r = cheapest_swap(key, b, a, items, n, depth)
        if p < 0:
            return 0
        items[p], items[r] = items[r], items[p]
        gain = 0.0
        for t in range(min(depth, n)):
            gain += a[t] * b[items[t]]
        if 1.0 - gain <= NOTHING:
            return 0
    score = 0.0
    for p in range(min(depth, n)):
        score += a[p] * z[items[p]]
    found[0], found[1] = 1.0 - gain, score
    return 1


@part
def keep_better(found: Floats, own: float, items: Ints, n: int, best: Floats, kept: Ints) -> None:
    """Remember the visited ranking with the greatest Delta * (1 + score - own); larger Delta."""
    value = found[0] * (1.0 + found[1] - own)
    if value > best[0] or (value == best[0] and found[0] > best[1]):
        best[0], best[1] = value, found[0]
        for i in range(n):
            kept[i] = items[i]


@part
def polish(z: Floats, b: Floats, a: Floats, n: int, depth: int, best: Floats, kept: Ints) -> None:
    """Exchange two documents of the best ranking as long as its product rises.

    Corners of the chain lie close together in long lists; between those of a short one there may
    be a better ranking that no weight finds.
    """
    for _ in range(n):
        delta = best[1]
        scored = best[0] / delta  # 1 + score - own
        top, first, second = best[0] * (1.0 + 1e-12), -1, -1
        for p in range(min(depth, n)):
            for r in range(p + 1, n):
                drop = a[p] - (a[r] if r < depth else 0.0)
                f = delta + drop * (b[kept[p]] - b[kept[r]])
                g = scored - drop * (z[kept[p]] - z[kept[r]])
                if f > NOTHING and f * g > top:
                    top, first, second = f * g, p, r
        if first < 0:
            break
        drop = a[first] - (a[second] if second < depth else 0.0)
        best[0], best[1] = top, delta + drop * (b[kept[first]] - b[kept[second]])
        kept[first], kept[second] = kept[second], kept[first]


@part
def edge_top(f0: float, g0: float, f1: float, g1: float) -> float:
    """The greatest product of the two coordinates between two points."""
    df, dg = f1 - f0, g1 - g0
    top = max(f0 * g0, f1 * g1)
    if df * dg < 0.0:
        t = -(f0 * dg + g0 * df) / (2.0 * df * dg)
        if 0.0 < t < 1.0:
            top = max(top, (f0 + t * df) * (g0 + t * dg))
    return top


@part
def widest(z: Floats, b: Floats, n: int) -> float:
    """A weight from which on gains alone decide."""
    low, high, gap = z[0], z[0], np.inf
    least, most = b[0], b[0]
    for i in range(n):
        low, high = min(low, z[i]), max(high, z[i])
        least, most = min(least, b[i]), max(most, b[i])
    for i in range(n):
        if b[i] > least:
            gap = min(gap, b[i] - least)
    gap = min(gap, 1e-3 * (most - least)) if gap < np.inf else 1.0
    return 1.0 + 2.0 * (high - low) / gap


@part
def by_chords(
    own: float,
    z: Floats,
    b: Floats,
    a: Floats,
    n: int,
    depth: int,
    key: Floats,
    bits: Words,
    items: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
    found: Floats,
    best: Floats,
    kept: Ints,
) -> float:
    """Slack scaling: the best product Delta * (1 + score - own) over the rankings that some weight
    finds; returns a bound above that of any ranking.

    Those rankings are corners of a convex chain, from the greatest score (weight 0) to the
    greatest loss.  A chord between two corners names the next weight to try; the product rises
    along the chain as long as the weight is below (1 + score - own) / Delta.
    """
    best[0], best[1] = 0.0, 0.0
    if ranking_at(0.0, z, b, a, n, depth, key, bits, items, words, spare_words, spare, found) == 0:
        return 0.0
    keep_better(found, own, items, n, best, kept)
    f0, g0 = found[0], 1.0 + found[1] - own
    if g0 <= 0.0:
        return 0.0  # no ranking scores within the margin
    far = widest(z, b, n)
    ranking_at(far, z, b, a, n, depth, key, bits, items, words, spare_words, spare, found)
    keep_better(found, own, items, n, best, kept)
    f1, g1 = found[0], 1.0 + found[1] - own
    for _ in range(TURNS):
        if f1 - f0 <= NOTHING or g0 - g1 <= NOTHING:
            break
        lam = (g0 - g1) / (f1 - f0)
        ranking_at(lam, z, b, a, n, depth, key, bits, items, words, spare_words, spare, found)
        keep_better(found, own, items, n, best, kept)
        f, g = found[0], 1.0 + found[1] - own
        if g + lam * f <= g0 + lam * f0 + 1e-12 * (1.0 + abs(g0) + lam):
            break  # the chord is an edge
        if lam * f < g:
            f0, g0 = f, g
        else:
            f1, g1 = f, g
    return max(edge_top(f0, g0, f1, g1), best[0])


@part
def by_golden_section(
    own: float,
    z: Floats,
    b: Floats,
    a: Floats,
    n: int,
    depth: int,
    key: Floats,
    bits: Words,
    items: Ints,
    words: Words,
    spare_words: Words,
    spare: Ints,
    found: Floats,
    best: Floats,
    kept: Ints,
) -> float:
    """The same by the paper's search: minimise F(lam) = max(score + lam Delta) - 2 sqrt(xi lam).

    xi, the slack so far, is the best product seen; it is raised until it stays.
    """
    best[0], best[1] = 0.0, 0.0
    for lam in (0.0, 1.0):
        if (
            ranking_at(lam, z, b, a, n, depth, key, bits, items, words, spare_words, spare, found)
            == 0
        ):
            return 0.0
        keep_better(found, own, items, n, best, kept)
    for _ in range(3):
        xi = best[0]
        if xi <= NOTHING:
            break
        low, high = np.log(xi), np.log(xi) + 2.0 * np.log(1e4)
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right = np.inf, np.inf
        fresh = 0  # 0: both points are new, 1: the left, 2: the right
        while high - low > 1e-3:
            if fresh != 2:
                lam = np.exp(left)
                ranking_at(
                    lam, z, b, a, n, depth, key, bits, items, words, spare_words, spare, found
                )
                keep_better(found, own, items, n, best, kept)
                at_left = found[1] + lam * found[0] - 2.0 * np.sqrt(xi * lam)
            if fresh != 1:
                lam = np.exp(right)
                ranking_at(
                    lam, z, b, a, n, depth, key, bits, items, words, spare_words, spare, found
                )
                keep_better(found, own, items, n, best, kept)
                at_right = found[1] + lam * found[0] - 2.0 * np.sqrt(xi * lam)
            if at_left < at_right:
                high, right, at_right = right, left, at_left
                left = high - GOLDEN * (high - low)
                fresh = 1
            else:
                low, left, at_left = left, right, at_right
                right = low + GOLDEN * (high - low)
                fresh = 2
        if best[0] <= xi * (1.0 + 1e-6):
            break
    return best[0]


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
