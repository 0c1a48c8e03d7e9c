"""Measures that sum discounted gains: DCG, LETOR's MeanNDCG, ERR, rank-biased precision.

Common arguments: `labels` in ranked order (NaN: unjudged), `tie_sizes` with the length of every
run of tied scores at its first position, `offsets` of the queries.  The value of a tie is its
exact expectation over all orders of the tied documents.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine, vector_kernel
from firstpage.core.types import Floats, Ints

EXPONENTIAL, LINEAR, TABLE = 0, 1, 2  # kinds of gain


@subroutine
def gain_of(label: float, kind: int, max_label: float, table: Floats) -> float:
    """Return the gain of a label; zero, negative and unjudged labels have none.

    Exponential gains are divided by 2^max_label, so that 2^label never overflows: the ratio of
    two DCGs of one query does not change, and the division is exact.
    """
    if kind == TABLE:
        return table[int(label)] if label >= 0.0 else 0.0
    if not label > 0.0:
        return 0.0
    if kind == LINEAR:
        return label
    return power_of_2(label - max_label) - power_of_2(-max_label)


@subroutine
def power_of_2(exponent: float) -> float:
    """Return 2^exponent; small negative integers, the usual ones, need no call of a function."""
    if -62.0 <= exponent <= 0.0 and exponent == np.floor(exponent):
        return 1.0 / float(np.int64(1) << np.int64(-exponent))
    return np.exp2(exponent)


@kernel
def dcg(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    max_label: Floats,
    kind: int,
    table: Floats,
    discount: Floats,
    cutoff: int,
    out: Floats,
) -> None:
    """Write the expected DCG of the first `cutoff` ranks of every query."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        total, last, gain = 0.0, np.nan, 0.0
        i = lo
        while i < end:
            size = tie_sizes[i]
            if size == 1:
                if labels[i] != last:  # neighbors often have the same label
                    last = labels[i]
                    gain = gain_of(last, kind, max_label[q], table)
                total += gain * discount[i - lo]
            else:
                mean = 0.0
                for j in range(i, i + size):
                    mean += gain_of(labels[j], kind, max_label[q], table)
                mean /= size
                for j in range(i, min(i + size, end)):
                    total += mean * discount[j - lo]
            i += size
        out[q] = total


@kernel
def gains(
    labels: Floats, offsets: Ints, max_label: Floats, kind: int, table: Floats, out: Floats
) -> None:
    """Write the gain of every document."""
    for q in range(offsets.size - 1):
        for i in range(offsets[q], offsets[q + 1]):
            out[i] = gain_of(labels[i], kind, max_label[q], table)


@subroutine
def select_top(
    scores: Floats, gains: Floats, lo: int, hi: int, best: Floats, best_gains: Floats
) -> tuple[int, float]:
    """Write the greatest scores to `best`, in descending order, and their gains to `best_gains`.

    Returns their number, at most the size of `best`, and the greatest of the other scores.
    """
    size, capacity, next_best = 0, best.size, -np.inf
    for i in range(lo, hi):
        s = scores[i]
        if size < capacity:
            j = size
            size += 1
        elif s > best[capacity - 1]:
            j = capacity - 1
            next_best = best[j]
        else:
            next_best = max(next_best, s)
            continue
        while j > 0 and best[j - 1] < s:
            best[j] = best[j - 1]
            best_gains[j] = best_gains[j - 1]
            j -= 1
        best[j] = s
        best_gains[j] = gains[i]
    return size, next_best


@subroutine
def tie_mean_gain(scores: Floats, gains: Floats, lo: int, hi: int, score: float) -> float:
    """Return the mean gain of all documents with this score; there is at least one."""
    total, count = 0.0, 0
    for i in range(lo, hi):
        same = scores[i] == score
        total += gains[i] if same else 0.0
        count += 1 if same else 0
    return total / count


@vector_kernel
def top_dcg(
    scores: Floats,
    gains: Floats,
    offsets: Ints,
    discount: Floats,
    best: Floats,
    best_gains: Floats,
    out: Floats,
) -> None:
    """Write the expected sum of gain * discount over the first ranks, one per discount.

    Only these ranks are sorted (`best` and `best_gains` are workspace of that size); a tie that may
    extend beyond them is resolved in a second pass.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        size, next_best = select_top(scores, gains, lo, hi, best, best_gains)
        total = 0.0
        i = 0
        while i < size:
            j, mean = i + 1, best_gains[i]
            while j < size and best[j] == best[i]:
                mean += best_gains[j]
                j += 1
            mean /= j - i
            if best[i] == next_best:
                mean = tie_mean_gain(scores, gains, lo, hi, best[i])
            for p in range(i, j):
                total += mean * discount[p]
            i = j
        out[q] = total


@kernel
def mean_ndcg(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    ideal: Floats,
    ideal_offsets: Ints,
    max_label: Floats,
    kind: int,
    table: Floats,
    discount: Floats,
    out: Floats,
) -> None:
    """Write the mean of NDCG@1, .. NDCG@n over the ranks of the list, as LETOR reports it."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        best_lo, best_hi = ideal_offsets[q], ideal_offsets[q + 1]
        dcg, ideal_dcg, total = 0.0, 0.0, 0.0
        i = lo
        while i < hi:
            size = tie_sizes[i]
            mean = 0.0
            for j in range(i, i + size):
                mean += gain_of(labels[j], kind, max_label[q], table)
            mean /= size
            for j in range(i, i + size):
                dcg += mean * discount[j - lo]
                if best_lo + j - lo < best_hi:
                    ideal_dcg += (
                        gain_of(ideal[best_lo + j - lo], kind, max_label[q], table)
                        * discount[j - lo]
                    )
                if ideal_dcg > 0.0:
                    total += dcg / ideal_dcg
            i += size
        out[q] = total / (hi - lo) if hi > lo else 0.0


@subroutine
def stop_probability(label: float, max_label: float) -> float:
    """Return the probability that the user is satisfied: (2^label - 1) / 2^max_label."""
    return power_of_2(label - max_label) - power_of_2(-max_label) if label > 0.0 else 0.0


@kernel
def err(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    max_label: Floats,
    cutoff: int,
    pass_means: Floats,
    out: Floats,
) -> None:
    """Write the expected reciprocal rank: the sum over ranks of P(stop there) / rank.

    In a tie of m documents with pass probabilities a_1..a_m, the probability of passing its first t
    positions in random order is the mean of prod(a) over all t-subsets.  `pass_means` holds these
    means; adding one document at a time updates them by convex combinations, so the recursion is
    stable.  The cost is O(m * min(m, cutoff)) for the tie, O(1) per document elsewhere.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        reach, total = 1.0, 0.0
        i = lo
        while i < end and reach > 0.0:
            size = tie_sizes[i]
            if size == 1:
                stop = stop_probability(labels[i], max_label[q])
                total += reach * stop / (i - lo + 1)
                reach *= 1.0 - stop
            else:
                depth = min(size, end - i)
                for t in range(depth + 1):
                    pass_means[t] = 0.0
                pass_means[0] = 1.0
                for count in range(1, size + 1):
                    a = 1.0 - stop_probability(labels[i + count - 1], max_label[q])
                    for t in range(min(count, depth), 0, -1):
                        fraction = t / count  # of the t-subsets that contain the new document
                        pass_means[t] = (1.0 - fraction) * pass_means[
                            t
                        ] + fraction * a * pass_means[t - 1]
                for t in range(1, depth + 1):
                    total += reach * (pass_means[t - 1] - pass_means[t]) / (i - lo + t)
                reach *= pass_means[depth]
            i += size
        out[q] = total


@kernel
def rank_biased_precision(
    labels: Floats, tie_sizes: Ints, offsets: Ints, level: float, p: float, cutoff: int, out: Floats
) -> None:
    """Write the rank-biased precision: (1-p) * sum of p^(rank-1) over relevant documents."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        weight, total = 1.0 - p, 0.0
        i = lo
        while i < end:
            size = tie_sizes[i]
            relevant = 0
            for j in range(i, i + size):
                if labels[j] >= level:
                    relevant += 1
            for _ in range(i, min(i + size, end)):
                total += weight * relevant / size
                weight *= p
            i += size
        out[q] = total


@subroutine
def grade_index(label: float, grades: Floats) -> int:
    """Return the index of a grade; 0 for labels below all grades and NaN, -1 for other labels."""
    index = 0
    for g in range(1, grades.size):
        index += 1 if label >= grades[g] else 0
    return -1 if label > grades[index] else index


@kernel
def count_grades(labels: Floats, offsets: Ints, grades: Floats, counts: Ints) -> int:
    """Write the number of documents of each grade, one row per query.

    Returns the first document whose label is not a grade, or -1.
    """
    bad = -1
    for q in range(offsets.size - 1):
        for g in range(grades.size):
            counts[q, g] = 0
        for i in range(offsets[q], offsets[q + 1]):
            index = grade_index(labels[i], grades)
            if index >= 0:
                counts[q, index] += 1
            elif bad < 0:
                bad = i
    return bad


@kernel
def table_dcg(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    grades: Floats,
    table: Floats,
    counts: Floats,
    out: Floats,
) -> None:
    """Write the expected sum over ranks of the weight of the grade at that rank.

    `table` has one row per rank that counts and one column per grade; all `labels` are grades (or
    below, or NaN: unjudged).  In a tie every rank has the mean weight of its documents; `counts` is
    workspace for that, one number per grade.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + table.shape[0])
        total = 0.0
        i = lo
        while i < end:
            size = tie_sizes[i]
            if size == 1:
                total += table[i - lo, max(grade_index(labels[i], grades), 0)]
            else:
                for g in range(grades.size):
                    counts[g] = 0.0
                for j in range(i, i + size):
                    counts[max(grade_index(labels[j], grades), 0)] += 1.0
                for p in range(i - lo, min(i + size, end) - lo):
                    for g in range(grades.size):
                        total += counts[g] / size * table[p, g]
            i += size
        out[q] = total
