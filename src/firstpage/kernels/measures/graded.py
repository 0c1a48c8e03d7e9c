"""Measures that add up discounted gains: DCG, LETOR's MeanNDCG, ERR, rank-biased precision.

Common arguments: `labels` in ranked order (NaN: unjudged), `block` with the length of every
run of tied scores at its first place, `offsets` of the queries.  The value of a tie is its
exact expectation over all orders of the tied documents.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, subroutine, vector_kernel
from firstpage.types import Floats, Ints

EXPONENTIAL, LINEAR, TABLE = 0, 1, 2  # kinds of gain


@subroutine
def gain_of(label: float, kind: int, top: float, table: Floats) -> float:
    """Gain of a label; no gain for zero, negative and unjudged ones.

    Exponential gains are divided by 2^top, so that 2^label never overflows: the ratio of
    two DCGs of one query does not change, and the division is exact.
    """
    if kind == TABLE:
        return table[int(label)] if label >= 0.0 else 0.0
    if not label > 0.0:
        return 0.0
    if kind == LINEAR:
        return label
    return np.exp2(label - top) - np.exp2(-top)


@kernel
def dcg(
    labels: Floats,
    block: Ints,
    offsets: Ints,
    top: Floats,
    kind: int,
    table: Floats,
    discount: Floats,
    cutoff: int,
    out: Floats,
) -> None:
    """Expected DCG of every query's first `cutoff` places."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        total = 0.0
        i = lo
        while i < end:
            size = block[i]
            if size == 1:
                total += gain_of(labels[i], kind, top[q], table) * discount[i - lo]
            else:
                mean = 0.0
                for j in range(i, i + size):
                    mean += gain_of(labels[j], kind, top[q], table)
                mean /= size
                for j in range(i, min(i + size, end)):
                    total += mean * discount[j - lo]
            i += size
        out[q] = total


@kernel
def gains(
    labels: Floats, offsets: Ints, top: Floats, kind: int, table: Floats, out: Floats
) -> None:
    """The gain of every document."""
    for q in range(offsets.size - 1):
        for i in range(offsets[q], offsets[q + 1]):
            out[i] = gain_of(labels[i], kind, top[q], table)


@subroutine
def keep_best(
    scores: Floats, gains: Floats, lo: int, hi: int, best: Floats, held: Floats
) -> tuple[int, float]:
    """The best scores downward into `best`, as many as it has room for, and their gains.

    Returns how many there are, and the greatest of the others.
    """
    size, room, other = 0, best.size, -np.inf
    for i in range(lo, hi):
        s = scores[i]
        if size < room:
            j = size
            size += 1
        elif s > best[room - 1]:
            j = room - 1
            other = best[j]
        else:
            other = max(other, s)
            continue
        while j > 0 and best[j - 1] < s:
            best[j] = best[j - 1]
            held[j] = held[j - 1]
            j -= 1
        best[j] = s
        held[j] = gains[i]
    return size, other


@subroutine
def mean_of_tie(scores: Floats, gains: Floats, lo: int, hi: int, score: float) -> float:
    """The mean gain of all documents of this score; there is at least one."""
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
    held: Floats,
    out: Floats,
) -> None:
    """Expected sum of gain * discount over the first places, as many as there are discounts.

    Nothing is sorted but those places (`best` and `held` have room for them); a tie that may go on
    beyond them is looked up in a second pass.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        size, other = keep_best(scores, gains, lo, hi, best, held)
        total = 0.0
        i = 0
        while i < size:
            j, mean = i + 1, held[i]
            while j < size and best[j] == best[i]:
                mean += held[j]
                j += 1
            mean /= j - i
            if best[i] == other:
                mean = mean_of_tie(scores, gains, lo, hi, best[i])
            for p in range(i, j):
                total += mean * discount[p]
            i = j
        out[q] = total


@kernel
def mean_ndcg(
    labels: Floats,
    block: Ints,
    offsets: Ints,
    ideal: Floats,
    ideal_offsets: Ints,
    top: Floats,
    kind: int,
    table: Floats,
    discount: Floats,
    out: Floats,
) -> None:
    """Mean of NDCG@1, NDCG@2, .. NDCG@n over the places of the list, as LETOR prints it."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        best_lo, best_hi = ideal_offsets[q], ideal_offsets[q + 1]
        got, best, total = 0.0, 0.0, 0.0
        i = lo
        while i < hi:
            size = block[i]
            mean = 0.0
            for j in range(i, i + size):
                mean += gain_of(labels[j], kind, top[q], table)
            mean /= size
            for j in range(i, i + size):
                got += mean * discount[j - lo]
                if best_lo + j - lo < best_hi:
                    best += gain_of(ideal[best_lo + j - lo], kind, top[q], table) * discount[j - lo]
                if best > 0.0:
                    total += got / best
            i += size
        out[q] = total / (hi - lo) if hi > lo else 0.0


@subroutine
def stop_probability(label: float, top: float) -> float:
    """Probability that the reader is satisfied: (2^label - 1) / 2^top."""
    return np.exp2(label - top) - np.exp2(-top) if label > 0.0 else 0.0


@kernel
def err(
    labels: Floats,
    block: Ints,
    offsets: Ints,
    top: Floats,
    cutoff: int,
    skipped: Floats,
    out: Floats,
) -> None:
    """Expected reciprocal rank: sum over places of P(stop here) / place.

    In a tie of m documents with pass probabilities a_1..a_m, the chance to pass its first t
    places in random order is the mean of prod(a) over all t-subsets.  `skipped` holds these
    means; adding one document at a time updates them by convex combinations, so the
    recursion is stable.  O(m * min(m, cutoff)) for the tie, O(1) a document elsewhere.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        reach, total = 1.0, 0.0
        i = lo
        while i < end and reach > 0.0:
            size = block[i]
            if size == 1:
                here = stop_probability(labels[i], top[q])
                total += reach * here / (i - lo + 1)
                reach *= 1.0 - here
            else:
                deep = min(size, end - i)
                for t in range(deep + 1):
                    skipped[t] = 0.0
                skipped[0] = 1.0
                for taken in range(1, size + 1):
                    a = 1.0 - stop_probability(labels[i + taken - 1], top[q])
                    for t in range(min(taken, deep), 0, -1):
                        share = t / taken  # of the t-subsets that hold the new document
                        skipped[t] = (1.0 - share) * skipped[t] + share * a * skipped[t - 1]
                for t in range(1, deep + 1):
                    total += reach * (skipped[t - 1] - skipped[t]) / (i - lo + t)
                reach *= skipped[deep]
            i += size
        out[q] = total


@kernel
def rank_biased_precision(
    labels: Floats, block: Ints, offsets: Ints, level: float, p: float, cutoff: int, out: Floats
) -> None:
    """Rank-biased precision: (1-p) * sum of p^(place-1) over relevant documents."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        weight, total = 1.0 - p, 0.0
        i = lo
        while i < end:
            size = block[i]
            hits = 0
            for j in range(i, i + size):
                if labels[j] >= level:
                    hits += 1
            for _ in range(i, min(i + size, end)):
                total += weight * hits / size
                weight *= p
            i += size
        out[q] = total


@subroutine
def grade_index(label: float, grades: Floats) -> int:
    """The number of a grade; 0 also for labels below all and unjudged ones, -1 for no grade."""
    at = 0
    for g in range(1, grades.size):
        at += 1 if label >= grades[g] else 0
    return -1 if label > grades[at] else at


@kernel
def count_grades(labels: Floats, offsets: Ints, grades: Floats, counts: Ints) -> int:
    """How many documents of each grade every query has, a row a query.

    Returns the first document whose label is no grade, or -1.
    """
    bad = -1
    for q in range(offsets.size - 1):
        for g in range(grades.size):
            counts[q, g] = 0
        for i in range(offsets[q], offsets[q + 1]):
            at = grade_index(labels[i], grades)
            if at >= 0:
                counts[q, at] += 1
            elif bad < 0:
                bad = i
    return bad


@kernel
def table_dcg(
    labels: Floats,
    block: Ints,
    offsets: Ints,
    grades: Floats,
    table: Floats,
    counts: Floats,
    out: Floats,
) -> None:
    """Expected sum over places of the weight of the grade that stands there.

    `table` has a row a place that counts and a column a grade; `labels` stand in ranked order, and
    all are grades (or below, or NaN: unjudged); `block` has the length of every run of tied scores
    at its first place.  In a tie every place has the mean of its documents, for which `counts` has
    room: one number a grade.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + table.shape[0])
        total = 0.0
        i = lo
        while i < end:
            size = block[i]
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
