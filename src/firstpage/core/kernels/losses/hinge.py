"""The pairwise hinge loss: max(0, 1 - s_u + s_v) for u of a higher level than v.

Arguments are laid out as in `pairwise`.  Few pairs are enumerated.  For many, documents are sorted
by score: a solver's scores change little between evaluations, so that the previous order is nearly
sorted, and insertion sort is fast.  Then two pointers find for every u the v within its margin:
either in one sweep in each direction with one sum per level, O(n levels), or while neighboring
groups of levels are merged, O(n log levels).
"""

from __future__ import annotations

from firstpage.core.kernels.compiler.decorators import subroutine, vector_kernel
from firstpage.core.kernels.sorting import sort_down
from firstpage.core.types import Array, Floats, Ints, Words

ENUMERATE, SWEEP, MERGE = 0, 1, 2
MAX_MOVES = 6  # per document on average, beyond which insertion sort gives up


@subroutine
def pair_row(
    z: Floats,
    lower_weight: Floats,
    grad_sorted: Floats,
    u: int,
    start: int,
    n: int,
    pair_weight: float,
) -> float:
    """Add the pairs of u with all v from `start` on; return their loss."""
    margin = 1.0 - z[u]
    total, value = 0.0, 0.0
    for v in range(start, n):
        t = margin + z[v]
        w = lower_weight[v] if t > 0.0 else 0.0
        total += w
        value += w * t
        grad_sorted[v] += pair_weight * w
    grad_sorted[u] -= pair_weight * total
    return pair_weight * value


@subroutine
def enumerate_pairs(
    z: Floats,
    upper_weight: Floats,
    lower_weight: Floats,
    first: int,
    last: int,
    end: Ints,
    n: int,
    grad_sorted: Floats,
) -> float:
    """Return the loss of all pairs, and write its gradient, by enumeration."""
    for i in range(n):
        grad_sorted[i] = 0.0
    value, start = 0.0, 0
    for level in range(first, last - 1):
        for u in range(start, end[level]):
            if upper_weight[u] > 0.0:
                value += pair_row(
                    z,
                    lower_weight,
                    grad_sorted,
                    u,
                    start=end[level],
                    n=n,
                    pair_weight=upper_weight[u],
                )
        start = end[level]
    return value


@subroutine
def merge_levels(
    z: Floats,
    upper_weight: Floats,
    lower_weight: Floats,
    run: Ints,
    lo: int,
    mid: int,
    hi: int,
    workspace: Ints,
    grad_sorted: Floats,
) -> float:
    """Add the pairs of u in run[lo:mid] with v in run[mid:hi], and merge the two runs.

    Both runs are in descending order of score.
    """
    value, weight, weighted_score = 0.0, 0.0, 0.0
    at = mid
    for i in range(lo, mid):  # a v above z_u - 1 is also above that of the following u
        u = run[i]
        while at < hi and z[run[at]] > z[u] - 1.0:
            weight += lower_weight[run[at]]
            weighted_score += lower_weight[run[at]] * z[run[at]]
            at += 1
        value += upper_weight[u] * ((1.0 - z[u]) * weight + weighted_score)
        grad_sorted[u] -= upper_weight[u] * weight
    weight = 0.0
    at = mid - 1
    for i in range(hi - 1, mid - 1, -1):  # the same in ascending order, for the v
        v = run[i]
        while at >= lo and z[v] > z[run[at]] - 1.0:
            weight += upper_weight[run[at]]
            at -= 1
        grad_sorted[v] += lower_weight[v] * weight
    a, b = lo, mid
    for out in range(lo, hi):
        if a < mid and (b >= hi or z[run[a]] >= z[run[b]]):
            workspace[out] = run[a]
            a += 1
        else:
            workspace[out] = run[b]
            b += 1
    for out in range(lo, hi):
        run[out] = workspace[out]
    return value


@subroutine
def restore_order(z: Floats, items: Ints, n: int) -> int:
    """Sort items[:n], nearly sorted by descending z, by insertion; return 0 if too slow."""
    moves_left = MAX_MOVES * n
    for i in range(1, n):
        item = items[i]
        key = z[item]
        j = i - 1
        while j >= 0 and z[items[j]] < key:
            items[j + 1] = items[j]
            j -= 1
        items[j + 1] = item
        moves_left -= i - 1 - j
        if moves_left < 0:
            return 0
    return 1


@subroutine
def copy_sorted(
    z: Floats,
    upper_weight: Floats,
    lower_weight: Floats,
    level: Ints,
    items: Ints,
    n: int,
    rows: Floats,
    ranks: Ints,
) -> None:
    """Copy scores, weights and levels in descending order of score, for sequential access."""
    for i in range(n):
        item = items[i]
        rows[0, i], rows[1, i], rows[2, i] = z[item], upper_weight[item], lower_weight[item]
        ranks[i] = level[item]


@subroutine
def sweep_pairs(
    rows: Floats, ranks: Ints, levels: int, items: Ints, n: int, weight: Floats, grad_sorted: Floats
) -> float:
    """Return the loss of all pairs, by a descending sweep for the u and an ascending one for the v.

    `weight` holds, per level, the sum over the documents within the margin that pair with it.  A
    pair of weight w within the margin has the loss w - w s_u + w s_v: in total, the summed weight
    plus the gradient times the scores.
    """
    z, upper_weight, lower_weight = rows[0], rows[1], rows[2]
    for k in range(levels):
        weight[k] = 0.0
    value, at = 0.0, 0
    for i in range(n):
        margin = z[i] - 1.0
        while at < n and z[at] > margin:
            b, rank = lower_weight[at], ranks[at]
            for k in range(levels):  # all levels, without a branch
                weight[k] += b if k < rank else 0.0
            at += 1
        active = upper_weight[i] * weight[ranks[i]]
        value += active - active * z[i]
        grad_sorted[items[i]] = -active
    for k in range(levels):
        weight[k] = 0.0
    at = n - 1
    for i in range(n - 1, -1, -1):
        while at >= 0 and z[i] > z[at] - 1.0:  # the same comparison as above, to the last bit
            a, rank = upper_weight[at], ranks[at]
            for k in range(levels):
                weight[k] += a if k > rank else 0.0
            at -= 1
        active = lower_weight[i] * weight[ranks[i]]
        value += active * z[i]
        grad_sorted[items[i]] += active
    return value


@subroutine
def merge_pairs(
    z: Floats,
    upper_weight: Floats,
    lower_weight: Floats,
    level: Ints,
    levels: int,
    items: Ints,
    n: int,
    starts: Ints,
    run: Ints,
    workspace: Ints,
    grad_sorted: Floats,
) -> float:
    """Return the loss of all pairs by merging groups of levels; `starts` are their positions."""
    for i in range(n):  # each level in descending order of score, since items are sorted
        run[starts[level[items[i]]]] = items[i]
        starts[level[items[i]]] += 1
        grad_sorted[i] = 0.0
    for i in range(levels, 0, -1):
        starts[i] = starts[i - 1]
    starts[0] = 0
    value, width = 0.0, 1
    while width < levels:
        left = 0
        while left + width < levels:
            right = min(left + 2 * width, levels)
            value += merge_levels(
                z,
                upper_weight,
                lower_weight,
                run,
                lo=starts[left],
                mid=starts[left + width],
                hi=starts[right],
                workspace=workspace,
                grad_sorted=grad_sorted,
            )
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
    upper_weight: Floats,
    lower_weight: Floats,
    level_of: Ints,
    method: Ints,
    last_order: Ints,
    z: Floats,
    bits: Words,
    grad_sorted: Floats,
    sums: Floats,
    rows: Floats,
    ranks: Ints,
    starts: Ints,
    run: Ints,
    words: Words,
    word_workspace: Words,
    workspace: Ints,
    values: Floats,
    grad: Floats,
) -> None:
    """Write the sum over pairs of max(0, 1 - s_u + s_v), and its gradient.

    `bits` is a view of `z` as words.  In true order, `upper_weight` and `lower_weight` are the
    weights of a document as the better and as the worse one of a pair, `level_of` is its level
    within the query; `method` is the algorithm for each query.  `last_order` holds every query's
    documents in descending order of score, as of the previous call.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        n, first, levels = hi - lo, firsts[q], firsts[q + 1] - firsts[q]
        if n == 0:
            values[q] = 0.0
            continue
        shift = scores[lo + order[hi - 1]]  # reduces cancellation in sums of products
        for i in range(n):
            z[i] = scores[lo + order[lo + i]] - shift
        upper, lower, levels_of = upper_weight[lo:hi], lower_weight[lo:hi], level_of[lo:hi]
        if method[q] == ENUMERATE:
            value = enumerate_pairs(
                z,
                upper_weight=upper,
                lower_weight=lower,
                first=first,
                last=first + levels,
                end=end,
                n=n,
                grad_sorted=grad_sorted,
            )
        else:
            items = last_order[lo:hi]
            if restore_order(z, items, n) == 0:
                sort_down(
                    scores=z,
                    bits=bits,
                    lo=0,
                    hi=n,
                    items=items,
                    words=words,
                    word_workspace=word_workspace,
                    workspace=workspace,
                )
            if method[q] == SWEEP:
                copy_sorted(
                    z,
                    upper_weight=upper,
                    lower_weight=lower,
                    level=levels_of,
                    items=items,
                    n=n,
                    rows=rows,
                    ranks=ranks,
                )
                value = sweep_pairs(
                    rows, ranks, levels, items, n, weight=sums, grad_sorted=grad_sorted
                )
            else:
                starts[0] = 0
                for level in range(levels):
                    starts[level + 1] = end[first + level]
                value = merge_pairs(
                    z,
                    upper_weight=upper,
                    lower_weight=lower,
                    level=levels_of,
                    levels=levels,
                    items=items,
                    n=n,
                    starts=starts,
                    run=run,
                    workspace=workspace,
                    grad_sorted=grad_sorted,
                )
        values[q] = value
        for i in range(n):
            grad[lo + order[lo + i]] = grad_sorted[i]
