"""Exact cross entropy of permutations of up to 12 documents, by recursion over subsets.

A permutation is drawn document by document; `probability[S]` is the probability that, under the
target distribution, exactly the subset S remains at some time.  Then the cross entropy is

    sum over S of probability[S] * log(sum of exp(score) over S)  -  sum of all scores,

since every document is drawn once: 2^m sums instead of m! permutations.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.types import Array, Floats, Ints

MAX_EXP_RANGE = 600.0  # range of scores whose exponentials are all normal numbers


@kernel
def subset_probabilities(target: Floats, probability: Floats, entropy: Floats) -> None:
    """Write probability[S] for target scores, and the entropy of the distribution to entropy[0].

    Bit i of S is document i.
    """
    m = target.size
    full = (1 << m) - 1
    for s in range(full + 1):
        probability[s] = 0.0
    probability[full] = 1.0
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
        entropy[0] += probability[s] * log_total
        for i in range(m):
            if s >> i & 1:
                probability[s ^ (1 << i)] += probability[s] * np.exp(target[i] - log_total)
    for i in range(m):
        entropy[0] -= target[i]


@subroutine
def subset_logs(z: Floats, m: int, score_range: float, logs: Floats) -> None:
    """Compute logs[S], the log of the sum of exp(z) over the subset S; the greatest z is 0."""
    logs[0] = 0.0 if score_range < MAX_EXP_RANGE else -np.inf
    for i in range(m):
        half = 1 << i
        if score_range < MAX_EXP_RANGE:
            e = np.exp(z[i])
            for s in range(half, 2 * half):
                logs[s] = logs[s - half] + e
        else:
            for s in range(half, 2 * half):
                high, low = max(logs[s - half], z[i]), min(logs[s - half], z[i])
                logs[s] = high + np.log1p(np.exp(low - high))
    if score_range < MAX_EXP_RANGE:
        for s in range(1, 1 << m):
            logs[s] = np.log(logs[s])


@subroutine
def gather_shifted(scores: Floats, docs: Array, lo: int, first: int, m: int, z: Floats) -> float:
    """Write the documents' scores minus their maximum to z; return their range."""
    maximum, minimum = -np.inf, np.inf
    for i in range(m):
        s = scores[lo + docs[first + i]]
        maximum, minimum = max(maximum, s), min(minimum, s)
    for i in range(m):
        z[i] = scores[lo + docs[first + i]] - maximum
    return maximum - minimum


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
    curvature: Floats,
) -> None:
    """Write the cross entropy of each query, its gradient and its second derivatives.

    Query q has the documents docs[firsts[q]:firsts[q+1]], as indices within the query, in the order
    of its table, which starts at reach[starts[table[q]]].  The derivative by document i is
    the sum over the subsets that contain it of reach * p, minus 1.  `curvature`, if not empty,
    receives the second derivatives.  Workspace: `z` of 12 numbers, `logs` of 2^12.
    """
    base, zero = offsets[0], firsts[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        start, m = firsts[q] - zero, firsts[q + 1] - firsts[q]
        at = starts[table[q]]
        values[q] = 0.0
        for i in range(lo, hi):
            grad[i] = 0.0
            if curvature.size > 0:
                curvature[i] = 0.0
        if m > 1 and factor[q] > 0.0:
            score_range = gather_shifted(scores, docs, lo, start, m, z)
            subset_logs(z, m, score_range, logs)
            value = 0.0
            for s in range(1, 1 << m):
                value += reach[at + s] * logs[s]
            for i in range(m):
                value -= z[i]
            values[q] = factor[q] * value
            in_range = score_range < MAX_EXP_RANGE
            if in_range:  # one exponential per subset instead of one per document
                for s in range(1, 1 << m):
                    logs[s] = np.exp(-logs[s])
            for i in range(m):
                e = np.exp(z[i])
                first_derivative, second_derivative = -1.0, 0.0
                bit = 1 << i
                block = bit
                while block < 1 << m:  # the subsets that contain document i
                    for s in range(block, block + bit):
                        p = e * logs[s] if in_range else np.exp(z[i] - logs[s])
                        first_derivative += reach[at + s] * p
                        second_derivative += reach[at + s] * p * (1.0 - p)
                    block += 2 * bit
                grad[lo + docs[start + i]] = factor[q] * first_derivative
                if curvature.size > 0:
                    curvature[lo + docs[start + i]] = factor[q] * second_derivative
