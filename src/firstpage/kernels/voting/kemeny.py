"""Kemeny's cost: what the rankers' votes lose in an order; and searches for a cheap one.

`extra[x * n + y]` is what it costs more to put x before y than y before x: the votes for y over x,
less those for x over y.  So an order costs half of (all votes + the sum of `extra` over its
pairs), and no order costs less than half of (all votes - the sum of |extra|).
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import compiled_kernel, kernel, subroutine
from firstpage.kernels.hashing import STEP, bounded, mix
from firstpage.kernels.voting.votes import ABSENT, CLOSE, close_list
from firstpage.types import Floats, Ints, Words

GAIN = 1e-9  # a move must be worth more than rounding
ONE, ZERO = np.uint64(1), np.uint64(0)


@subroutine
def fill_extra(places: Ints, weights: Floats, lo: int, n: int, reach: int, extra: Floats) -> float:
    """Fill the table of one query, all votes counted; returns their weight."""
    for i in range(n * n):
        extra[i] = 0.0
    total = 0.0
    for a in range(weights.size):
        weight = weights[a]
        listed = 0
        for x in range(n):
            px = places[a, lo + x]
            listed += px < ABSENT
            row = x * n
            for y in range(x + 1, n):
                py = places[a, lo + y]
                under = weight if (py < px) & (px < reach) else 0.0
                over = weight if (px < py) & (py < reach) else 0.0
                extra[row + y] += under - over
        pairs = listed * (listed - 1) // 2
        if reach > ABSENT:
            pairs += listed * (n - listed)
        total += weight * pairs
    for x in range(n):
        for y in range(x):
            extra[x * n + y] = -extra[y * n + x]
    return total


@subroutine
def order_extra(extra: Floats, n: int, order: Ints, lo: int) -> float:
    """The sum of `extra` over the pairs of an order."""
    total = 0.0
    for i in range(n):
        row = order[lo + i] * n
        for j in range(i + 1, n):
            total += extra[row + order[lo + j]]
    return total


@kernel
def order_costs(
    places: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    order: Ints,
    extra: Floats,
    costs: Floats,
) -> None:
    """The cost of each query's order."""
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        total = fill_extra(places, weights, lo, n, reach, extra)
        costs[q] = 0.5 * (total + order_extra(extra, n, order, lo))


@subroutine
def mark_leads(extra: Floats, n: int, words: int, beats: Words, beaten: Words) -> None:
    """Bits of those whom each document leads, and of those who lead it."""
    for i in range(n * words):
        beats[i] = ZERO
        beaten[i] = ZERO
    for x in range(n):
        for y in range(n):
            if extra[x * n + y] < -CLOSE:
                beats[x * words + y // 64] |= ONE << np.uint64(y % 64)
                beaten[y * words + x // 64] |= ONE << np.uint64(x % 64)


@subroutine
def pay(
    extra: Floats, n: int, words: int, beats: Words, beaten: Words, x: int, y: int, price: float
) -> None:
    """Take `price` from the lead of x over y; a lead that is used up is no lead."""
    extra[x * n + y] += price
    extra[y * n + x] -= price
    if extra[x * n + y] >= -CLOSE:
        beats[x * words + y // 64] &= ~(ONE << np.uint64(y % 64))
        beaten[y * words + x // 64] &= ~(ONE << np.uint64(x % 64))


@subroutine
def pack_cycles(extra: Floats, n: int, words: int, beats: Words, beaten: Words) -> float:
    """What circles of three must cost beyond the lesser sides; uses the table up.

    An order contradicts at least one lead of every circle x > y > z > x.  Circles are taken as
    they come, each for the least of its three leads, which are lessened by as much.
    """
    mark_leads(extra, n, words, beats, beaten)
    found = 0.0
    for x in range(n):
        for y in range(n):
            for w in range(words):
                while extra[x * n + y] < -CLOSE:
                    both = beats[y * words + w] & beaten[x * words + w]
                    if both == ZERO:
                        break
                    z = 64 * w
                    while both & ONE == ZERO:
                        both = both >> ONE
                        z += 1
                    price = -max(extra[x * n + y], extra[y * n + z], extra[z * n + x])
                    found += price
                    pay(extra, n, words, beats, beaten, x, y, price)
                    pay(extra, n, words, beats, beaten, y, z, price)
                    pay(extra, n, words, beats, beaten, z, x, price)
    return found


@kernel
def cost_bounds(
    places: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    cycles: int,
    extra: Floats,
    beats: Words,
    beaten: Words,
    bounds: Floats,
) -> None:
    """What no order of a query can cost less than: the lesser side of every pair, and circles."""
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        total = fill_extra(places, weights, lo, n, reach, extra)
        leads = 0.0
        for i in range(n * n):
            leads += abs(extra[i])
        bounds[q] = 0.5 * (total - 0.5 * leads)
        if cycles:
            bounds[q] += pack_cycles(extra, n, (n + 63) // 64, beats, beaten)


# --- searching


@subroutine
def best_place(extra: Floats, n: int, order: Ints, at: int) -> int:
    """The place to which moving the document at `at` saves most; `at` if nothing is saved."""
    row = order[at] * n
    best, where = -GAIN, at
    change = 0.0
    for j in range(at - 1, -1, -1):
        change += extra[row + order[j]]
        if change < best:
            best, where = change, j
    change = 0.0
    for j in range(at + 1, n):
        change -= extra[row + order[j]]
        if change < best:
            best, where = change, j
    return where


@subroutine
def improve(extra: Floats, n: int, order: Ints, place: Ints) -> None:
    """Move documents to their best places, one after the other, until no move saves anything."""
    for i in range(n):
        place[order[i]] = i
    x, content = 0, 0
    while content < n:
        at = place[x]
        to = best_place(extra, n, order, at)
        content += 1
        if to != at:
            step = 1 if to > at else -1
            for j in range(at, to, step):
                order[j] = order[j + step]
                place[order[j]] = j
            order[to], place[x] = x, to
            content = 0
        x = x + 1 if x + 1 < n else 0


@compiled_kernel
def best_insertion(
    places: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    starts: Ints,
    extra: Floats,
    trial: Ints,
    place: Ints,
    order: Ints,
) -> None:
    """Improve every row of `starts` (one order each) and keep the cheapest, the first of equals."""
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        fill_extra(places, weights, lo, n, reach, extra)
        least = np.inf
        for s in range(starts.shape[0]):
            for i in range(n):
                trial[i] = starts[s, lo + i]
            improve(extra, n, trial, place)
            cost = order_extra(extra, n, trial, 0)
            if cost < least - GAIN:
                least = cost
                for i in range(n):
                    order[lo + i] = trial[i]


@subroutine
def random_sort(
    extra: Floats, n: int, order: Ints, spare: Ints, stack: Ints, state: np.uint64
) -> np.uint64:
    """Quick sort by majority with random pivots; equals keep base order.  Returns the new state."""
    for i in range(n):
        order[i] = i
    stack[0], stack[1] = 0, n
    open_ = 1 if n > 1 else 0
    while open_:
        open_ -= 1
        start, end = stack[2 * open_], stack[2 * open_ + 1]
        state = state + STEP
        pivot = order[start + bounded(mix(state), end - start)]
        before, after = 0, 0
        for i in range(start, end):
            x = order[i]
            by = extra[x * n + pivot]
            if by < -CLOSE or (by <= CLOSE and x < pivot):
                order[start + before] = x
                before += 1
            elif x != pivot:
                spare[after] = x
                after += 1
        open_ = close_list(order, np.int64(0), start, end, before, pivot, spare, stack, open_)
    return state


@compiled_kernel
def kwik_sort(
    places: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    seeds: Words,
    repeats: int,
    extra: Floats,
    trial: Ints,
    spare: Ints,
    stack: Ints,
    order: Ints,
) -> None:
    """The cheapest of several random quick sorts, each query from its own seed."""
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        fill_extra(places, weights, lo, n, reach, extra)
        state, least = seeds[q], np.inf
        for _ in range(repeats):
            state = random_sort(extra, n, trial, spare, stack, state)
            cost = order_extra(extra, n, trial, 0)
            if cost < least - GAIN:
                least = cost
                for i in range(n):
                    order[lo + i] = trial[i]
