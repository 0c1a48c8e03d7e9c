"""The cheapest order of all, by Kemeny's cost.

Take x > y for "a majority puts x before y".  Documents that lie on common circles of > form a
component; between two components all majorities point one way, or are equal, so the components
can be ordered for themselves, and the cheapest order of one is found over its subsets (`extra` as
in `kemeny`).
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import compiled_kernel, kernel, subroutine
from firstpage.kernels.voting.kemeny import GAIN, ONE, ZERO, fill_extra, improve, mark_leads
from firstpage.types import Floats, Ints, Words


@subroutine
def close_over(beats: Words, n: int, words: int) -> None:
    """From "leads" to "leads over others": transitive closure, in place."""
    for via in range(n):
        for x in range(n):
            if beats[x * words + via // 64] >> np.uint64(via % 64) & ONE != ZERO:
                for w in range(words):
                    beats[x * words + w] |= beats[via * words + w]


@kernel
def components(
    places: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    extra: Floats,
    beats: Words,
    beaten: Words,
    first: Ints,
    above: Ints,
) -> None:
    """For each candidate the first of its component, and how many outside it lead it, over others.

    A component that leads another has fewer above it: `above` orders the components.
    """
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        words = (n + 63) // 64
        fill_extra(places, weights, lo, n, reach, extra)
        mark_leads(extra, n, words, beats, beaten)
        close_over(beats, n, words)
        for x in range(n):
            first[lo + x], above[lo + x] = x, 0
            for y in range(n - 1, -1, -1):
                to_me = beats[y * words + x // 64] >> np.uint64(x % 64) & ONE != ZERO
                from_me = beats[x * words + y // 64] >> np.uint64(y % 64) & ONE != ZERO
                if to_me and from_me:
                    first[lo + x] = min(first[lo + x], y)
                elif to_me:
                    above[lo + x] += 1


@subroutine
def half_sums(extra: Floats, m: int, shift: int, count: int, sums: Floats) -> None:
    """sums[x << 11 | S]: the extra cost of x before the subset S of items shift, shift + 1, .."""
    for x in range(m):
        base = x << 11
        sums[base] = 0.0
        for i in range(count):
            half = 1 << i
            value = extra[x * m + shift + i]
            for s in range(half):
                sums[base + half + s] = sums[base + s] + value


@subroutine
def first_cost(low: Floats, high: Floats, cut: int, x: int, rest: int) -> float:
    """The extra cost of x before all of the subset `rest`."""
    return low[x << 11 | (rest & ((1 << cut) - 1))] + high[x << 11 | rest >> cut]


@subroutine
def subset_order(
    extra: Floats, m: int, low: Floats, high: Floats, best: Floats, order: Ints
) -> None:
    """The cheapest order of m <= 22 items; of equal ones that with the least first item, and so on.

    best[S] is the least extra cost of ordering the subset S: of all choices of its first item.
    """
    cut = m // 2
    half_sums(extra, m, 0, cut, low)
    half_sums(extra, m, cut, m - cut, high)
    best[0] = 0.0
    for s in range(1, 1 << m):
        least = np.inf
        for x in range(m):
            if s >> x & 1:
                rest = s ^ (1 << x)
                least = min(least, best[rest] + first_cost(low, high, cut, x, rest))
        best[s] = least
    left = (1 << m) - 1
    for i in range(m):
        for x in range(m):
            rest = left ^ (1 << x)
            if left >> x & 1:
                if best[rest] + first_cost(low, high, cut, x, rest) <= best[left] + GAIN:
                    order[i] = x
                    left = rest
                    break


@subroutine
def order_members(
    extra: Floats,
    n: int,
    members: Ints,
    limit: int,
    inside: Floats,
    low: Floats,
    high: Floats,
    best: Floats,
    spare: Ints,
    place: Ints,
) -> None:
    """Order the members of one component, in place: exactly, or above `limit` by insertion."""
    m = members.size
    for i in range(m):
        for j in range(m):
            inside[i * m + j] = extra[members[i] * n + members[j]]
    if m <= limit:
        subset_order(inside, m, low, high, best, spare)
    else:
        for i in range(m):
            spare[i] = i
        improve(inside, m, spare, place)
    for i in range(m):
        place[i] = members[spare[i]]
    for i in range(m):
        members[i] = place[i]


@compiled_kernel
def order_components(
    places: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    first: Ints,
    limit: int,
    extra: Floats,
    inside: Floats,
    low: Floats,
    high: Floats,
    best: Floats,
    spare: Ints,
    place: Ints,
    order: Ints,
) -> None:
    """Order the members of each component, which stand together in `order`."""
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        fill_extra(places, weights, lo, n, reach, extra)
        start, end = lo, lo
        while start < lo + n:
            while end < lo + n and first[lo + order[end]] == first[lo + order[start]]:
                end += 1
            if end - start > 1:
                members = order[start:end]
                order_members(extra, n, members, limit, inside, low, high, best, spare, place)
            start = end
