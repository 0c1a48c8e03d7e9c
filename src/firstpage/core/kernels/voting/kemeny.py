"""Kemeny cost: the weight of the votes that an order contradicts; and searches for a cheap order.

`extra[x * n + y]` is the cost of x before y minus the cost of y before x: the votes for y over x
minus those for x over y.  So an order costs half of (all votes + the sum of `extra` over its
pairs), and no order costs less than half of (all votes - the sum of |extra|).
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import compiled_kernel, kernel, subroutine
from firstpage.core.kernels.hashing import STEP, bounded, mix
from firstpage.core.kernels.voting.votes import ABSENT, VOTE_TOLERANCE, partition_list
from firstpage.core.types import Floats, Ints, Words

MIN_GAIN = 1e-9  # a move must save more than rounding error
ONE, ZERO = np.uint64(1), np.uint64(0)


@subroutine
def fill_extra(ranks: Ints, weights: Floats, lo: int, n: int, reach: int, extra: Floats) -> float:
    """Fill the table of one query from all votes; return their weight."""
    for i in range(n * n):
        extra[i] = 0.0
    total = 0.0
    for a in range(weights.size):
        weight = weights[a]
        listed = 0
        for x in range(n):
            rank_x = ranks[a, lo + x]
            listed += rank_x < ABSENT
            row = x * n
            for y in range(x + 1, n):
                rank_y = ranks[a, lo + y]
                against = weight if (rank_y < rank_x) & (rank_x < reach) else 0.0
                votes_for = weight if (rank_x < rank_y) & (rank_y < reach) else 0.0
                extra[row + y] += against - votes_for
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
    """Return the sum of `extra` over the pairs of an order."""
    total = 0.0
    for i in range(n):
        row = order[lo + i] * n
        for j in range(i + 1, n):
            total += extra[row + order[lo + j]]
    return total


@kernel
def order_costs(
    ranks: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    order: Ints,
    extra: Floats,
    costs: Floats,
) -> None:
    """Write the cost of each query's order."""
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        total = fill_extra(ranks, weights, lo, n, reach, extra)
        costs[q] = 0.5 * (total + order_extra(extra, n, order, lo))


@subroutine
def mark_leads(extra: Floats, n: int, words: int, beats: Words, beaten: Words) -> None:
    """Set the bits of the documents that each document leads, and of those that lead it."""
    for i in range(n * words):
        beats[i] = ZERO
        beaten[i] = ZERO
    for x in range(n):
        for y in range(n):
            if extra[x * n + y] < -VOTE_TOLERANCE:
                beats[x * words + y // 64] |= ONE << np.uint64(y % 64)
                beaten[y * words + x // 64] |= ONE << np.uint64(x % 64)


@subroutine
def reduce_lead(
    extra: Floats, n: int, words: int, beats: Words, beaten: Words, x: int, y: int, amount: float
) -> None:
    """Reduce the lead of x over y by `amount`; clear its bits when it reaches 0."""
    extra[x * n + y] += amount
    extra[y * n + x] -= amount
    if extra[x * n + y] >= -VOTE_TOLERANCE:
        beats[x * words + y // 64] &= ~(ONE << np.uint64(y % 64))
        beaten[y * words + x // 64] &= ~(ONE << np.uint64(x % 64))


@subroutine
def pack_cycles(extra: Floats, n: int, words: int, beats: Words, beaten: Words) -> float:
    """Return the cost of packed 3-cycles beyond the sum of minority votes; overwrites the table.

    An order contradicts at least one lead of every cycle x > y > z > x.  Cycles are packed
    greedily, each with the smallest of its three leads, which are reduced by that amount.
    """
    mark_leads(extra, n, words, beats, beaten)
    total = 0.0
    for x in range(n):
        for y in range(n):
            for w in range(words):
                while extra[x * n + y] < -VOTE_TOLERANCE:
                    candidates = beats[y * words + w] & beaten[x * words + w]
                    if candidates == ZERO:
                        break
                    z = 64 * w
                    while candidates & ONE == ZERO:
                        candidates = candidates >> ONE
                        z += 1
                    amount = -max(extra[x * n + y], extra[y * n + z], extra[z * n + x])
                    total += amount
                    reduce_lead(extra, n, words, beats, beaten, x, y, amount)
                    reduce_lead(extra, n, words, beats, beaten, x=y, y=z, amount=amount)
                    reduce_lead(extra, n, words, beats, beaten, x=z, y=x, amount=amount)
    return total


@kernel
def cost_bounds(
    ranks: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    cycles: int,
    extra: Floats,
    beats: Words,
    beaten: Words,
    bounds: Floats,
    ties: Ints,
) -> None:
    """Write a lower bound on the cost of any order: the minority of every pair, plus 3-cycles.

    `ties` gets the number of pairs with as many votes for one order as for the other.
    """
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        total = fill_extra(ranks, weights, lo, n, reach, extra)
        leads, n_ties = 0.0, -n
        for i in range(n * n):
            leads += abs(extra[i])
            n_ties += abs(extra[i]) <= VOTE_TOLERANCE
        ties[q] = n_ties // 2
        bounds[q] = 0.5 * (total - 0.5 * leads)
        if cycles:
            bounds[q] += pack_cycles(extra, n, (n + 63) // 64, beats, beaten)


# --- search


@subroutine
def best_position_for(extra: Floats, n: int, order: Ints, at: int) -> int:
    """Return the position to which moving the document at `at` saves most, or `at`."""
    row = order[at] * n
    best, best_position = -MIN_GAIN, at
    cost = 0.0
    for j in range(at - 1, -1, -1):
        cost += extra[row + order[j]]
        if cost < best:
            best, best_position = cost, j
    cost = 0.0
    for j in range(at + 1, n):
        cost -= extra[row + order[j]]
        if cost < best:
            best, best_position = cost, j
    return best_position


@subroutine
def improve(extra: Floats, n: int, order: Ints, position: Ints) -> None:
    """Move documents to their best positions, one after the other, until no move saves cost."""
    for i in range(n):
        position[order[i]] = i
    x, unmoved = 0, 0
    while unmoved < n:
        at = position[x]
        target = best_position_for(extra, n, order, at)
        unmoved += 1
        if target != at:
            step = 1 if target > at else -1
            for j in range(at, target, step):
                order[j] = order[j + step]
                position[order[j]] = j
            order[target], position[x] = x, target
            unmoved = 0
        x = x + 1 if x + 1 < n else 0


@subroutine
def settle_ties(extra: Floats, n: int, order: Ints) -> None:
    """Move every document up past neighbors that it is tied with and precedes in base order."""
    for i in range(1, n):
        x, j = order[i], i
        while j > 0 and x < order[j - 1] and abs(extra[x * n + order[j - 1]]) <= VOTE_TOLERANCE:
            order[j] = order[j - 1]
            j -= 1
        order[j] = x


@subroutine
def comes_first(trial: Ints, order: Ints, lo: int, n: int) -> bool:
    """Return whether `trial` is lexicographically before the order of a query."""
    for i in range(n):
        if trial[i] != order[lo + i]:
            return trial[i] < order[lo + i]
    return False


@compiled_kernel
def best_insertion(
    ranks: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    starts: Ints,
    extra: Floats,
    trial: Ints,
    position: Ints,
    order: Ints,
) -> None:
    """Improve each order in the rows of `starts`; write the cheapest.

    Ties of votes are decided by base order, and so are ties of cost.
    """
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        fill_extra(ranks, weights, lo, n, reach, extra)
        min_cost = np.inf
        for s in range(starts.shape[0]):
            for i in range(n):
                trial[i] = starts[s, lo + i]
            improve(extra, n, trial, position)
            settle_ties(extra, n, trial)
            cost = order_extra(extra, n, trial, 0)
            equal = abs(cost - min_cost) <= MIN_GAIN and comes_first(trial, order, lo, n)
            if equal or cost < min_cost - MIN_GAIN:
                min_cost = cost
                for i in range(n):
                    order[lo + i] = trial[i]


@subroutine
def random_sort(
    extra: Floats, n: int, order: Ints, workspace: Ints, stack: Ints, state: np.uint64
) -> np.uint64:
    """Sort by majority with random pivots; equal items keep base order.  Return the new state."""
    for i in range(n):
        order[i] = i
    stack[0], stack[1] = 0, n
    n_open = 1 if n > 1 else 0
    while n_open:
        n_open -= 1
        start, end = stack[2 * n_open], stack[2 * n_open + 1]
        state = state + STEP
        pivot = order[start + bounded(mix(state), end - start)]
        n_before, n_after = 0, 0
        for i in range(start, end):
            x = order[i]
            margin = extra[x * n + pivot]
            if margin < -VOTE_TOLERANCE or (margin <= VOTE_TOLERANCE and x < pivot):
                order[start + n_before] = x
                n_before += 1
            elif x != pivot:
                workspace[n_after] = x
                n_after += 1
        n_open = partition_list(
            order=order,
            lo=np.int64(0),
            start=start,
            end=end,
            n_before=n_before,
            pivot=pivot,
            after=workspace,
            stack=stack,
            n_open=n_open,
        )
    return state


@compiled_kernel
def kwik_sort(
    ranks: Ints,
    weights: Floats,
    offsets: Ints,
    reach: int,
    seeds: Words,
    repeats: int,
    extra: Floats,
    trial: Ints,
    workspace: Ints,
    stack: Ints,
    order: Ints,
) -> None:
    """Write the cheapest of several random quick sorts, each query from its own seed."""
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        fill_extra(ranks, weights, lo, n, reach, extra)
        state, min_cost = seeds[q], np.inf
        for _ in range(repeats):
            state = random_sort(extra, n, trial, workspace, stack, state)
            cost = order_extra(extra, n, trial, 0)
            if cost < min_cost - MIN_GAIN:
                min_cost = cost
                for i in range(n):
                    order[lo + i] = trial[i]
