"""Measures of trec_eval and NTCIR that read precision, gain or inferred precision along a list.

`labels`, `tie_sizes` and `offsets` are those of ranked lists, `ties` and `ends` those of
`kernels.measures.binary`.  Values are exact expectations over the orders of ties, except where a
docstring says otherwise.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.types import Floats, Ints

INFAP_EPSILON = 0.00001
OUTSIDE, POOLED, NONRELEVANT, RELEVANT = 0, 1, 2, 3  # kinds of documents of inferred AP


@kernel
def interpolated_precision(
    ties: Ints, ends: Ints, relevant: Floats, recalls: Floats, out: Floats
) -> None:
    """Write the greatest precision at any rank that reaches a recall, a row per query.

    At rank t of a tie of m documents, of which r are relevant, t * r / m are taken as relevant: the
    greatest of several random precisions has no closed form.
    """
    start = 0
    for q in range(ends.size):
        for level in range(recalls.size):
            needed = np.floor(recalls[level] * relevant[q] + 0.9) - 1e-9
            before, best = 0.0, 0.0
            for t in range(start, ends[q]):
                above, size, tied_relevant = ties[t, 0], ties[t, 1], ties[t, 2]
                for k in range(1, size + 1):
                    hits = before + k * tied_relevant / size
                    if hits >= needed:
                        best = max(best, hits / (above + k))
                before += tied_relevant
            out[q, level] = best
        start = ends[q]


@kernel
def binary_g(ties: Ints, ends: Ints, relevant: Floats, out: Floats) -> None:
    """Write the mean over relevant documents of 1 / log2(2 + number of non-relevant ones above).

    In a tie with b non-relevant documents, that number grows by 0..b, each equally likely.
    """
    start = 0
    for q in range(ends.size):
        before, total = 0, 0.0
        for t in range(start, ends[q]):
            tied_relevant = ties[t, 2]
            above, tied_nonrelevant = ties[t, 0] - before, ties[t, 1] - tied_relevant
            mean = 0.0
            for extra in range(tied_nonrelevant + 1):
                mean += 1.0 / np.log2(2.0 + above + extra)
            total += tied_relevant * mean / (tied_nonrelevant + 1)
            before += tied_relevant
        out[q] = total / relevant[q] if relevant[q] > 0.0 else 0.0
        start = ends[q]


@kernel
def graded_g(
    gains: Floats, tie_sizes: Ints, offsets: Ints, ideal: Floats, ideal_offsets: Ints, out: Floats
) -> None:
    """Write the sum of gain / log2(2 + missed gain so far), divided by the sum of all gains.

    The gain missed at a rank is that of the ideal list (at least 1 per rank) minus that of the
    ranking, both up to the rank.  Tied documents all have their mean gain.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        best_lo, best_hi = ideal_offsets[q], ideal_offsets[q + 1]
        seen, cost, total = 0.0, 0.0, 0.0
        i = lo
        while i < hi:
            size = tie_sizes[i]
            mean = 0.0
            for j in range(i, i + size):
                mean += gains[j] / size
            for j in range(i, i + size):
                at = best_lo + j - lo
                cost += max(ideal[at], 1.0) if at < best_hi else 1.0
                seen += mean
                if mean > 0.0:
                    total += mean / np.log2(2.0 + cost - seen)
            i += size
        norm = 0.0
        for j in range(best_lo, best_hi):
            norm += ideal[j]
        out[q] = total / norm if norm > 0.0 else 0.0


@subroutine
def draws_probability(
    hits: int, draws: int, marked: int, population: int, log_factorials: Floats
) -> float:
    """Return the hypergeometric probability of `hits` marked documents among random draws."""
    if hits > marked or draws - hits > population - marked:
        return 0.0
    f = log_factorials
    return np.exp(
        f[marked]
        - f[hits]
        - f[marked - hits]
        + f[population - marked]
        - f[draws - hits]
        - f[population - marked - draws + hits]
        - f[population]
        + f[draws]
        + f[population - draws]
    )


@kernel
def inferred_ap(
    kinds: Ints,
    tie_sizes: Ints,
    offsets: Ints,
    relevant: Floats,
    log_factorials: Floats,
    out: Floats,
) -> None:
    """Write the average precision that is inferred from a sample of the pool.

    Given the number of judged documents before a relevant one in its tie, the expected numbers of
    relevant and of pooled documents among them are linear in it.  So the mean over all orders is a
    sum over that number.
    """
    epsilon = INFAP_EPSILON
    for q in range(offsets.size - 1):
        hits, judged, pooled, total = 0, 0, 0, 0.0
        i = offsets[q]
        while i < offsets[q + 1]:
            size = tie_sizes[i]
            r, n, u = 0, 0, 0
            for j in range(i, i + size):
                r += 1 if kinds[j] == RELEVANT else 0
                n += 1 if kinds[j] == NONRELEVANT else 0
                u += 1 if kinds[j] == POOLED else 0
            if r > 0:
                others = r - 1 + n  # judged documents of the tie but for one relevant one
                relevant_rate = (r - 1.0) / others if others > 0 else 0.0
                pooled_rate = u / (size - 1.0 - others) if size - 1 > others else 0.0
                for k in range(size):
                    rank = i - offsets[q] + k + 1
                    for c in range(max(0, k - (size - 1 - others)), min(k, others) + 1):
                        probability = draws_probability(c, k, others, size - 1, log_factorials)
                        in_pool = judged + c + pooled + (k - c) * pooled_rate
                        rate = (hits + c * relevant_rate + epsilon) / (judged + c + 2.0 * epsilon)
                        total += probability * r / size * (1.0 + in_pool * rate) / rank
            hits += r
            judged += r + n
            pooled += u
            i += size
        out[q] = total / relevant[q] if relevant[q] > 0.0 else 0.0


@kernel
def ndcg_at_relevant(
    gains: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    ideal: Floats,
    ideal_offsets: Ints,
    discount: Floats,
    out: Floats,
) -> None:
    """Write the mean over all documents with a gain of the NDCG at their rank.

    A document that was not retrieved has the NDCG of the entire list.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        best_lo, best_hi = ideal_offsets[q], ideal_offsets[q + 1]
        dcg, ideal_dcg, total, seen, count = 0.0, 0.0, 0.0, 0, 0
        i = lo
        while i < hi:
            size = tie_sizes[i]
            gain, positive = 0.0, 0
            for j in range(i, i + size):
                gain += gains[j]
                positive += 1 if gains[j] > 0.0 else 0
            seen += positive
            # of an earlier document of the tie, where the one at the rank has a gain
            earlier = gain * (positive - 1.0) / (size * (size - 1.0)) if size > 1 else 0.0
            within = 0.0
            for j in range(i, i + size):
                at = best_lo + j - lo
                if at < best_hi:
                    ideal_dcg += ideal[at] * discount[j - lo]
                if positive > 0:
                    expected = dcg * positive / size + within * earlier
                    total += (expected + gain / size * discount[j - lo]) / ideal_dcg
                within += discount[j - lo]
            dcg += within * gain / size
            i += size
        for j in range(best_lo, best_hi):
            count += 1 if ideal[j] > 0.0 else 0
            if j - best_lo >= hi - lo:
                ideal_dcg += ideal[j] * discount[j - best_lo]
        out[q] = (total + (count - seen) * dcg / ideal_dcg) / count if count > 0 else 0.0


@kernel
def ndcg_at_levels(
    gains: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    ideal: Floats,
    ideal_offsets: Ints,
    discount: Floats,
    out: Floats,
) -> None:
    """Write the mean of the NDCG at the ranks where the gain of the ideal list changes.

    The end of the list is one more such rank, if it is more than one rank below the last of them.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        best_lo, best_hi = ideal_offsets[q], ideal_offsets[q + 1]
        dcg, ideal_dcg, total, count, positive = 0.0, 0.0, 0.0, 0, 0
        mean, tie_end = 0.0, lo
        for rank in range(max(hi - lo, best_hi - best_lo)):
            at = lo + rank
            if at < hi:
                if at == tie_end:
                    mean, tie_end = 0.0, at + tie_sizes[at]
                    for j in range(at, tie_end):
                        mean += gains[j] / (tie_end - at)
                dcg += mean * discount[rank]
            best = best_lo + rank
            if best < best_hi and ideal[best] > 0.0:
                positive += 1
                ideal_dcg += ideal[best] * discount[rank]
                if best + 1 == best_hi or ideal[best + 1] != ideal[best]:
                    total += dcg / ideal_dcg
                    count += 1
        if count > 0 and hi - lo > positive + 1:
            total += dcg / ideal_dcg
            count += 1
        out[q] = total / count if count > 0 else 0.0


@kernel
def q_measure(
    gains: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    ideal: Floats,
    ideal_offsets: Ints,
    beta: float,
    out: Floats,
) -> None:
    """Write the mean over documents with a gain of the blended ratio at their rank.

    The blended ratio at rank r is (beta * gain so far + documents with a gain so far) /
    (beta * ideal gain so far + r).
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        best_lo, best_hi = ideal_offsets[q], ideal_offsets[q + 1]
        seen_gain, seen, ideal_gain, total, count = 0.0, 0, 0.0, 0.0, 0
        i = lo
        while i < hi:
            size = tie_sizes[i]
            gain, positive = 0.0, 0
            for j in range(i, i + size):
                gain += gains[j]
                positive += 1 if gains[j] > 0.0 else 0
            pairs = (positive - 1.0) / (size * (size - 1.0)) if size > 1 else 0.0
            for k in range(size):
                at = best_lo + i - lo + k
                ideal_gain += ideal[at] if at < best_hi else 0.0
                if positive > 0:
                    above = beta * (seen_gain * positive / size + k * gain * pairs + gain / size)
                    above += (seen + 1.0) * positive / size + k * positive * pairs
                    total += above / (beta * ideal_gain + i - lo + k + 1)
            seen_gain += gain
            seen += positive
            i += size
        for j in range(best_lo, best_hi):
            count += 1 if ideal[j] > 0.0 else 0
        out[q] = total / count if count > 0 else 0.0


@kernel
def pairs_in_order(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    level: float,
    cutoff: int,
    log_factorials: Floats,
    out: Floats,
) -> None:
    """Write the fraction of pairs with the relevant document first, among the first ranks.

    A tie that crosses the cut-off shows a random number of its relevant documents; the value is the
    mean over that number.
    """
    for q in range(offsets.size - 1):
        end = min(offsets[q + 1], offsets[q] + cutoff)
        hits, others, correct, value = 0, 0, 0.0, 0.0
        i, crossed = offsets[q], 0
        while i < end:
            size, r = tie_sizes[i], 0
            for j in range(i, i + size):
                r += 1 if labels[j] >= level else 0
            if i + size <= end:
                correct += hits * (size - r) + r * (size - r) / 2.0
                hits += r
                others += size - r
            else:
                crossed, shown = 1, end - i
                for h in range(max(0, shown - (size - r)), min(r, shown) + 1):
                    probability = draws_probability(h, shown, r, size, log_factorials)
                    pairs = (hits + h) * (others + shown - h)
                    if pairs > 0:
                        inside = hits * (shown - h) + h * (shown - h) / 2.0
                        value += probability * (correct + inside) / pairs
            i += size
        if crossed == 0 and hits * others > 0:
            value = correct / (hits * others)
        out[q] = value
