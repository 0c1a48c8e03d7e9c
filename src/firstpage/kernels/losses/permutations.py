"""Cross entropy of whole permutations of up to 12 documents, exact, by recursion over subsets.

A permutation is drawn document by document; `reach[S]` is the chance that the true distribution
ever has exactly the subset S left.  Then the cross entropy is

    sum over S of reach[S] * log(sum of exp(score) over S)  -  sum of all scores,

since every document is drawn once.  2^m sums instead of m! permutations.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, subroutine
from firstpage.types import Array, Floats, Ints

NEAR = 600.0  # a spread of scores whose exponentials are all normal numbers


@kernel
def subset_probabilities(target: Floats, reach: Floats, entropy: Floats) -> None:
    """reach[S] for target scores; bit i of S is document i.  entropy[0]: of the distribution."""
    m = target.size
    full = (1 << m) - 1
    for s in range(full + 1):
        reach[s] = 0.0
    reach[full] = 1.0
    entropy[0] = 0.0
    for s in range(full, 0, -1):
        top = -np.inf
        for i in range(m):
            if s >> i & 1:
                top = max(top, target[i])
        total = 0.0
        for i in range(m):
            if s >> i & 1:
                total += np.exp(target[i] - top)
        log_total = top + np.log(total)
        entropy[0] += reach[s] * log_total
        for i in range(m):
            if s >> i & 1:
                reach[s ^ (1 << i)] += reach[s] * np.exp(target[i] - log_total)
    for i in range(m):
        entropy[0] -= target[i]


@subroutine
def subset_logs(z: Floats, m: int, spread: float, logs: Floats) -> None:
    """logs[S] = log of the sum of exp(z) over the subset S; the greatest z is 0."""
    logs[0] = 0.0 if spread < NEAR else -np.inf
    for i in range(m):
        half = 1 << i
        if spread < NEAR:
            e = np.exp(z[i])
            for s in range(half, 2 * half):
                logs[s] = logs[s - half] + e
        else:
            for s in range(half, 2 * half):
                high, low = max(logs[s - half], z[i]), min(logs[s - half], z[i])
                logs[s] = high + np.log1p(np.exp(low - high))
    if spread < NEAR:
        for s in range(1, 1 << m):
            logs[s] = np.log(logs[s])


@subroutine
def pick(scores: Floats, docs: Array, lo: int, first: int, m: int, z: Floats) -> float:
    """z = the documents' scores less the greatest; returns their spread."""
    top, least = -np.inf, np.inf
    for i in range(m):
        s = scores[lo + docs[first + i]]
        top, least = max(top, s), min(least, s)
    for i in range(m):
        z[i] = scores[lo + docs[first + i]] - top
    return top - least


@kernel
def permutation_cross_entropy(
    scores: Floats,
    docs: Array,
    offsets: Ints,
    firsts: Ints,
    table: Ints,
    starts: Ints,
    reach: Floats,
    factor: Floats,
    z: Floats,
    logs: Floats,
    values: Floats,
    grad: Floats,
    curve: Floats,
) -> None:
    """Query q's documents are docs[firsts[q]:firsts[q+1]], numbers inside the query, in the order
    of its table, which lies at reach[starts[table[q]]].  Slope of document i: the sum over the
    subsets that hold it of reach * p, less 1.  `curve`, if not empty, gets second derivatives.
    Workspace: `z` of 12 numbers, `logs` of 2^12.
    """
    base, zero = offsets[0], firsts[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        first, m = firsts[q] - zero, firsts[q + 1] - firsts[q]
        at = starts[table[q]]
        values[q] = 0.0
        for i in range(lo, hi):
            grad[i] = 0.0
            if curve.size > 0:
                curve[i] = 0.0
        if m > 1 and factor[q] > 0.0:
            spread = pick(scores, docs, lo, first, m, z)
            subset_logs(z, m, spread, logs)
            value = 0.0
            for s in range(1, 1 << m):
                value += reach[at + s] * logs[s]
            for i in range(m):
                value -= z[i]
            values[q] = factor[q] * value
            near = spread < NEAR
            if near:  # one exponential for a subset, not for each of its documents
                for s in range(1, 1 << m):
                    logs[s] = np.exp(-logs[s])
            for i in range(m):
                e = np.exp(z[i])
                slope, second = -1.0, 0.0
                bit = 1 << i
                block = bit
                while block < 1 << m:  # the subsets that hold document i
                    for s in range(block, block + bit):
                        p = e * logs[s] if near else np.exp(z[i] - logs[s])
                        slope += reach[at + s] * p
                        second += reach[at + s] * p * (1.0 - p)
                    block += 2 * bit
                grad[lo + docs[first + i]] = factor[q] * slope
                if curve.size > 0:
                    curve[lo + docs[first + i]] = factor[q] * second
