"""Structural hinge losses of NDCG, precision and average precision, with their argmax rankings."""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.losses.slack import (
    chord_search,
    close_gap,
    ranking_at,
)
from firstpage.core.kernels.sorting import sort_down
from firstpage.core.types import Array, Floats, Ints, Words

# --- average precision: the most violated ranking (Yue et al. 2007), exactly
#
# Relevant and non-relevant documents are each in the order of their scores; only their interleaving
# is free.  Moving the j-th non-relevant document above relevant i, i+1, .. R gains a sum with a
# closed form in harmonic numbers.  The gain of each step decreases with j, so the best positions
# are monotone, and divide and conquer finds all of them in O((R + N) log N).


@subroutine
def step_gain(
    j: int, i: int, R: int, N: int, harmonic: Floats, tail: Floats, score: float
) -> float:
    """Return the gain of moving the j-th non-relevant document (from 1) above relevant i .. R.

    i = R + 1 gains nothing.  `harmonic[x]` is 1 + 1/2 + .. + 1/x, and `tail[i]` the summed score of
    relevant i .. R.
    """
    with_j = j * (harmonic[j + R] - harmonic[j + i - 1])
    without_j = (j - 1) * (harmonic[j + R - 1] - harmonic[j + i - 2]) if j > 1 else 0.0
    score_change = tail[i] - (R - i + 1) * score
    return (with_j - without_j) / R - 2.0 * score_change / (R * N)


@subroutine
def best_positions(
    R: int, N: int, harmonic: Floats, tail: Floats, nonrelevant: Floats, stack: Ints, position: Ints
) -> None:
    """Write, for each non-relevant document j, the first relevant one that it goes above.

    Both count from 1; the result for j is position[j - 1].
    """
    stack[0], stack[1], stack[2], stack[3] = 1, N, 1, R + 1
    depth = 1
    while depth > 0:
        depth -= 1
        at = 4 * depth
        low, high, first, last = stack[at], stack[at + 1], stack[at + 2], stack[at + 3]
        j = (low + high) // 2
        best, best_i = -1.0, last
        for i in range(last, first - 1, -1):
            gain = step_gain(j, i, R, N, harmonic, tail, score=nonrelevant[j - 1])
            if i == last or gain > best:
                best, best_i = gain, i
        position[j - 1] = best_i
        if j > low:
            stack[at], stack[at + 1], stack[at + 2], stack[at + 3] = low, j - 1, first, best_i
            depth += 1
            at += 4
        if j < high:
            stack[at], stack[at + 1], stack[at + 2], stack[at + 3] = j + 1, high, best_i, last
            depth += 1


@subroutine
def average_precision_cut(
    z: Floats,
    items: Ints,
    size: int,
    relevant: int,
    harmonic: Floats,
    tail: Floats,
    nonrelevant: Floats,
    docs: Ints,
    stack: Ints,
    position: Ints,
    weight: float,
    grad_sorted: Floats,
) -> float:
    """Add the hinge of one cut: the first `relevant` of `size` documents are relevant.

    Documents are in true order; `items` are all of them in descending order of score.  Adds
    weight * gradient and returns weight * loss.
    """
    R, N = relevant, size - relevant
    n_relevant, n_nonrelevant = 0, 0
    for at in range(size):
        if items[at] < relevant:
            docs[n_relevant] = items[at]
            n_relevant += 1
        else:
            docs[R + n_nonrelevant] = items[at]
            nonrelevant[n_nonrelevant] = z[items[at]]
            n_nonrelevant += 1
    tail[R + 1] = 0.0
    for i in range(R, 0, -1):
        tail[i] = tail[i + 1] + z[docs[i - 1]]
    best_positions(R, N, harmonic, tail, nonrelevant, stack, position)
    value = 1.0
    above = 0  # non-relevant documents above the i-th relevant one
    for i in range(1, R + 1):
        while above < N and position[above] <= i:
            above += 1
        value -= float(i) / float(i + above) / R
        value -= 2.0 * above * z[docs[i - 1]] / (R * N)
        grad_sorted[docs[i - 1]] -= weight * 2.0 * above / (R * N)
    for j in range(N):
        passed = R - position[j] + 1
        value += 2.0 * passed * nonrelevant[j] / (R * N)
        grad_sorted[docs[R + j]] += weight * 2.0 * passed / (R * N)
    return weight * max(value, 0.0)


@kernel
def average_precision_hinge(
    scores: Floats,
    order: Array,
    offsets: Ints,
    firsts: Ints,
    counts: Ints,
    end: Ints,
    harmonic: Floats,
    z: Floats,
    bits: Words,
    tail: Floats,
    nonrelevant: Floats,
    grad_sorted: Floats,
    items: Ints,
    docs: Ints,
    stack: Ints,
    position: Ints,
    words: Words,
    word_workspace: Words,
    workspace: Ints,
    values: Floats,
    grad: Floats,
) -> None:
    """Write max over rankings of 1 - AP + score - score of the true ranking; the mean over cuts.

    The first `counts` levels of each query are used; every boundary between two of them is a cut:
    documents above are relevant, documents below are not.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        for i in range(lo, hi):
            grad[i] = 0.0
        values[q] = 0.0
        count = counts[q]
        if count < 2:
            continue
        size = end[firsts[q] + count - 1]
        shift = scores[lo + order[lo]]
        for i in range(size):
            z[i] = scores[lo + order[lo + i]] - shift
            grad_sorted[i] = 0.0
        sort_down(
            scores=z,
            bits=bits,
            lo=0,
            hi=size,
            items=items,
            words=words,
            word_workspace=word_workspace,
            workspace=workspace,
        )
        weight = 1.0 / (count - 1)
        for cut in range(count - 1):
            values[q] += average_precision_cut(
                z,
                items,
                size,
                relevant=end[firsts[q] + cut],
                harmonic=harmonic,
                tail=tail,
                nonrelevant=nonrelevant,
                docs=docs,
                stack=stack,
                position=position,
                weight=weight,
                grad_sorted=grad_sorted,
            )
        for i in range(size):
            grad[lo + order[lo + i]] = grad_sorted[i]


# --- NDCG and precision


MARGIN, CHORDS = 0, 1


@subroutine
def read_query(
    scores: Floats,
    lo: int,
    rows: Array,
    gains: Floats,
    true_discounts: Floats,
    z: Floats,
    b: Floats,
) -> float:
    """Read scores and gains of the documents that are ranked; return the true ranking's score.

    NaN if no document is relevant, or there are fewer than two.
    """
    n = rows.size
    if n < 2:
        return np.nan
    shift = scores[lo + rows[0]]
    total, max_gain = 0.0, 0.0
    for i in range(n):
        z[i] = scores[lo + rows[i]] - shift
        b[i] = gains[i]
        max_gain = max(max_gain, b[i])
        total += true_discounts[i] * z[i]
    return total if max_gain > 0.0 else np.nan


@subroutine
def write_gradient(
    scale: float,
    a: Floats,
    rows: Array,
    true_discounts: Floats,
    ranking: Ints,
    lo: int,
    grad: Floats,
) -> None:
    """Write the gradient: scale * (discounts in the ranking - those in the true ranking)."""
    n = rows.size
    for i in range(n):
        grad[lo + rows[i]] = -scale * true_discounts[i]
    for p in range(min(a.size, n)):
        grad[lo + rows[ranking[p]]] += scale * a[p]


@kernel
def structural_hinge(
    scores: Floats,
    docs: Array,
    starts: Ints,
    offsets: Ints,
    gains: Floats,
    true_discounts: Floats,
    a: Floats,
    method: int,
    z: Floats,
    b: Floats,
    key: Floats,
    bits: Words,
    items: Ints,
    best_ranking: Ints,
    words: Words,
    word_workspace: Words,
    sort_workspace: Ints,
    result: Floats,
    best: Floats,
    tree_values: Floats,
    tree: Ints,
    values: Floats,
    bounds: Floats,
    grad: Floats,
) -> None:
    """Write the loss of the most violated ranking of each query, an upper bound, and the gradient.

    docs[starts[q]:starts[q+1]] are the documents that are ranked, as indices within their query;
    `gains` and `true_discounts`, their discounts in the true ranking, are parallel to them.  `a`
    holds the discounts of the first ranks; further ranks have 0.  `method` is the search for
    rankings.
    """
    base = offsets[0]
    workspace = (key, bits, items, words, word_workspace, sort_workspace, result)
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        for i in range(lo, hi):
            grad[i] = 0.0
        values[q], bounds[q] = 0.0, 0.0
        start, n = starts[q] - starts[0], starts[q + 1] - starts[q]
        rows, query_discounts = docs[start : start + n], true_discounts[start : start + n]
        true_score = read_query(
            scores, lo, rows, gains[start : start + n], true_discounts=query_discounts, z=z, b=b
        )
        if np.isnan(true_score):
            continue  # no document is relevant: all rankings are equal
        query = (z, b, a, n, a.size)
        best[0], best[1], best[2], best[3] = 0.0, 0.0, np.inf, 0.0
        if method == MARGIN:
            if ranking_at(1.0, query, workspace) == 1:
                best[0], best[1] = result[0] + result[1] - true_score, 1.0
                bounds[q] = best[0]
                for i in range(n):
                    best_ranking[i] = items[i]
        elif chord_search(true_score, query, workspace, best, best_ranking) == 1:
            close_gap(true_score, query, workspace, best, best_ranking, tree_values, tree)
            bounds[q] = best[2]
        values[q] = max(best[0], 0.0)
        bounds[q] = max(bounds[q], values[q])
        if best[0] > 0.0:
            write_gradient(
                scale=best[1],
                a=a,
                rows=rows,
                true_discounts=query_discounts,
                ranking=best_ranking,
                lo=lo,
                grad=grad,
            )


@kernel
def best_reference(
    scores: Floats,
    docs: Array,
    starts: Ints,
    offsets: Ints,
    firsts: Ints,
    end: Ints,
    a: Floats,
    z: Floats,
    bits: Words,
    items: Ints,
    words: Words,
    word_workspace: Words,
    workspace: Ints,
    true_discounts: Floats,
) -> None:
    """Write the discount of every document in the true ranking that scores best.

    In that ranking levels are in order, and documents of a level in descending order of score.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo = offsets[q] - base
        start, n = starts[q] - starts[0], starts[q + 1] - starts[q]
        for i in range(n):
            z[i] = scores[lo + docs[start + i]]
        first = 0
        for level in range(firsts[q], firsts[q + 1]):
            last = min(end[level], n)
            if last > first:
                sort_down(
                    scores=z,
                    bits=bits,
                    lo=first,
                    hi=last,
                    items=items,
                    words=words,
                    word_workspace=word_workspace,
                    workspace=workspace,
                )
                for i in range(last - first):
                    position = first + i
                    true_discounts[start + items[i]] = a[position] if position < a.size else 0.0
            first = max(first, last)
