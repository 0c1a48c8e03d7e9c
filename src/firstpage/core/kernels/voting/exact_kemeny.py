"""The order of minimal Kemeny cost.

Let x > y mean that a majority ranks x before y.  Documents on common cycles of > form a strongly
connected component; between two components all majorities point in one direction, or are equal, so
components can be ordered independently, and the cheapest order of a component is found by dynamic
programming over its subsets (`extra` as in `kemeny`).
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import compiled_kernel, kernel, subroutine
from firstpage.core.kernels.voting.kemeny import (
    MIN_GAIN,
    ONE,
    ZERO,
    fill_extra,
    improve,
    mark_leads,
)
from firstpage.core.types import Floats, Ints, Words


@subroutine
def transitive_closure(beats: Words, n: int, words: int) -> None:
    """Replace the relation "leads" by its transitive closure, in place."""
    for via in range(n):
        for x in range(n):
            if beats[x * words + via // 64] >> np.uint64(via % 64) & ONE != ZERO:
                for w in range(words):
                    beats[x * words + w] |= beats[via * words + w]


@kernel
def components(
    ranks: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    extra: Floats,
    beats: Words,
    beaten: Words,
    first: Ints,
    above: Ints,
    rank: Ints,
) -> None:
    """Write the first member of each candidate's component, and the rank of this component.

    Components are ranked one after the other: of those that no remaining one leads, the one with
    the first member in base order.  "Leads" is transitive here; `above` is workspace, how many
    documents of remaining other components lead each candidate.
    """
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        words = (n + 63) // 64
        fill_extra(ranks, weights, lo, n, reach, extra)
        mark_leads(extra, n, words, beats, beaten)
        transitive_closure(beats, n, words)
        for x in range(n):
            first[lo + x], above[lo + x] = x, 0
            for y in range(n - 1, -1, -1):
                to_me = beats[y * words + x // 64] >> np.uint64(x % 64) & ONE != ZERO
                from_me = beats[x * words + y // 64] >> np.uint64(y % 64) & ONE != ZERO
                if to_me and from_me:
                    first[lo + x] = min(first[lo + x], y)
                elif to_me:
                    above[lo + x] += 1
        for x in range(n):
            rank[lo + x] = -1
        n_ranked, x = 0, 0
        while x < n:
            if rank[lo + x] >= 0 or above[lo + x] > 0 or first[lo + x] < x:
                x += 1
                continue
            for member in range(x, n):
                if first[lo + member] == x:
                    rank[lo + member] = n_ranked
                    for y in range(n):
                        above[lo + y] -= (
                            beats[member * words + y // 64] >> np.uint64(y % 64) & ONE != ZERO
                        )
            n_ranked += 1
            x = 0


@subroutine
def half_sums(extra: Floats, m: int, shift: int, count: int, sums: Floats) -> None:
    """Write sums[x << 11 | S]: the extra cost of x before the subset S of items shift .."""
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
    """Return the extra cost of x before all items of the subset `rest`."""
    return low[x << 11 | (rest & ((1 << cut) - 1))] + high[x << 11 | rest >> cut]


@subroutine
def subset_order(
    extra: Floats, m: int, low: Floats, high: Floats, best: Floats, order: Ints
) -> None:
    """Write the cheapest order of m <= 22 items; of equal ones, the lexicographically first.

    best[S] is the least extra cost of an order of the subset S, over all choices of its first item.
    """
    cut = m // 2
    half_sums(extra, m, 0, cut, low)
    half_sums(extra, m, cut, m - cut, high)
    best[0] = 0.0
    for s in range(1, 1 << m):
        min_cost = np.inf
        for x in range(m):
            if s >> x & 1:
                rest = s ^ (1 << x)
                min_cost = min(min_cost, best[rest] + first_cost(low, high, cut, x, rest))
        best[s] = min_cost
    remaining = (1 << m) - 1
    for i in range(m):
        for x in range(m):
            rest = remaining ^ (1 << x)
            if remaining >> x & 1:
                if best[rest] + first_cost(low, high, cut, x, rest) <= best[remaining] + MIN_GAIN:
                    order[i] = x
                    remaining = rest
                    break


@subroutine
def order_members(
    extra: Floats,
    n: int,
    members: Ints,
    limit: int,
    member_extra: Floats,
    low: Floats,
    high: Floats,
    best: Floats,
    member_order: Ints,
    workspace: Ints,
) -> None:
    """Order the members of a component in place: exactly, or by insertion if more than `limit`."""
    m = members.size
    for i in range(m):
        for j in range(m):
            member_extra[i * m + j] = extra[members[i] * n + members[j]]
    if m <= limit:
        subset_order(member_extra, m, low, high, best, member_order)
    else:
        for i in range(m):
            member_order[i] = i
        improve(member_extra, m, member_order, workspace)
    for i in range(m):
        workspace[i] = members[member_order[i]]
    for i in range(m):
        members[i] = workspace[i]


@compiled_kernel
def order_components(
    ranks: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    first: Ints,
    limit: int,
    extra: Floats,
    member_extra: Floats,
    low: Floats,
    high: Floats,
    best: Floats,
    member_order: Ints,
    workspace: Ints,
    order: Ints,
) -> None:
    """Order the members of each component, which are contiguous in `order`."""
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        fill_extra(ranks, weights, lo, n, reach, extra)
        start, end = lo, lo
        while start < lo + n:
            while end < lo + n and first[lo + order[end]] == first[lo + order[start]]:
                end += 1
            if end - start > 1:
                members = order[start:end]
                order_members(
                    extra, n, members, limit, member_extra, low, high, best, member_order, workspace
                )
            start = end
