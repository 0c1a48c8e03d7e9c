"""Votes of rankers on pairs of documents, and sorting by them.

`ranks[a, i]` is the rank that ranker a gives candidate i among the candidates of its query, 0 being
the best, or ABSENT.  Ranker a votes x over y if it ranks x before y, x in the first `top` ranks and
y in the first `reach`.  A reach of ABSENT excludes votes over documents that a ranker does not
list; ABSENT + 1 includes them.  Candidates are in base order, and are identified by their index in
it.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import compiled_kernel, kernel, subroutine
from firstpage.core.types import Floats, Ints

ABSENT = 1 << 30  # the rank of a document that a ranker does not list
VOTE_TOLERANCE = 1e-12  # votes that differ by less are equal


@subroutine
def lead(ranks: Ints, weights: Floats, lo: int, x: int, y: int, top: int, reach: int) -> float:
    """Return the weight of the votes for x over y, minus that of the votes for y over x."""
    votes_for, votes_against = 0.0, 0.0
    for a in range(weights.size):
        px, py = ranks[a, lo + x], ranks[a, lo + y]
        votes_for += weights[a] * ((px < py) & (px < top) & (py < reach))
        votes_against += weights[a] * ((py < px) & (py < top) & (px < reach))
    return votes_for - votes_against


@subroutine
def partition_list(
    order: Ints,
    lo: int,
    start: int,
    end: int,
    n_before: int,
    pivot: int,
    after: Ints,
    stack: Ints,
    n_open: int,
) -> int:
    """Append the pivot and the items of `after` to the `n_before` ones that lead the pivot.

    Unsorted sublists are pushed on the stack; returns the number of lists on it.
    """
    middle = start + n_before
    order[lo + middle] = pivot
    for i in range(middle + 1, end):
        order[lo + i] = after[i - middle - 1]
    if n_before > 1:
        stack[2 * n_open], stack[2 * n_open + 1] = start, middle
        n_open += 1
    if end - middle > 2:
        stack[2 * n_open], stack[2 * n_open + 1] = middle + 1, end
        n_open += 1
    return n_open


@kernel
def majority_quick_sort(
    ranks: Ints,
    weights: Floats,
    offsets: Ints,
    top: Ints,
    reach: Ints,
    stack: Ints,
    workspace: Ints,
    order: Ints,
) -> None:
    """Sort by majority with quick sort; the pivot of a list is its first item in base order.

    Items that lead the pivot go before it, all others after it, both in base order.  `stack` holds
    two numbers per candidate of the longest query, `workspace` one.
    """
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        for i in range(n):
            order[lo + i] = i
        stack[0], stack[1] = 0, n
        n_open = 1 if n > 1 else 0
        while n_open:
            n_open -= 1
            start, end = stack[2 * n_open], stack[2 * n_open + 1]
            pivot = order[lo + start]
            n_before, n_after = 0, 0
            for i in range(start + 1, end):
                x = order[lo + i]
                if (
                    lead(ranks, weights, lo, x, y=pivot, top=top[q], reach=reach[q])
                    > VOTE_TOLERANCE
                ):
                    order[lo + start + n_before] = x
                    n_before += 1
                else:
                    workspace[n_after] = x
                    n_after += 1
            n_open = partition_list(
                order, lo, start, end, n_before, pivot, after=workspace, stack=stack, n_open=n_open
            )


@subroutine
def partial_lead(
    ranks: Ints,
    weights: Floats,
    complete: Ints,
    discounts: Floats,
    least: float,
    lo: int,
    q: int,
    x: int,
    y: int,
    top: int,
    depth: int,
) -> float:
    """Return the votes for x over y minus those for y over x, where lists may be partial.

    A complete list votes as in `lead`.  In a partial one, a listed document beats one that is not
    listed by the discount of its rank.  It beats a listed one by the difference of the discounts,
    or by `least` times its own discount, whichever is greater.  Winners are in the first `top`
    ranks of a complete list, and the first `depth` of a partial one.
    """
    votes_for, votes_against = 0.0, 0.0
    absent = discounts.size - 1
    for a in range(weights.size):
        px, py = ranks[a, lo + x], ranks[a, lo + y]
        if complete[a, q]:
            votes_for += weights[a] * ((px < py) & (px < top))
            votes_against += weights[a] * ((py < px) & (py < top))
        elif px != py:
            first = min(px, py)
            if first < depth:
                discount = discounts[first]
                other = discounts[min(max(px, py), absent)]
                vote = weights[a] * (
                    max(discount - other, least * discount) if other > 0.0 else discount
                )
                votes_for += vote if px < py else 0.0
                votes_against += vote if py < px else 0.0
    return votes_for - votes_against


@kernel
def partial_quick_sort(
    ranks: Ints,
    weights: Floats,
    offsets: Ints,
    complete: Ints,
    discounts: Floats,
    least: float,
    top: Ints,
    depth: Ints,
    stack: Ints,
    workspace: Ints,
    order: Ints,
) -> None:
    """Sort as `majority_quick_sort`, by the votes of `partial_lead`.

    `complete[a, q]` is 1 if ranker a lists every candidate of query q.  `discounts` has one number
    per rank of the longest query, and a last one, 0, for documents that are not listed.
    """
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        for i in range(n):
            order[lo + i] = i
        stack[0], stack[1] = 0, n
        n_open = 1 if n > 1 else 0
        while n_open:
            n_open -= 1
            start, end = stack[2 * n_open], stack[2 * n_open + 1]
            pivot = order[lo + start]
            n_before, n_after = 0, 0
            for i in range(start + 1, end):
                x = order[lo + i]
                margin = partial_lead(
                    ranks=ranks,
                    weights=weights,
                    complete=complete,
                    discounts=discounts,
                    least=least,
                    lo=lo,
                    q=q,
                    x=x,
                    y=pivot,
                    top=top[q],
                    depth=depth[q],
                )
                if margin > VOTE_TOLERANCE:
                    order[lo + start + n_before] = x
                    n_before += 1
                else:
                    workspace[n_after] = x
                    n_after += 1
            n_open = partition_list(
                order, lo, start, end, n_before, pivot, after=workspace, stack=stack, n_open=n_open
            )


@kernel
def local_kemenization(
    ranks: Ints, weights: Floats, offsets: Ints, top: Ints, reach: Ints, order: Ints
) -> None:
    """Move every document up past neighbors that it leads: local Kemenization, in place."""
    for q in range(offsets.size - 1):
        lo = offsets[q]
        for i in range(lo + 1, offsets[q + 1]):
            x = order[i]
            j = i
            while (
                j > lo
                and lead(ranks, weights, lo, x, y=order[j - 1], top=top[q], reach=reach[q])
                > VOTE_TOLERANCE
            ):
                order[j] = order[j - 1]
                j -= 1
            order[j] = x


@compiled_kernel
def copeland_scores(
    ranks: Ints, weights: Floats, offsets: Ints, top: Ints, reach: Ints, scores: Floats
) -> None:
    """Write the Copeland score of each candidate: majority duels won minus duels lost."""
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        for x in range(n):
            scores[lo + x] = 0.0
        for x in range(n):
            for y in range(x):
                margin = lead(
                    ranks=ranks, weights=weights, lo=lo, x=x, y=y, top=top[q], reach=reach[q]
                )
                result = np.float64(margin > VOTE_TOLERANCE) - np.float64(margin < -VOTE_TOLERANCE)
                scores[lo + x] += result
                scores[lo + y] -= result
