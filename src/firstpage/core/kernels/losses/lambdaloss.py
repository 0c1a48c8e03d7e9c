"""Pairwise logistic losses whose weights are changes of a measure at the current ranks.

Measures have the kinds of `plrank`.  Documents of equal score form a block, and those of a block
with equal gain a group: their order is random, and all weights are means over it.  Blocks, groups
and ranks of a query are counted from 0.

If u at rank i and v at rank j > i exchange their ranks, the measure changes by
scale * (gain_u - gain_v) times

    w = sum over ranks r of i+1 .. j of (discount[r - 1] - discount[r]) * state[r]

where state[r] is that of the documents above rank r, without u.  It is linear in the states, so its
mean over the orders of ties needs only their means.  For a cascade that is the mean product of
1 - gain over all subsets of a block of a given size; for precision it is linear in that size.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.losses.plrank import ADDITIVE, CASCADE, PRECISION, TABLE
from firstpage.core.kernels.sorting import merge_items, sort_down
from firstpage.core.types import Floats, Ints, Words

LAMBDARANK, LOSS2, LOSS2PP = 0, 1, 2  # variants


@subroutine
def group_documents(
    scores: Floats,
    gains: Floats,
    lo: int,
    n: int,
    items: Ints,
    workspace: Ints,
    blocks: Ints,
    groups: Ints,
    block_groups: Ints,
) -> int:
    """Sort the documents of each block by gain, and write where blocks and groups begin.

    `items` are rows in descending order of score.  Block b has the ranks blocks[b]:blocks[b + 1]
    and the groups block_groups[b]:block_groups[b + 1], group g the ranks groups[g]:groups[g + 1].
    Returns the number of blocks.
    """
    block, group, start = 0, 0, 0
    for i in range(1, n + 1):
        if i < n and scores[items[i]] == scores[items[start]]:
            continue
        if i - start > 1:
            merge_items(gains, items, start, i, workspace)
        blocks[block] = start
        block_groups[block] = group
        for j in range(start, i):
            if j == start or gains[items[j]] != gains[items[j - 1]]:
                groups[group] = j
                group += 1
        block += 1
        start = i
    blocks[block] = n
    block_groups[block] = group
    groups[group] = n
    return block


@subroutine
def state_means(
    kind: int,
    gains: Floats,
    items: Ints,
    groups: Ints,
    first: int,
    last: int,
    without: int,
    without_too: int,
    size: int,
    means: Floats,
) -> float:
    """Write the mean state after p documents of a block, where the state above it is 1.

    One document of the groups `without` and `without_too` is left out (-1: of none).  The block has
    the groups first:last, and means[p] is written for p up to `size`.  Returns the mean gain of its
    documents, which for precision is the mean change of the state per document.
    """
    total, count = 0.0, 0
    means[0] = 1.0
    for p in range(1, size + 1):
        means[p] = 0.0 if kind == CASCADE else 1.0
    for g in range(first, last):
        gain = gains[items[groups[g]]]
        copies = groups[g + 1] - groups[g]
        copies -= (1 if g == without else 0) + (1 if g == without_too else 0)
        for _ in range(copies):
            count += 1
            total += gain
            if kind == CASCADE:
                for p in range(min(count, size), 0, -1):
                    fraction = p / count  # of the subsets of this size that contain the document
                    means[p] = (1.0 - fraction) * means[p] + fraction * (1.0 - gain) * means[p - 1]
    return total / max(count, 1)


@subroutine
def discount_step(discount: Floats, rank: int) -> float:
    """Return discount[rank - 1] - discount[rank]; ranks beyond the end have the discount 0."""
    above = discount[rank - 1] if rank - 1 < discount.size else 0.0
    return above - (discount[rank] if rank < discount.size else 0.0)


@subroutine
def within_block(
    kind: int, discount: Floats, a: int, m: int, state: float, q: float, means: Floats
) -> float:
    """Return the mean of w over all ranks of two documents of a block of m, which begins at a."""
    total = 0.0
    for r in range(a + 1, min(a + m - 1, discount.size) + 1):
        p = r - a - 1
        mean = state * means[p] + (p * q if kind == PRECISION else 0.0)
        total += (r - a) * (a + m - r) * discount_step(discount, r) * mean
    return total / (0.5 * m * (m - 1))


@subroutine
def rank_difference_sum(doubles: Floats, a: int, a_last: int, b: int, b_last: int) -> float:
    """Return the sum of weight[j - i] over i in a..a_last and j in b..b_last, a_last < b.

    doubles[x + 1] is the sum of the cumulative sums of the weights up to x.
    """
    outer = doubles[b_last - a + 1] - doubles[b_last - a_last]
    return outer - (doubles[b - a] - doubles[b - 1 - a_last])


@subroutine
def state_below(
    kind: int,
    state: float,
    gains: Floats,
    items: Ints,
    groups: Ints,
    first: int,
    last: int,
    without: int,
) -> float:
    """Return the state below the groups first:last; one document of `without` is left out."""
    for h in range(first, last):
        part = groups[h + 1] - groups[h] - (1 if h == without else 0)
        if kind == PRECISION:
            state += part * gains[items[groups[h]]]
        elif kind == CASCADE:
            state *= (1.0 - gains[items[groups[h]]]) ** part
    return state


@subroutine
def mean_table_row(table: Floats, b: int, start: int, m: int, rows: Floats) -> None:
    """Write the mean row of the table over the ranks of a block of m, which begins at `start`."""
    for c in range(table.shape[1]):
        total = 0.0
        for r in range(start, min(start + m, table.shape[0])):
            total += table[r, c]
        rows[b, c] = total / m


@subroutine
def block_sums(
    kind: int,
    discount: Floats,
    gains: Floats,
    items: Ints,
    groups: Ints,
    b: int,
    start: int,
    m: int,
    first: int,
    last: int,
    half: int,
    means: Floats,
    passing: Floats,
    leaving: Floats,
    entering: Floats,
) -> None:
    """Write the parts of w that depend on one block alone, and on each of its groups.

    `passing` (per block), `leaving` and `entering` (per group) hold the parts of w: those of ranks
    between both documents, and in their own blocks; the second half of each is the part that does
    not depend on the state above.
    """
    depth = discount.size
    size = min(m, depth - start)
    mean = state_means(
        kind, gains, items, groups, first, last, without=-1, without_too=-1, size=size, means=means
    )
    passing[b], passing[half + b] = 0.0, 0.0
    for p in range(1, size + 1):
        step = discount_step(discount, start + p)
        passing[b] += step * means[p]
        passing[half + b] += step * p * mean if kind == PRECISION else 0.0
    for g in range(first, last):
        size = min(m - 1, depth - start)
        mean = state_means(
            kind,
            gains,
            items,
            groups,
            first,
            last,
            without=g,
            without_too=-1,
            size=size,
            means=means,
        )
        leaving[g], leaving[half + g] = 0.0, 0.0
        entering[g], entering[half + g] = 0.0, 0.0
        for p in range(min(m, depth - start)):
            step = (p + 1) * discount_step(discount, start + p + 1) / m
            leaving[g] += step * means[p]
            leaving[half + g] += step * p * mean if kind == PRECISION else 0.0
        for p in range(1, size + 1):
            step = (m - p) * discount_step(discount, start + p) / m
            entering[g] += step * means[p]
            entering[half + g] += step * p * mean if kind == PRECISION else 0.0


@subroutine
def add_pairs_within(
    kind: int,
    variant: int,
    mu: float,
    discount: Floats,
    doubles: Floats,
    gains: Floats,
    items: Ints,
    groups: Ints,
    g: int,
    first: int,
    last: int,
    start: int,
    m: int,
    counted: int,
    above: float,
    half: int,
    inner_row: Floats,
    means: Floats,
    sums: Floats,
    value: float,
) -> float:
    """Add the pairs of group g with the groups below it in its block; return the value with them.

    `counted` is the last rank of the block that counts, `above` the state above the block.
    """
    gain, copies = gains[items[groups[g]]], groups[g + 1] - groups[g]
    for h in range(g + 1, last):
        other, other_copies = gains[items[groups[h]]], groups[h + 1] - groups[h]
        weight = 0.0
        if kind == TABLE:
            weight = abs(inner_row[int(gain)] - inner_row[int(other)])
        else:
            if variant != LOSS2:
                size = min(m - 2, discount.size - start)
                mean = state_means(
                    kind,
                    gains,
                    items,
                    groups,
                    first,
                    last,
                    without=g,
                    without_too=h,
                    size=size,
                    means=means,
                )
                weight = abs(
                    within_block(kind, discount, a=start, m=m, state=above, q=mean, means=means)
                )
            if variant != LAMBDARANK:
                total = doubles[m] - doubles[m - (counted - start + 1)]
                difference = total / (0.5 * m * (m - 1))
                weight += difference if variant == LOSS2 else mu * difference
            weight *= gain - other
        value += weight * copies * other_copies * np.log(2.0)
        sums[g] -= 0.5 * weight * other_copies
        sums[h] += 0.5 * weight * copies
        sums[half + g] += 0.25 * weight * other_copies
        sums[half + h] += 0.25 * weight * copies
    return value


@subroutine
def add_pairs_below(
    kind: int,
    variant: int,
    mu: float,
    scores: Floats,
    doubles: Floats,
    gains: Floats,
    items: Ints,
    blocks: Ints,
    groups: Ints,
    block_groups: Ints,
    b: int,
    g: int,
    count: int,
    reach: int,
    counted: int,
    above: float,
    half: int,
    passing: Floats,
    leaving: Floats,
    entering: Floats,
    rows: Floats,
    sums: Floats,
    value: float,
) -> float:
    """Add the pairs of group g of block b with all blocks below; return the value with them.

    `counted` is the last rank of block b that counts, `above` the state above the block; blocks
    from `reach` on begin at ranks that do not count.
    """
    start, m = blocks[b], blocks[b + 1] - blocks[b]
    s = scores[items[start]]
    gain, copies = gains[items[groups[g]]], groups[g + 1] - groups[g]
    # The state above the next block, without the document of this one.
    state = state_below(
        kind,
        state=above,
        gains=gains,
        items=items,
        groups=groups,
        first=block_groups[b],
        last=block_groups[b + 1],
        without=g,
    )
    passed = 0.0
    if kind != TABLE:
        passed = above * leaving[g] + leaving[half + g]
    for t in range(b + 1, count):
        pairs = block_groups[t + 1] - block_groups[t] > 1 or gains[items[blocks[t]]] != gain
        x = s - scores[items[blocks[t]]]
        small = np.exp(-x) if pairs else 0.0  # not needed for equal gains
        softplus, upper = np.log1p(small) if pairs else 0.0, small / (1.0 + small)
        bend = upper * (1.0 - upper)
        difference = 0.0
        if variant != LAMBDARANK:
            size = m * (blocks[t + 1] - blocks[t])
            total = rank_difference_sum(doubles, start, counted, blocks[t], blocks[t + 1] - 1)
            difference = total / size
        for h in range(block_groups[t], block_groups[t + 1]):
            other, other_copies = gains[items[groups[h]]], groups[h + 1] - groups[h]
            if other == gain:
                continue
            weight = 0.0
            if kind == TABLE:
                u, v = int(gain), int(other)
                weight = rows[b, u] - rows[b, v]
                weight = abs(weight - (rows[t, u] - rows[t, v] if t < reach else 0.0))
            else:
                if variant != LOSS2:
                    weight = passed
                    if t < reach:
                        weight += state * entering[h] + entering[half + h]
                    weight = abs(weight)
                if variant != LAMBDARANK:
                    weight += difference if variant == LOSS2 else mu * difference
                weight *= abs(gain - other)
            # The derivative of the loss: of the better document -p, of the other p.
            p = upper if gain > other else upper - 1.0
            loss = softplus if gain > other else x + softplus
            value += weight * loss * copies * other_copies
            sums[g] -= weight * p * other_copies
            sums[h] += weight * p * copies
            sums[half + g] += weight * bend * other_copies
            sums[half + h] += weight * bend * copies
        if t < reach and kind != TABLE:
            passed += state * passing[t] + passing[half + t]
            if kind != ADDITIVE:
                state = state_below(
                    kind,
                    state,
                    gains,
                    items,
                    groups,
                    first=block_groups[t],
                    last=block_groups[t + 1],
                    without=-1,
                )
    return value


@subroutine
def write_query(
    items: Ints,
    groups: Ints,
    count: int,
    half: int,
    scale: float,
    sums: Floats,
    grad: Floats,
    curvature: Floats,
) -> None:
    """Write the gradient and the curvature of the documents of `count` groups."""
    for g in range(count):
        for r in range(groups[g], groups[g + 1]):
            grad[items[r]] = scale * sums[g]
            if curvature.size > 0:
                curvature[items[r]] = scale * sums[half + g]


@kernel
def lambda_loss(
    scores: Floats,
    bits: Words,
    gains: Floats,
    offsets: Ints,
    kind: int,
    variant: int,
    mu: float,
    discount: Floats,
    table: Floats,
    doubles: Floats,
    scale: Floats,
    items: Ints,
    words: Words,
    word_workspace: Words,
    workspace: Ints,
    blocks: Ints,
    groups: Ints,
    block_groups: Ints,
    means: Floats,
    passing: Floats,
    leaving: Floats,
    entering: Floats,
    rows: Floats,
    inner_row: Floats,
    sums: Floats,
    values: Floats,
    grad: Floats,
    curvature: Floats,
) -> None:
    """Write the sum over pairs of weight * log(1 + exp(s_worse - s_better)), its gradient and its
    curvature, which is not written where `curvature` is empty.

    The better document of a pair is that of the greater gain.  Pairs of which neither document can
    be at a rank that counts are left out.
    """
    base = offsets[0]
    depth = table.shape[0] if kind == TABLE else discount.size
    half = workspace.size + 1
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        for i in range(lo, lo + n):
            grad[i] = 0.0
            if curvature.size > 0:
                curvature[i] = 0.0
        values[q] = 0.0
        if n < 2 or scale[q] == 0.0:
            continue
        sort_down(
            scores,
            bits,
            lo,
            hi=lo + n,
            items=items,
            words=words,
            word_workspace=word_workspace,
            workspace=workspace,
        )
        count = group_documents(
            scores, gains, lo, n, items, workspace, blocks, groups, block_groups
        )
        for g in range(block_groups[count]):
            sums[g], sums[half + g] = 0.0, 0.0
        reach = 0  # blocks that begin at a rank that counts
        while reach < count and blocks[reach] < depth:
            start, m = blocks[reach], blocks[reach + 1] - blocks[reach]
            if kind == TABLE:
                mean_table_row(table, reach, start, m, rows)
            else:
                block_sums(
                    kind,
                    discount,
                    gains,
                    items,
                    groups,
                    b=reach,
                    start=start,
                    m=m,
                    first=block_groups[reach],
                    last=block_groups[reach + 1],
                    half=half,
                    means=means,
                    passing=passing,
                    leaving=leaving,
                    entering=entering,
                )
            reach += 1
        value, above = 0.0, 1.0
        for b in range(reach):
            start, m = blocks[b], blocks[b + 1] - blocks[b]
            first, last = block_groups[b], block_groups[b + 1]
            if kind == CASCADE and above == 0.0:
                break
            counted = min(start + m, depth) - 1  # the last rank of the block that counts
            if kind == TABLE and m > 1:
                for c in range(table.shape[1]):
                    total = 0.0
                    for r in range(start, counted + 1):
                        total += (m - 1 - 2 * (r - start)) * table[r, c]
                    inner_row[c] = total / (0.5 * m * (m - 1))
            for g in range(first, last):
                if g + 1 < last:
                    value = add_pairs_within(
                        kind,
                        variant,
                        mu,
                        discount,
                        doubles,
                        gains,
                        items,
                        groups,
                        g,
                        first,
                        last,
                        start,
                        m,
                        counted,
                        above,
                        half,
                        inner_row,
                        means,
                        sums,
                        value,
                    )
                value = add_pairs_below(
                    kind,
                    variant,
                    mu,
                    scores,
                    doubles,
                    gains,
                    items,
                    blocks,
                    groups,
                    block_groups,
                    b,
                    g,
                    count,
                    reach,
                    counted,
                    above,
                    half,
                    passing,
                    leaving,
                    entering,
                    rows,
                    sums,
                    value,
                )
            above = state_below(
                kind,
                state=above,
                gains=gains,
                items=items,
                groups=groups,
                first=first,
                last=last,
                without=-1,
            )
        values[q] = scale[q] * value
        write_query(
            items,
            groups,
            count=block_groups[count],
            half=half,
            scale=scale[q],
            sums=sums,
            grad=grad,
            curvature=curvature,
        )
