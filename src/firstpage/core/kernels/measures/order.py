"""Measures of order: concordant and discordant pairs, exact matches, rank-biased overlap.

`labels` are in ranked order and judged (no NaN); `tie_sizes` gives the ties of the scores.
Documents of equal label have no preferred order, so such pairs never count.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.types import Floats, Ints

SMALLEST_WEIGHT = 1e-18  # of a depth; further ones are below double precision


@subroutine
def count_inversions(labels: Floats, lo: int, hi: int, workspace: Floats) -> float:
    """Return the number of pairs i < j with labels[i] < labels[j].

    Sorts labels[lo:hi] in descending order (merge sort).
    """
    total = 0.0
    width = 1
    while width < hi - lo:
        left = lo
        while left < hi:
            mid, right = min(left + width, hi), min(left + 2 * width, hi)
            a, b = left, mid
            for out in range(left, right):
                if a < mid and (b >= right or labels[a] >= labels[b]):
                    workspace[out] = labels[a]
                    a += 1
                else:
                    workspace[out] = labels[b]
                    total += mid - a
                    b += 1
            left = right
        for i in range(lo, hi):
            labels[i] = workspace[i]
        width *= 2
    return total


@subroutine
def tied_pairs(sorted_labels: Floats, lo: int, hi: int) -> float:
    """Return the number of pairs with equal labels."""
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
def concordance(
    labels: Floats, tie_sizes: Ints, offsets: Ints, workspace: Floats, out: Floats
) -> None:
    """Write four numbers per query: pairs concordant, discordant, tied in score, tied in label.

    Pairs tied in both count in the last two.  Overwrites `labels`.  O(n log n).
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        tied_scores, tied_both = 0.0, 0.0
        i = lo
        while i < hi:
            size = tie_sizes[i]
            if size > 1:  # sorted inside a tie, so that it has no inversion
                count_inversions(labels, i, i + size, workspace)
                tied_scores += size * (size - 1) / 2.0
                tied_both += tied_pairs(labels, i, i + size)
            i += size
        discordant = count_inversions(labels, lo, hi, workspace)
        tied_labels = tied_pairs(labels, lo, hi)
        out[4 * q] = n * (n - 1) / 2.0 - tied_scores - tied_labels + tied_both - discordant
        out[4 * q + 1] = discordant
        out[4 * q + 2] = tied_scores
        out[4 * q + 3] = tied_labels


@subroutine
def first_not_above(ideal: Floats, lo: int, hi: int, label: float) -> int:
    """Return the first position in a descending list whose label is not above `label`."""
    while lo < hi:
        mid = (lo + hi) // 2
        if ideal[mid] > label:
            lo = mid + 1
        else:
            hi = mid
    return lo


@subroutine
def last_of_label(ideal: Floats, lo: int, hi: int, label: float) -> int:
    """Return the first position in a descending list whose label is below `label`."""
    while lo < hi:
        mid = (lo + hi) // 2
        if ideal[mid] >= label:
            lo = mid + 1
        else:
            hi = mid
    return lo


@subroutine
def tree_add(tree: Ints, at: int, size: int, amount: int) -> None:
    """Add to the count at a position 0..size - 1 of a Fenwick tree."""
    at += 1
    while at <= size:
        tree[at] += amount
        at += at & -at


@subroutine
def tree_sum(tree: Ints, end: int) -> int:
    """Return the sum of the counts at the positions before `end`."""
    total = np.int64(0)
    while end > 0:
        total += tree[end]
        end -= end & -end
    return total


@kernel
def weighted_kendall(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    ideal: Floats,
    max_label: Floats,
    discount: Floats,
    unit_gains: int,
    cutoff: int,
    weights: Floats,
    tree: Ints,
    worse_above: Ints,
    out: Floats,
    total: Floats,
) -> None:
    """Write WKT: the sum over true ranks j <= cutoff of gain * discount * (worse ones above).

    A tie in the scores counts one half; documents tied in the truth get the mean of the discounts
    of their ranks.  Gains are 2^label - 1, divided by 2^max_label; 1 if `unit_gains` is 1.  `total`
    receives the sum of gain * discount.  Documents ranked above are counted by label in a Fenwick
    tree, so the cost is O(n log n); `weights`, `tree` and `worse_above` are workspace, longer than
    the longest query.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        end = min(n, cutoff)
        first = np.int64(0)
        while first < n:  # the weight of each label, at its first true rank
            last, discount_sum = first, 0.0
            while last < n and ideal[lo + last] == ideal[lo + first]:
                if last < end:
                    discount_sum += discount[last]
                last += 1
            gain = 1.0
            if unit_gains == 0:
                gain = np.exp2(ideal[lo + first] - max_label[q]) - np.exp2(-max_label[q])
            weights[first] = gain * discount_sum / (last - first)
            first = last
        for i in range(n + 1):
            tree[i] = 0
        value, norm = 0.0, 0.0
        i = lo
        while i < hi:
            after = i + tie_sizes[i]
            for doc in range(i, after):
                first = first_not_above(ideal, lo, hi, labels[doc]) - lo
                worse_above[doc - i] = i - lo - tree_sum(tree, first + 1)
            for doc in range(i, after):
                tree_add(tree, first_not_above(ideal, lo, hi, labels[doc]) - lo, n, 1)
            for doc in range(i, after):
                first = first_not_above(ideal, lo, hi, labels[doc]) - lo
                if first >= end or (unit_gains == 0 and not labels[doc] > 0.0):
                    continue
                worse = after - lo - tree_sum(tree, first + 1)  # the documents of the tie included
                value += weights[first] * ((worse + worse_above[doc - i]) / 2.0)
                norm += weights[first]
            i = after
        out[q] = value
        total[q] = norm


@kernel
def exact_match_probability(
    labels: Floats, tie_sizes: Ints, offsets: Ints, ideal: Floats, cutoff: int, out: Floats
) -> None:
    """Write the probability that the first `cutoff` ranks have the labels of the ideal order."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        end = min(hi, lo + cutoff)
        probability = 1.0
        i = lo
        while i < end and probability > 0.0:
            after = i + tie_sizes[i]
            available = 0  # documents of the required label that earlier ranks did not take
            for rank in range(i, min(after, end)):
                if rank > i and ideal[rank] == ideal[rank - 1]:
                    available -= 1
                elif probability > 0.0:
                    available = 0
                    for j in range(i, after):
                        if labels[j] == ideal[rank]:
                            available += 1
                probability *= max(available, 0) / (after - rank)
            i = after
        out[q] = probability


@kernel
def preferences(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    ideal: Floats,
    weight: Floats,
    cutoff: int,
    tree: Ints,
    counts: Ints,
    correct: Floats,
    decided: Floats,
) -> None:
    """Write the weight of correct preferences, and of all that the first `cutoff` ranks decide.

    A pair is decided if one of its documents is in the first `cutoff` ranks; its weight is
    weight[rank of the upper one].  Both sums are expectations over the orders of ties.  Documents
    ranked above are counted by label in a Fenwick tree, so the cost is O(n log n); `tree` and
    `counts` are workspace, longer than the longest query.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        n = hi - lo
        end = min(hi, lo + cutoff)
        for i in range(n + 1):
            tree[i] = 0
            counts[i] = 0
        correct_sum, decided_sum = 0.0, 0.0
        i = lo
        while i < end:
            size = tie_sizes[i]
            after = i + size
            upper, inside = 0.0, 0.0  # mean weight of a document here; of a pair inside the tie
            for rank in range(i, min(after, end)):
                upper += weight[rank - lo] / size
                if size > 1:
                    lower = after - rank - 1
                    inside += weight[rank - lo] * 2.0 * lower / (size * (size - 1.0))
            different = size * (size - 1.0) / 2.0  # pairs inside the tie with different labels
            for doc in range(i, after):
                first = first_not_above(ideal, lo, hi, labels[doc]) - lo
                different -= counts[first]
                counts[first] += 1
                tree_add(tree, first, n, 1)
            for doc in range(i, after):
                first = first_not_above(ideal, lo, hi, labels[doc]) - lo
                counts[first] = 0
                last = last_of_label(ideal, lo, hi, labels[doc]) - lo
                greater_below = first - tree_sum(tree, first)
                smaller_below = (n - last) - (after - lo - tree_sum(tree, first + 1))
                correct_sum += upper * smaller_below
                decided_sum += upper * (smaller_below + greater_below)
            correct_sum += inside / 2.0 * different
            decided_sum += inside * different
            i = after
        correct[q] = correct_sum
        decided[q] = decided_sum


@subroutine
def log_choose(n: int, k: int, log_factorials: Floats) -> float:
    """Return the log of n choose k from a table of log-factorials."""
    return log_factorials[n] - log_factorials[k] - log_factorials[n - k]


@subroutine
def expected_min(
    size: int, successes: int, drawn: int, limit: int, log_factorials: Floats
) -> float:
    """Return E[min(X, limit)] of a hypergeometric X: successes among `drawn` of `size` items."""
    minimum, maximum = max(0, drawn + successes - size), min(successes, drawn)
    if maximum <= limit:
        return drawn * successes / size
    if minimum >= limit:
        return float(limit)
    log_total = log_choose(size, drawn, log_factorials)
    mean = drawn * successes / size
    margin = 12.0 * np.sqrt(mean * (1.0 - successes / size)) + 30.0  # beyond, less than 1e-20
    total = 0.0
    for x in range(max(minimum, int(mean - margin)), min(maximum, int(mean + margin)) + 1):
        log_ways = log_choose(successes, x, log_factorials) + log_choose(
            size - successes, drawn - x, log_factorials
        )
        total += min(x, limit) * np.exp(log_ways - log_total)
    return total


@subroutine
def move_tie(
    labels: Floats,
    start: int,
    after: int,
    ideal: Floats,
    ideal_start: int,
    size: int,
    tree: Ints,
    amount: int,
) -> None:
    """Add the relevant documents of a tie to a tree of their labels, or take them out again."""
    for i in range(start, after):
        first = first_not_above(ideal, ideal_start, ideal_start + size, labels[i]) - ideal_start
        if first < size and ideal[ideal_start + first] == labels[i]:
            tree_add(tree, first, size, amount)


@kernel
def rank_biased_overlap(
    labels: Floats,
    tie_sizes: Ints,
    offsets: Ints,
    ideal: Floats,
    ideal_offsets: Ints,
    p: float,
    cutoff: int,
    truncated: int,
    endless: float,
    log_factorials: Floats,
    above: Ints,
    tied: Ints,
    out: Floats,
) -> None:
    """Write the rank-biased overlap with the ideal order, divided by that of the ideal order.

    Depth d has weight p^(d-1); it adds the fraction of the first d documents that are in the ideal
    first d.  Depths below the ends of both lists count too, unless `truncated` is 1.  `endless` is
    the sum of p^(d-1) / d over all depths, or 0 to add up the depths to the cut-off.  `ideal` holds
    the labels of the relevant documents in descending order; ties in it are resolved in favor of
    the ranking.  `above` and `tied` count, by label, the relevant documents above the tie that
    contains rank d and inside of it, in Fenwick trees; they are workspace, longer than the longest
    ideal list.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        ideal_start, size = ideal_offsets[q], ideal_offsets[q + 1] - ideal_offsets[q]
        depth = min(max(hi - lo, size), cutoff)
        overlap, ideal_overlap, weight, shared, reached = 0.0, 0.0, 1.0, 0.0, 0.0
        for i in range(size + 1):
            above[i], tied[i] = 0, 0
        start, after = lo, lo  # the run of tied scores that contains rank d
        for d in range(1, depth + 1):
            if lo + d > after and after < hi:
                move_tie(labels, start, after, ideal, ideal_start, size, tree=tied, amount=-1)
                move_tie(labels, start, after, ideal, ideal_start, size, tree=above, amount=1)
                start = after
                after = start + tie_sizes[start]
                move_tie(labels, start, after, ideal, ideal_start, size, tree=tied, amount=1)
            in_ideal = min(d, size)
            if size > 0:
                limit_label = ideal[ideal_start + in_ideal - 1]
                first = first_not_above(ideal, ideal_start, ideal_start + size, limit_label)
                first -= ideal_start
                capacity = in_ideal - first
                above_limit = tree_sum(above, first)
                at_limit = tree_sum(above, first + 1) - above_limit
                tie_above = tree_sum(tied, first)
                tie_limit = tree_sum(tied, first + 1) - tie_above
                drawn = min(d, hi - lo) - (start - lo)
                shared = float(above_limit)
                if after > start:
                    shared += tie_above * drawn / (after - start)
                    remaining = max(capacity - at_limit, 0)
                    shared += min(at_limit, capacity)
                    shared += expected_min(
                        after - start, tie_limit, drawn, remaining, log_factorials
                    )
                else:
                    shared += min(at_limit, capacity)
                overlap += weight * shared / d
            ideal_overlap += weight * in_ideal / d
            reached += weight / d
            weight *= p
            if weight < SMALLEST_WEIGHT:
                break
        if not truncated:
            d, rest = depth + 1, max(endless - reached, 0.0)
            while endless == 0.0 and d <= cutoff and weight >= SMALLEST_WEIGHT:
                rest += weight / d
                weight *= p
                d += 1
            overlap += shared * rest
            ideal_overlap += size * rest
        out[q] = overlap / ideal_overlap if ideal_overlap > 0.0 else 0.0
