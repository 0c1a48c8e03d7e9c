"""Votes of rankers on pairs of documents, and sorting by them.

`places[a, i]` is the place that ranker a gives candidate i among the candidates of its query,
0 the best, or ABSENT.  Ranker a votes x over y if it places x before y, x in the first `top`
places and y in the first `reach`.  A reach of ABSENT leaves out votes over documents that a
ranker does not list; with one more they count.  Candidates stand in base order, and are named by
their number in it.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import compiled_kernel, kernel, subroutine
from firstpage.types import Floats, Ints

ABSENT = 1 << 30  # the place of a document that a ranker does not list
CLOSE = 1e-12  # votes that differ by less are equal


@subroutine
def lead(places: Ints, weights: Floats, lo: int, x: int, y: int, top: int, reach: int) -> float:
    """The weight of the votes for x over y, less that of those for y over x."""
    above, below = 0.0, 0.0
    for a in range(weights.size):
        px, py = places[a, lo + x], places[a, lo + y]
        above += weights[a] * ((px < py) & (px < top) & (py < reach))
        below += weights[a] * ((py < px) & (py < top) & (px < reach))
    return above - below


@subroutine
def close_list(
    order: Ints,
    lo: int,
    start: int,
    end: int,
    before: int,
    pivot: int,
    spare: Ints,
    stack: Ints,
    open_: int,
) -> int:
    """Put the pivot and those in `spare` behind the `before` that lead it; note what is unsorted.

    Returns the number of lists on the stack.
    """
    middle = start + before
    order[lo + middle] = pivot
    for i in range(middle + 1, end):
        order[lo + i] = spare[i - middle - 1]
    if before > 1:
        stack[2 * open_], stack[2 * open_ + 1] = start, middle
        open_ += 1
    if end - middle > 2:
        stack[2 * open_], stack[2 * open_ + 1] = middle + 1, end
        open_ += 1
    return open_


@kernel
def majority_quick_sort(
    places: Ints,
    weights: Floats,
    offsets: Ints,
    top: Ints,
    reach: Ints,
    stack: Ints,
    spare: Ints,
    order: Ints,
) -> None:
    """Sort by majority, the pivot of a list being its first in base order.

    Those that lead the pivot go before it, all others after it, both in base order.  `stack`
    has room for two numbers a candidate of the longest query, `spare` for one.
    """
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        for i in range(n):
            order[lo + i] = i
        stack[0], stack[1] = 0, n
        open_ = 1 if n > 1 else 0
        while open_:
            open_ -= 1
            start, end = stack[2 * open_], stack[2 * open_ + 1]
            pivot = order[lo + start]
            before, after = 0, 0
            for i in range(start + 1, end):
                x = order[lo + i]
                if lead(places, weights, lo, x, pivot, top[q], reach[q]) > CLOSE:
                    order[lo + start + before] = x
                    before += 1
                else:
                    spare[after] = x
                    after += 1
            open_ = close_list(order, lo, start, end, before, pivot, spare, stack, open_)


@kernel
def local_kemenization(
    places: Ints, weights: Floats, offsets: Ints, top: Ints, reach: Ints, order: Ints
) -> None:
    """Carry every document up past neighbors that it leads: local Kemenization, in place."""
    for q in range(offsets.size - 1):
        lo = offsets[q]
        for i in range(lo + 1, offsets[q + 1]):
            x = order[i]
            j = i
            while j > lo and lead(places, weights, lo, x, order[j - 1], top[q], reach[q]) > CLOSE:
                order[j] = order[j - 1]
                j -= 1
            order[j] = x


@compiled_kernel
def copeland_scores(
    places: Ints, weights: Floats, offsets: Ints, top: Ints, reach: Ints, won: Floats
) -> None:
    """Duels won less duels lost, by majority, a candidate: Copeland's score."""
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        for x in range(n):
            won[lo + x] = 0.0
        for x in range(n):
            for y in range(x):
                by = lead(places, weights, lo, x, y, top[q], reach[q])
                win = np.float64(by > CLOSE) - np.float64(by < -CLOSE)
                won[lo + x] += win
                won[lo + y] -= win
