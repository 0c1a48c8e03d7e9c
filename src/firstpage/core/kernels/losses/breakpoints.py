"""A measure as a function of the step along a line in score space: where it changes, and how.

Document i has the score scores[i] + step * direction[i].  The order of two documents changes at the
step where their scores cross.  Between crossings the order is constant, and so is the measure,
which has one of the kinds of `plrank`.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import (
    compiled_kernel,
    inlined_subroutine,
    subroutine,
)
from firstpage.core.kernels.losses.plrank import ADDITIVE, CASCADE, PRECISION, TABLE, next_state
from firstpage.core.kernels.sorting import sort_down
from firstpage.core.types import Floats, Ints, Words

SHIFT, LOW_BITS = 32, 2**32 - 1  # a pair is the numbers of two documents in one integer
ROUNDING_EPS = 1e-14  # changes of a value below this are rounding errors


@inlined_subroutine
def measure_range(
    gains: Floats,
    order: Ints,
    key: Floats,
    lo: int,
    hi: int,
    depth: int,
    kind: int,
    discount: Floats,
    table: Floats,
    state: Floats,
    means: Floats,
    parts: Floats,
) -> float:
    """Write the contributions of the ranks lo:hi to `parts`, and return the change of their sum.

    Documents of equal key have the mean over all their orders.
    """
    change, end = 0.0, min(hi, depth)
    for r in range(lo, end):
        change -= parts[r]
        state[r + 1] = next_state(kind, state[r], gains[order[r]])
    r = lo
    while r < end:
        m = 1
        while r + m < hi and key[order[r + m]] == key[order[r]]:
            m += 1
        total = 0.0
        means[0] = 1.0
        size = min(m, depth - r)
        for p in range(1, size + 1):
            means[p] = 0.0
        for i in range(m):
            gain = gains[order[r + i]]
            total += gain
            if kind == CASCADE:
                for p in range(min(i + 1, size), 0, -1):
                    fraction = p / (i + 1)
                    means[p] = (1.0 - fraction) * means[p] + fraction * (1.0 - gain) * means[p - 1]
        for p in range(min(m, end - r)):
            if kind == TABLE:
                parts[r + p] = 0.0
                for i in range(m):
                    parts[r + p] += table[r + p, int(gains[order[r + i]])] / m
            elif kind == ADDITIVE:
                parts[r + p] = total / m * discount[r + p]
            elif kind == PRECISION:
                above = state[r] + (p * (total - 1.0) / (m - 1) if m > 1 else 0.0)
                parts[r + p] = total / m * above * discount[r + p]
            else:
                parts[r + p] = state[r] * (means[p] - means[p + 1]) * discount[r + p]
        r += m
    for r in range(lo, end):
        change += parts[r]
    return change


@subroutine
def find_crossings(
    scores: Floats, direction: Floats, lo: int, n: int, crossing: Floats, pairs: Ints
) -> int:
    """Write the negated step at which each pair of documents crosses, and the pair.

    Returns how many pairs cross at a finite step.
    """
    crossings = 0
    for u in range(n):
        for v in range(u + 1, n):
            difference = direction[lo + u] - direction[lo + v]
            if difference != 0.0:
                at = (scores[lo + v] - scores[lo + u]) / difference
                if np.isfinite(at):
                    crossing[crossings] = -at
                    pairs[crossings] = u << SHIFT | v
                    crossings += 1
    return crossings


@subroutine
def scan_crossings(
    scores: Floats,
    direction: Floats,
    gains: Floats,
    lo: int,
    n: int,
    depth: int,
    kind: int,
    discount: Floats,
    table: Floats,
    weight: float,
    crossings: int,
    crossing: Floats,
    pairs: Ints,
    sorted_pairs: Ints,
    key: Floats,
    order: Ints,
    position: Ints,
    state: Floats,
    means: Floats,
    parts: Floats,
    count: int,
    steps: Floats,
    changes: Floats,
) -> int:
    """Write the steps of one query at which its measure changes, from position `count` on.

    `gains` are those of the query, and `order` is its order before the first crossing.  Returns
    the position after the last step.
    """
    e = 0
    while e < crossings:
        first, last = n, 0
        step = -crossing[sorted_pairs[e]]
        middle = step
        while e < crossings:  # all up to a step after which there is a number in between
            pair = pairs[sorted_pairs[e]]
            for r in (position[pair >> SHIFT], position[pair & LOW_BITS]):
                first, last = min(first, r), max(last, r)
            here = -crossing[sorted_pairs[e]]
            e += 1
            after = -crossing[sorted_pairs[e]] if e < crossings else here + max(1.0, abs(here))
            middle = here + 0.5 * (after - here)
            if here < middle < after:
                break
        for r in range(max(first - 1, 0), min(last + 2, n)):
            key[order[r]] = scores[lo + order[r]] + middle * direction[lo + order[r]]
        for r in range(first + 1, last + 1):
            i, at_rank = order[r], r
            while at_rank > first and key[order[at_rank - 1]] < key[i]:
                order[at_rank] = order[at_rank - 1]
                at_rank -= 1
            order[at_rank] = i
        for r in range(first, last + 1):
            position[order[r]] = r
        while first > 0 and key[order[first - 1]] == key[order[first]]:  # ties extend the range
            first -= 1
            if first > 0:
                i = order[first - 1]
                key[i] = scores[lo + i] + middle * direction[lo + i]
        while last < n - 1 and key[order[last + 1]] == key[order[last]]:
            last += 1
            if last < n - 1:
                i = order[last + 1]
                key[i] = scores[lo + i] + middle * direction[lo + i]
        if first >= depth:
            continue
        change = measure_range(
            gains,
            order,
            key,
            lo=first,
            hi=last + 1,
            depth=depth,
            kind=kind,
            discount=discount,
            table=table,
            state=state,
            means=means,
            parts=parts,
        )
        if abs(change) > ROUNDING_EPS:
            steps[count] = step
            changes[count] = weight * change
            count += 1
    return count


@compiled_kernel
def measure_breakpoints(
    scores: Floats,
    direction: Floats,
    gains: Floats,
    offsets: Ints,
    kind: int,
    discount: Floats,
    table: Floats,
    weight: Floats,
    crossing: Floats,
    crossing_bits: Words,
    pairs: Ints,
    sorted_pairs: Ints,
    words: Words,
    word_workspace: Words,
    workspace: Ints,
    key: Floats,
    key_bits: Words,
    order: Ints,
    position: Ints,
    state: Floats,
    means: Floats,
    parts: Floats,
    steps: Floats,
    changes: Floats,
    first_values: Floats,
) -> int:
    """Write the steps at which the measure of a query changes, and weight * change.

    Returns how many there are.

    `first_values` receives the weighted value of each query below its first step.  A step lies on
    the boundary of two orders: both hold in the open intervals beside it.
    """
    count = 0
    depth = table.shape[0] if kind == TABLE else discount.size
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        crossings = find_crossings(scores, direction, lo, n, crossing, pairs)
        sort_down(
            scores=crossing,
            bits=crossing_bits,
            lo=0,
            hi=crossings,
            items=sorted_pairs,
            words=words,
            word_workspace=word_workspace,
            workspace=workspace,
        )
        before = 0.0
        if crossings > 0:
            before = -crossing[sorted_pairs[0]]
            before -= max(1.0, abs(before))
        for i in range(n):
            key[i] = scores[lo + i] + before * direction[lo + i]
        sort_down(
            scores=key,
            bits=key_bits,
            lo=0,
            hi=n,
            items=order,
            words=words,
            word_workspace=word_workspace,
            workspace=workspace,
        )
        for r in range(n):
            position[order[r]] = r
            parts[r] = 0.0
        state[0] = 1.0
        own = gains[lo : lo + n]
        first_values[q] = weight[q] * measure_range(
            gains=own,
            order=order,
            key=key,
            lo=0,
            hi=n,
            depth=depth,
            kind=kind,
            discount=discount,
            table=table,
            state=state,
            means=means,
            parts=parts,
        )
        count = scan_crossings(
            scores,
            direction,
            gains=own,
            lo=lo,
            n=n,
            depth=depth,
            kind=kind,
            discount=discount,
            table=table,
            weight=weight[q],
            crossings=crossings,
            crossing=crossing,
            pairs=pairs,
            sorted_pairs=sorted_pairs,
            key=key,
            order=order,
            position=position,
            state=state,
            means=means,
            parts=parts,
            count=count,
            steps=steps,
            changes=changes,
        )
    return count
