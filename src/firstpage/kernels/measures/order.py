"""Measures of order: pairs in the right or wrong order, exact places, rank overlap.

`labels` are in ranked order and judged (no NaN); `block` gives the ties of the scores.
Documents of equal label have no preferred order, so such pairs never count.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, subroutine
from firstpage.types import Floats, Ints


@subroutine
def count_inversions(labels: Floats, lo: int, hi: int, spare: Floats) -> float:
    """Pairs i < j with labels[i] < labels[j]; sorts labels[lo:hi] downward (merge sort)."""
    total = 0.0
    width = 1
    while width < hi - lo:
        left = lo
        while left < hi:
            mid, right = min(left + width, hi), min(left + 2 * width, hi)
            a, b = left, mid
            for out in range(left, right):
                if a < mid and (b >= right or labels[a] >= labels[b]):
                    spare[out] = labels[a]
                    a += 1
                else:
                    spare[out] = labels[b]
                    total += mid - a
                    b += 1
            left = right
        for i in range(lo, hi):
            labels[i] = spare[i]
        width *= 2
    return total


@subroutine
def tied_pairs(sorted_labels: Floats, lo: int, hi: int) -> float:
    total = 0.0
    i = lo
    while i < hi:
        j = i + 1
        while j < hi and sorted_labels[j] == sorted_labels[i]:
            j += 1
        total += (j - i) * (j - i - 1) / 2.0
        i = j
    return total


@kernel
def concordance(labels: Floats, block: Ints, offsets: Ints, spare: Floats, out: Floats) -> None:
    """Per query: pairs in right order, in wrong order, tied in score, tied in label.

    `out` has four numbers a query; the pairs tied in both stand in the last two.
    Overwrites `labels`.  O(n log n).
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        tied_scores, tied_both = 0.0, 0.0
        i = lo
        while i < hi:
            size = block[i]
            if size > 1:  # downward inside a tie: then it holds no inversion
                count_inversions(labels, i, i + size, spare)
                tied_scores += size * (size - 1) / 2.0
                tied_both += tied_pairs(labels, i, i + size)
            i += size
        wrong = count_inversions(labels, lo, hi, spare)
        tied_labels = tied_pairs(labels, lo, hi)
        out[4 * q] = n * (n - 1) / 2.0 - tied_scores - tied_labels + tied_both - wrong
        out[4 * q + 1] = wrong
        out[4 * q + 2] = tied_scores
        out[4 * q + 3] = tied_labels


@subroutine
def first_not_above(ideal: Floats, lo: int, hi: int, label: float) -> int:
    """First place in a downward list whose label is not greater than `label`."""
    while lo < hi:
        mid = (lo + hi) // 2
        if ideal[mid] > label:
            lo = mid + 1
        else:
            hi = mid
    return lo


@kernel
def weighted_kendall(
    labels: Floats,
    block: Ints,
    offsets: Ints,
    ideal: Floats,
    top: Floats,
    discount: Floats,
    cutoff: int,
    out: Floats,
    total: Floats,
) -> None:
    """WKT: over the true places j <= cutoff, gain_j * discount_j * (worse ones ranked above).

    A tie in the scores counts one half, a tie in the truth shares its places' discounts.
    Gains are 2^label - 1, divided by 2^top.  `total` gets the sum of gain * discount.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        value, norm = 0.0, 0.0
        i = lo
        while i < hi:
            after = i + block[i]
            for doc in range(i, after):
                first = first_not_above(ideal, lo, hi, labels[doc])
                if first >= end or not labels[doc] > 0.0:
                    continue
                last = first  # one past the places that documents of this label share
                share = 0.0
                while last < hi and ideal[last] == labels[doc]:
                    if last < end:
                        share += discount[last - lo]
                    last += 1
                weight = (np.exp2(labels[doc] - top[q]) - np.exp2(-top[q])) * share / (last - first)
                worse = 0.0
                for other in range(lo, i):
                    if labels[other] < labels[doc]:
                        worse += 1.0
                for other in range(i, after):
                    if labels[other] < labels[doc]:
                        worse += 0.5
                value += weight * worse
                norm += weight
            i = after
        out[q] = value
        total[q] = norm


@kernel
def exact_match_probability(
    labels: Floats, block: Ints, offsets: Ints, ideal: Floats, cutoff: int, out: Floats
) -> None:
    """Chance that the first `cutoff` places carry exactly the labels of the ideal order."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        chance = 1.0
        i = lo
        while i < end and chance > 0.0:
            after = i + block[i]
            used = 0  # documents of the label now wanted that earlier places took
            for place in range(i, min(after, end)):
                if place > i and ideal[place] == ideal[place - 1]:
                    used += 1
                else:
                    used = 0
                have = 0
                for j in range(i, after):
                    if labels[j] == ideal[place]:
                        have += 1
                chance *= max(have - used, 0) / (after - place)
            i = after
        out[q] = chance


@kernel
def preferences(
    labels: Floats,
    block: Ints,
    offsets: Ints,
    weight: Floats,
    cutoff: int,
    right: Floats,
    all_: Floats,
) -> None:
    """Weight of preferences ranked right, and of all that the first `cutoff` places decide.

    A pair is decided if one of its documents stands in the first `cutoff` places; it weighs
    weight[place of the upper one].  Both sums are expectations over the orders of ties.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        good, both = 0.0, 0.0
        i = lo
        while i < end:
            size = block[i]
            after = i + size
            upper, inside = 0.0, 0.0  # mean weight of a document here; of a pair inside the tie
            for place in range(i, min(after, end)):
                upper += weight[place - lo] / size
                if size > 1:
                    lower = after - place - 1
                    inside += weight[place - lo] * 2.0 * lower / (size * (size - 1.0))
            for doc in range(i, after):
                for other in range(after, hi):
                    if labels[doc] > labels[other]:
                        good += upper
                        both += upper
                    elif labels[doc] < labels[other]:
                        both += upper
                for other in range(doc + 1, after):
                    if labels[doc] != labels[other]:
                        good += inside / 2.0
                        both += inside
            i = after
        right[q] = good
        all_[q] = both


@subroutine
def log_choose(n: int, k: int, logs: Floats) -> float:
    """log of n over k from a table of log-factorials."""
    return logs[n] - logs[k] - logs[n - k]


@subroutine
def expected_min(size: int, marked: int, drawn: int, room: int, logs: Floats) -> float:
    """E[min(X, room)], X the marked ones among `drawn` of `size` taken without replacement."""
    least, most = max(0, drawn + marked - size), min(marked, drawn)
    if most <= room:
        return drawn * marked / size
    if least >= room:
        return float(room)
    whole = log_choose(size, drawn, logs)
    total = 0.0
    for x in range(least, most + 1):
        ways = log_choose(marked, x, logs) + log_choose(size - marked, drawn - x, logs)
        total += min(x, room) * np.exp(ways - whole)
    return total


@kernel
def rank_biased_overlap(
    labels: Floats,
    block: Ints,
    offsets: Ints,
    ideal: Floats,
    ideal_offsets: Ints,
    p: float,
    cutoff: int,
    logs: Floats,
    out: Floats,
) -> None:
    """Rank-biased overlap with the ideal order, divided by the ideal order's own.

    Places d = 1, 2, .. weigh p^(d-1); each adds the share of the first d documents that the
    ideal first d holds.  `ideal` lists the labels of the relevant documents, downward; ties in
    it are resolved in favor of the ranking.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        best, size = ideal_offsets[q], ideal_offsets[q + 1] - ideal_offsets[q]
        depth = min(max(hi - lo, size), cutoff)
        got, most, weight = 0.0, 0.0, 1.0
        start, after = lo, lo  # the block of tied scores that place d lies in
        for d in range(1, depth + 1):
            if lo + d > after and after < hi:
                start = after
                after = start + block[start]
            in_ideal = min(d, size)
            if size > 0:
                limit = ideal[best + in_ideal - 1]
                room = in_ideal - (first_not_above(ideal, best, best + size, limit) - best)
                sure, at_limit, tie_sure, tie_limit = 0, 0, 0, 0
                for i in range(lo, start):
                    if labels[i] > limit:
                        sure += 1
                    elif labels[i] == limit:
                        at_limit += 1
                for i in range(start, after):
                    if labels[i] > limit:
                        tie_sure += 1
                    elif labels[i] == limit:
                        tie_limit += 1
                drawn = min(d, hi - lo) - (start - lo)
                shared = float(sure)
                if after > start:
                    shared += tie_sure * drawn / (after - start)
                    left = max(room - at_limit, 0)
                    shared += min(at_limit, room)
                    shared += expected_min(after - start, tie_limit, drawn, left, logs)
                else:
                    shared += min(at_limit, room)
                got += weight * shared / d
            most += weight * in_ideal / d
            weight *= p
            if weight < 1e-18:  # what follows cannot change a double
                break
        out[q] = got / most if most > 0.0 else 0.0
