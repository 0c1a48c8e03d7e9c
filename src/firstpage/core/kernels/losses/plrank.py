"""The expected value of a measure under the Plackett-Luce model, and its gradient, by sampling.

A measure is a sum over ranks.  The document at rank x adds scale * gain * discount[x] * state, and
the state before rank x depends on the documents above it:

    ADDITIVE    1 (DCG, NDCG, precision, recall, RBP)
    CASCADE     the product of 1 - gain over the documents above (ERR, RR, success)
    PRECISION   1 + the sum of the gains above, which are 0 or 1 (average precision)
    TABLE       there is no gain: the document adds scale * table[x, column]

A ranking is drawn by sorting log(-log(u)) - score in ascending order, where u is uniform: only the
first ranks are sorted.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.hashing import STEP, mix
from firstpage.core.kernels.sorting import heap_sift
from firstpage.core.types import Array, Floats, Ints

ADDITIVE, CASCADE, PRECISION, TABLE = 0, 1, 2, 3  # kinds of measures
COUNTED_LENGTH = 256  # of lists in which the documents before each one are counted: no branches
INSERTION_DEPTH = 128  # so few ranks are sorted faster by insertion than by a heap
S11 = np.uint64(11)
UNIT = 2.0**-53


@subroutine
def next_state(kind: int, state: float, gain: float) -> float:
    """Return the state below a document of this gain."""
    if kind == CASCADE:
        return state * (1.0 - gain)
    if kind == PRECISION:
        return state + gain
    return state


@kernel
def true_order_values(
    order: Ints,
    gains: Floats,
    offsets: Ints,
    kind: int,
    discount: Floats,
    table: Floats,
    scale: Floats,
    out: Floats,
) -> None:
    """Write the value of the measure where each query's documents are in this order."""
    for q in range(offsets.size - 1):
        lo, n = offsets[q], offsets[q + 1] - offsets[q]
        total, state = 0.0, 1.0
        for x in range(min(n, table.shape[0] if kind == TABLE else discount.size)):
            gain = gains[order[lo + x]]
            if kind == TABLE:
                total += table[x, int(gain)]
            else:
                total += gain * discount[x] * state
                state = next_state(kind, state, gain)
        out[q] = scale[q] * total


@subroutine
def draw_ranking(
    scores: Floats, lo: int, n: int, depth: int, key: np.uint64, arrival: Floats, items: Ints
) -> None:
    """Write the first `depth` documents of a ranking to `items`; `key` seeds the randomness."""
    state = key
    for i in range(n):
        state = state + STEP
        u = (np.float64(mix(state) >> S11) + 0.5) * UNIT
        arrival[i] = np.log(-np.log(u)) - scores[lo + i]
    if n <= min(COUNTED_LENGTH, 4 * depth):
        total = 0
        for i in range(n):
            value, rank = arrival[i], 0
            for j in range(n):
                rank += arrival[j] < value
            total += rank
            if rank < depth:
                items[rank] = i
        if 2 * total == n * (n - 1):  # no two are equal
            return
    if depth <= INSERTION_DEPTH:
        for i in range(n):
            x = min(i, depth - 1)
            if i >= depth and arrival[i] >= arrival[items[x]]:
                continue
            while x > 0 and arrival[items[x - 1]] > arrival[i]:
                items[x] = items[x - 1]
                x -= 1
            items[x] = i
        return
    for x in range(depth):
        items[x] = x
    for at in range(depth // 2 - 1, -1, -1):
        heap_sift(items, arrival, 0, at, depth)
    for i in range(depth, n):
        if arrival[i] < arrival[items[0]]:
            items[0] = i
            heap_sift(items, arrival, 0, 0, depth)
    for end in range(depth - 1, 0, -1):
        items[0], items[end] = items[end], items[0]
        heap_sift(items, arrival, 0, 0, end)


@subroutine
def remaining_sums(
    scores: Floats,
    gains: Floats,
    lo: int,
    n: int,
    depth: int,
    items: Ints,
    table: Floats,
    ranked: Array,
    totals: Floats,
    logs: Floats,
    means: Floats,
) -> None:
    """Write logs[x], the log of the sum of exp(score) over the documents not ranked before x.

    `means` receives the expected gain of the document at rank x, given those above it; with a
    table, its expected weight.  Sums run from the last document upward, with a running maximum:
    nothing cancels or overflows.  `ranked` receives whether a document is among the first `depth`.
    """
    columns = table.shape[1]
    for i in range(n):
        ranked[i] = 0
    for x in range(depth):
        ranked[items[x]] = 1
    for c in range(totals.size):
        totals[c] = 0.0
    top, total, weighted = -np.inf, 0.0, 0.0
    for step in range(n + depth):  # first the documents that are not ranked, then upward
        x = n + depth - 1 - step
        if step < n:
            if ranked[step] == 1:
                continue
            i = lo + step
        else:
            i = lo + items[x]
        if scores[i] > top:
            shrink = np.exp(top - scores[i])
            top = scores[i]
            total *= shrink
            weighted *= shrink
            for c in range(columns):
                totals[c] *= shrink
        p = np.exp(scores[i] - top)
        total += p
        if columns > 0:
            totals[int(gains[i])] += p
        else:
            weighted += p * gains[i]
        if step >= n:
            logs[x] = top + np.log(total)
            for c in range(columns):
                weighted = weighted + table[x, c] * totals[c] if c > 0 else table[x, c] * totals[c]
            means[x] = weighted / total


@subroutine
def rank_centers(
    gains: Floats,
    lo: int,
    n: int,
    depth: int,
    kind: int,
    discount: Floats,
    table: Floats,
    center: Floats,
) -> float:
    """Write the mean reward of all documents at each rank; return their mean gain.

    Both are 0 for kinds whose rewards depend on the documents above.
    """
    mean_gain = 0.0
    if kind == ADDITIVE:
        for i in range(lo, lo + n):
            mean_gain += gains[i] / n
    for x in range(depth):
        center[x] = 0.0
        if kind == TABLE:
            for i in range(lo, lo + n):
                center[x] += table[x, int(gains[i])] / n
        elif kind == ADDITIVE:
            center[x] = mean_gain * discount[x]
    return mean_gain


@subroutine
def rewards_to_go(
    gains: Floats,
    lo: int,
    depth: int,
    kind: int,
    discount: Floats,
    table: Floats,
    items: Ints,
    mean_gain: float,
    center: Floats,
    means: Floats,
    weights: Floats,
    togo: Floats,
    total: float,
) -> float:
    """Write the reward from each rank on of a ranking, and turn `means` into expected rewards.

    Returns `total` plus the expected rewards of all ranks.
    """
    state = 1.0
    for x in range(depth):
        gain = gains[lo + items[x]]
        if kind == TABLE:
            togo[x] = table[x, int(gain)] - center[x]
            means[x] -= center[x]
        else:
            weights[x] = discount[x] * state
            togo[x] = (gain - mean_gain) * weights[x]
            means[x] = (means[x] - mean_gain) * weights[x]
            state = next_state(kind, state, gain)
        total += means[x]
    togo[depth] = 0.0
    for x in range(depth - 1, -1, -1):
        togo[x] += togo[x + 1]
    return total


@subroutine
def add_ranking_gradient(
    scores: Floats,
    gains: Floats,
    lo: int,
    n: int,
    depth: int,
    kind: int,
    table: Floats,
    importance: Floats,
    items: Ints,
    ranked: Array,
    mean_gain: float,
    center: Floats,
    logs: Floats,
    means: Floats,
    weights: Floats,
    togo: Floats,
    direct: Floats,
    grad: Floats,
    curvature: Floats,
) -> None:
    """Add the gradient and the curvature of one ranking."""
    # Sums over ranks of togo / S, weight / S and importance / S, as multiples of
    # exp(-logs[x]), which grows with x.
    risk, one, fisher, fisher_square = 0.0, 0.0, 0.0, 0.0
    for c in range(direct.size):
        direct[c] = 0.0
    for x in range(depth):
        shrink = np.exp(logs[x] - logs[x - 1]) if x > 0 else 0.0
        risk = risk * shrink + means[x] + togo[x + 1]
        fisher = fisher * shrink + importance[x]
        fisher_square = fisher_square * shrink * shrink + importance[x]
        if kind == TABLE:
            for c in range(direct.size):
                direct[c] = direct[c] * shrink + table[x, c] - center[x]
        else:
            one = one * shrink + weights[x]
        i = lo + items[x]
        p = np.exp(scores[i] - logs[x])
        gain = direct[int(gains[i])] if kind == TABLE else (gains[i] - mean_gain) * one
        grad[i] -= togo[x + 1] + p * (gain - risk)
        if curvature.size > 0:
            curvature[i] += p * fisher - p * p * fisher_square
    for j in range(n):
        if ranked[j] == 0:
            i = lo + j
            p = np.exp(scores[i] - logs[depth - 1])
            gain = direct[int(gains[i])] if kind == TABLE else (gains[i] - mean_gain) * one
            grad[i] -= p * (gain - risk)
            if curvature.size > 0:
                curvature[i] += p * fisher - p * p * fisher_square


@kernel
def expected_measure(
    scores: Floats,
    gains: Floats,
    offsets: Ints,
    kind: int,
    discount: Floats,
    table: Floats,
    scale: Floats,
    best: Floats,
    importance: Floats,
    gain_range: Floats,
    samples: int,
    seed: int,
    first_query: int,
    calls: Ints,
    arrival: Floats,
    items: Ints,
    ranked: Array,
    logs: Floats,
    means: Floats,
    weights: Floats,
    togo: Floats,
    center: Floats,
    direct: Floats,
    values: Floats,
    grad: Floats,
    curvature: Floats,
) -> None:
    """Write `best` minus an estimate of the expected measure, its gradient, and its curvature.

    The gradient by the score of document d is the mean over sampled rankings of

        togo[rank(d) + 1] + sum over x <= rank(d) of p(d at x) * (weight(x, d) - togo[x])

    where togo[x] is the reward from rank x on, weight(x, d) the reward of d at rank x below the
    documents above, and p(d at x) = exp(s_d) / sum of exp over the documents not ranked before x.
    The sums over x are cumulative, so a ranking costs O(n log k).  Two changes lower the variance
    and keep the expectation.  In togo[x] the reward of rank x is its expectation, given the
    documents above; the gradients of a query then sum to 0.  Rewards of kinds ADDITIVE and TABLE
    are relative to the mean of all documents at that rank, which is a constant.

    The curvature is gain_range * sum over x <= rank(d) of importance[x] * p * (1 - p); nothing is
    written where `curvature` is empty.  Query q of the slice has the number first_query + q, and
    each call draws other rankings: randomness depends on seed, number of the call and query alone.
    """
    base = offsets[0]
    call = mix(mix(np.uint64(seed) + STEP) + np.uint64(calls[0]))
    calls[0] += 1
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        for i in range(lo, lo + n):
            grad[i] = 0.0
            if curvature.size > 0:
                curvature[i] = 0.0
        values[q] = 0.0
        if gain_range[q] == 0.0:
            continue
        depth = min(n, importance.size)
        mean_gain = rank_centers(gains, lo, n, depth, kind, discount, table, center)
        constant = 0.0
        for x in range(depth):
            constant += center[x]
        total = 0.0
        key = mix(call + np.uint64(first_query + q))
        for _ in range(samples):
            key = mix(key + STEP)
            draw_ranking(scores, lo, n, depth, key, arrival, items)
            remaining_sums(
                scores,
                gains,
                lo,
                n,
                depth,
                items,
                table,
                ranked,
                totals=direct,
                logs=logs,
                means=means,
            )
            total = rewards_to_go(
                gains,
                lo,
                depth,
                kind,
                discount,
                table,
                items,
                mean_gain,
                center,
                means,
                weights,
                togo,
                total,
            )
            add_ranking_gradient(
                scores,
                gains,
                lo,
                n,
                depth,
                kind,
                table,
                importance,
                items,
                ranked,
                mean_gain,
                center,
                logs,
                means,
                weights,
                togo,
                direct,
                grad,
                curvature,
            )
        values[q] = best[q] - scale[q] * (total / samples + constant)
        for i in range(lo, lo + n):
            grad[i] *= scale[q] / samples
            if curvature.size > 0:
                curvature[i] = max(curvature[i], 0.0) * gain_range[q] / samples
