"""Rankings that score high and lose much: loss-augmented inference for NDCG and precision.

A ranking has the score sum of a_p * s over places p, and the loss 1 - sum of a_p * b (Delta),
with discounts a and gains b.  For a weight `lam` the ranking of greatest score + lam * Delta is
the order of s - lam * b (rearrangement).  Rankings without loss are no constraints: where the
order has Delta = 0 the best of those with a loss is one transposition away.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.native import part
from firstpage.kernels.sorting import sort_down
from firstpage.types import Floats, Ints, Words

NOTHING = 1e-12  # a Delta below it is rounding
Query = tuple[Floats, Floats, Floats, int, int]
"""(scores, gains, discounts, number of documents, number of discounts)"""
Room = tuple[Floats, Words, Ints, Words, Words, Ints, Floats]
"""(keys, the same as words, the ranking found, three for sorting, its Delta and score)"""


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
                # The same partner; unless one is nearer that has the next place's discount.
                while r < after and r < depth and a[r] == a[p + 1] and b[items[r]] == b[items[p]]:
                    r += 1
                if r >= depth or a[r] != a[p + 1]:
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
def delta_of(query: Query, items: Ints) -> float:
    """1 less what the ranking collects."""
    _, b, a, n, depth = query
    gain = 0.0
    for p in range(min(depth, n)):
        gain += a[p] * b[items[p]]
    return 1.0 - gain


@part
def ranking_at(lam: float, query: Query, room: Room) -> int:
    """The ranking with a loss of greatest score + lam * Delta, into the room; 0: there is none.

    Its Delta and its score are written into the last array of the room.
    """
    z, b, a, n, depth = query
    key, bits, items, words, spare_words, spare, found = room
    for i in range(n):
        key[i] = z[i] - lam * b[i]
    sort_down(key, bits, 0, n, items, words, spare_words, spare)
    delta = delta_of(query, items)
    if delta <= NOTHING:
        p, r = cheapest_swap(key, b, a, items, n, depth)
        if p < 0:
            return 0
        items[p], items[r] = items[r], items[p]
        delta = delta_of(query, items)
        if delta <= NOTHING:
            return 0
    score = 0.0
    for p in range(min(depth, n)):
        score += a[p] * z[items[p]]
    found[0], found[1] = delta, score
    return 1
