"""Slack scaling: find the ranking of greatest Delta * (1 + score - score of the true ranking).

Both factors are linear in the ranking.  Of rankings with 1 + score - true_score + lam * Delta <= M
the product is at most M^2 / (4 lam): every weight `lam` whose best ranking (`ranking_at`) is known
gives an upper bound.  Weights are searched by chords; where their best product is below the bound,
branch and bound closes the gap between them.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import subroutine
from firstpage.core.kernels.sorting import sort_down
from firstpage.core.types import Floats, Ints, Words

ROUNDING_EPS = 1e-12  # a smaller Delta is rounding error
Query = tuple[Floats, Floats, Floats, int, int]
"""(scores, gains, discounts, number of documents, number of discounts)"""
Workspace = tuple[Floats, Words, Ints, Words, Words, Ints, Floats]
"""(keys, keys as words, resulting ranking, three arrays for sorting, its Delta and score)"""


@subroutine
def cheapest_swap(
    key: Floats, b: Floats, a: Floats, items: Ints, n: int, depth: int
) -> tuple[int, int]:
    """Return the two positions whose exchange gives a loss and costs the least, or (-1, -1).

    The order is ideal, so of positions p < r only those matter where r is the first after p with
    another gain and a smaller discount.  Positions from `depth` on have discount 0.
    """
    best, first, second = np.inf, -1, -1
    next_partner = -1  # the partner of position p + 1
    for p in range(min(depth, n) - 1, -1, -1):
        r = p + 1
        while r < n and r < depth and a[r] == a[p]:
            r += 1
        if r < n and b[items[r]] == b[items[p]]:
            if next_partner > r and b[items[p + 1]] == b[items[p]]:
                # The same partner, unless a nearer one has the discount of position p + 1.
                while (
                    r < next_partner
                    and r < depth
                    and a[r] == a[p + 1]
                    and b[items[r]] == b[items[p]]
                ):
                    r += 1
                if r >= depth or a[r] != a[p + 1]:
                    r = next_partner
            while r < n and b[items[r]] == b[items[p]]:
                r += 1
        next_partner = r
        if r >= n:
            continue
        discount_drop = a[p] - (a[r] if r < depth else 0.0)
        cost = discount_drop * (key[items[p]] - key[items[r]])
        if cost < best:
            best, first, second = cost, p, r
    return first, second


@subroutine
def delta_of(query: Query, items: Ints) -> float:
    """Return 1 minus the discounted gain of the ranking."""
    _, b, a, n, depth = query
    gain = 0.0
    for p in range(min(depth, n)):
        gain += a[p] * b[items[p]]
    return 1.0 - gain


@subroutine
def ranking_at(lam: float, query: Query, workspace: Workspace) -> int:
    """Write the ranking with a loss of greatest score + lam * Delta; return 0 if there is none.

    The ranking goes to the third array of the workspace, its Delta and score to the last one.
    """
    z, b, a, n, depth = query
    key, bits, items, words, word_workspace, sort_workspace, result = workspace
    for i in range(n):
        key[i] = z[i] - lam * b[i]
    sort_down(
        scores=key,
        bits=bits,
        lo=0,
        hi=n,
        items=items,
        words=words,
        word_workspace=word_workspace,
        workspace=sort_workspace,
    )
    delta = delta_of(query, items)
    if delta <= ROUNDING_EPS:
        p, r = cheapest_swap(key, b, a, items, n, depth)
        if p < 0:
            return 0
        items[p], items[r] = items[r], items[p]
        delta = delta_of(query, items)
        if delta <= ROUNDING_EPS:
            return 0
    score = 0.0
    for p in range(min(depth, n)):
        score += a[p] * z[items[p]]
    result[0], result[1] = delta, score
    return 1


MAX_CHORDS = 60
GAP_TOLERANCE = 1e-6  # a product within this fraction of its upper bound is optimal
INITIAL_TOLERANCE = 1e-2  # the tolerance that branch and bound begins with
MAX_STEPS = 10_000  # of branch and bound for one list and one tolerance


@subroutine
def visit(
    lam: float,
    true_score: float,
    query: Query,
    workspace: Workspace,
    best: Floats,
    best_ranking: Ints,
) -> int:
    """Evaluate the best ranking at a weight and store it if its product is greater; 0 if none.

    `best` holds the greatest product, its Delta, the least upper bound, and the weight of that.
    """
    if ranking_at(lam, query, workspace) == 0:
        return 0
    items, result = workspace[2], workspace[6]
    margin = 1.0 + result[1] - true_score
    value = result[0] * margin
    if value > best[0] or (value == best[0] and result[0] > best[1]):
        best[0], best[1] = value, result[0]
        for i in range(query[3]):
            best_ranking[i] = items[i]
    if lam > 0.0:
        bound_root = max(margin + lam * result[0], 0.0)
        bound = bound_root * bound_root / (4.0 * lam)
        if bound < best[2]:
            best[2], best[3] = bound, lam
    elif margin <= 0.0:
        best[2] = 0.0  # no ranking scores within the margin
    return 1


@subroutine
def tighten(
    true_score: float, query: Query, workspace: Workspace, best: Floats, best_ranking: Ints
) -> None:
    """Visit the weight at which the bound equals the best product, if that is a vertex."""
    if best[0] > 0.0 and best[2] > best[0] * (1.0 + GAP_TOLERANCE):
        visit(best[0] / best[1] / best[1], true_score, query, workspace, best, best_ranking)


@subroutine
def discount(a: Floats, rank: int, depth: int) -> float:
    """Return the discount of a rank (from 0), 0 beyond `depth`."""
    return a[rank] if rank < depth else 0.0


@subroutine
def greatest_product(
    limit: float,
    lam: float,
    fixed: float,
    first: int,
    levels: int,
    gain: Floats,
    remaining: Ints,
    sums: Floats,
) -> float:
    """Return a bound on the product of rankings with 1 + score - true_score + lam * Delta <= limit.

    Their ranks before `first` gain 1 - `fixed`; after that `remaining` documents per level follow,
    so that Delta lies between its values for descending and for ascending gains.
    """
    low, high, descending, ascending = fixed, fixed, first, first
    for i in range(levels):
        low -= gain[i] * (sums[descending + remaining[i]] - sums[descending])
        descending += remaining[i]
        j = levels - 1 - i
        high -= gain[j] * (sums[ascending + remaining[j]] - sums[ascending])
        ascending += remaining[j]
    f = min(max(limit / (2.0 * lam), low), high)
    return f * (limit - lam * f)


@subroutine
def close_gap(
    true_score: float,
    query: Query,
    workspace: Workspace,
    best: Floats,
    best_ranking: Ints,
    tree_values: Floats,
    tree: Ints,
) -> None:
    """Close the gap between the best product and its bound, with decreasing tolerances."""
    tol = INITIAL_TOLERANCE
    while tol > 0.9 * GAP_TOLERANCE and best[0] > 0.0:
        if best[2] > best[0] * (1.0 + tol):
            if (
                branch_and_bound(
                    tol, true_score, query, workspace, best, best_ranking, tree_values, tree
                )
                == 0
            ):
                break
            best[2] = best[0] * (1.0 + tol)
        tol *= 0.1


@subroutine
def branch_and_bound(
    tol: float,
    true_score: float,
    query: Query,
    workspace: Workspace,
    best: Floats,
    best_ranking: Ints,
    tree_values: Floats,
    tree: Ints,
) -> int:
    """Search all rankings that the bound at its weight does not rule out; return 0 if too many.

    Rankings are ruled out that do not improve on the best one by the tolerance.

    Ranks are filled from the first on, each by the best-scored remaining document of some level;
    the others follow in the order of the weight, which is optimal for them.  The later a document
    comes in that order, the more it costs to take it now, so that a document that is ruled out
    rules out the following ones.  Levels ascend among ranks of equal discount.  `tree_values` and
    `tree` are workspace.
    """
    z, b, a, n, depth = query
    key, bits, items, words, word_workspace, sort_workspace, _ = workspace
    delta, margin, fixed, gain, sums = (
        tree_values[0],
        tree_values[1],
        tree_values[2],
        tree_values[3],
        tree_values[4],
    )
    taken, level, remaining, last_scan = tree[0], tree[1], tree[2], tree[3]
    lam, levels, end = best[3], 0, min(depth, n)
    sums[0] = 0.0
    for i in range(n):
        key[i] = z[i] - lam * b[i]
        sums[i + 1] = sums[i] + discount(a, i, depth)
        if i == 0 or b[i] != b[i - 1]:
            gain[levels], remaining[levels], last_scan[levels] = b[i], 0, 0
            levels += 1
        level[i] = levels - 1
        remaining[levels - 1] += 1
    sort_down(
        scores=key,
        bits=bits,
        lo=0,
        hi=n,
        items=items,
        words=words,
        word_workspace=word_workspace,
        workspace=sort_workspace,
    )
    delta[0], margin[0], fixed[0] = 1.0, 1.0 - true_score, 1.0
    for p in range(end):
        delta[0] -= a[p] * b[items[p]]
        margin[0] += a[p] * z[items[p]]
    p, taken[0], steps, scan = 0, -1, 0, 0
    while p >= 0:
        last_taken = taken[p]
        if last_taken >= 0:  # move the document back to its position
            doc = items[p]
            for i in range(p, p + last_taken):
                items[i] = items[i + 1]
            items[p + last_taken] = doc
            remaining[level[doc]] += 1
        scan += 1
        threshold = best[0] * (1.0 + tol)
        floor = 2.0 * np.sqrt(lam * threshold)
        f, g, t, accepted = delta[p], margin[p], 0, False
        new_f, new_g = f, g
        while p + t < n and not accepted:
            doc = items[p + t]
            discount_drop = a[p] - discount(a, p + t, depth)
            new_f, new_g = f - discount_drop * b[doc], g + discount_drop * z[doc]
            limit = new_g + lam * new_f
            if limit <= floor:
                break
            doc_level = level[doc]
            if last_scan[doc_level] != scan:
                last_scan[doc_level] = scan
                if t > last_taken and not (
                    p > 0 and a[p] == a[p - 1] and doc_level < level[items[p - 1]]
                ):
                    remaining[doc_level] -= 1
                    fixed[p + 1] = fixed[p] - a[p] * b[doc]
                    bound = greatest_product(
                        limit,
                        lam,
                        fixed[p + 1],
                        first=p + 1,
                        levels=levels,
                        gain=gain,
                        remaining=remaining,
                        sums=sums,
                    )
                    accepted = bound > threshold
                    remaining[doc_level] += 0 if accepted else 1
            if not accepted:
                discount_step = discount(a, p + t, depth) - discount(a, p + t + 1, depth)
                f, g, t = f + discount_step * b[doc], g - discount_step * z[doc], t + 1
        steps += t + 1
        if steps > MAX_STEPS:
            return 0
        if not accepted:
            p -= 1
            continue
        doc = items[p + t]
        for i in range(p + t, p, -1):
            items[i] = items[i - 1]
        items[p], taken[p] = doc, t
        if new_f > ROUNDING_EPS and new_f * new_g > best[0]:
            best[0], best[1] = new_f * new_g, new_f
            for i in range(n):
                best_ranking[i] = items[i]
        if p + 1 < end:
            p += 1
            delta[p], margin[p], taken[p] = new_f, new_g, -1
    return 1


@subroutine
def max_weight(z: Floats, b: Floats, n: int) -> float:
    """Return a weight from which on gains alone determine the order."""
    min_score, max_score, gain_gap = z[0], z[0], np.inf
    min_gain, max_gain = b[0], b[0]
    for i in range(n):
        min_score, max_score = min(min_score, z[i]), max(max_score, z[i])
        min_gain, max_gain = min(min_gain, b[i]), max(max_gain, b[i])
    for i in range(n):
        if b[i] > min_gain:
            gain_gap = min(gain_gap, b[i] - min_gain)
    gain_gap = min(gain_gap, 1e-3 * (max_gain - min_gain)) if gain_gap < np.inf else 1.0
    return 1.0 + 2.0 * (max_score - min_score) / gain_gap


@subroutine
def chord_search(
    true_score: float, query: Query, workspace: Workspace, best: Floats, best_ranking: Ints
) -> int:
    """Search the rankings that are best at some weight by chords; return 0 if no product is > 0.

    These rankings are vertices of a convex chain, from the greatest score (weight 0) to the
    greatest loss.  The chord between two vertices gives the next weight to try; the product
    increases along the chain as long as the weight is below (1 + score - true_score) / Delta.
    """
    result = workspace[6]
    if visit(0.0, true_score, query, workspace, best, best_ranking) == 0:
        return 0
    f0, g0 = result[0], 1.0 + result[1] - true_score
    if g0 <= 0.0:
        return 0  # no ranking scores within the margin
    visit(
        max_weight(query[0], query[1], query[3]), true_score, query, workspace, best, best_ranking
    )
    f1, g1 = result[0], 1.0 + result[1] - true_score
    for _ in range(MAX_CHORDS):
        if f1 - f0 <= ROUNDING_EPS or g0 - g1 <= ROUNDING_EPS:
            break
        lam = (g0 - g1) / (f1 - f0)
        visit(lam, true_score, query, workspace, best, best_ranking)
        f, g = result[0], 1.0 + result[1] - true_score
        if g + lam * f <= g0 + lam * f0 + 1e-12 * (1.0 + abs(g0) + lam):
            break  # the chord is an edge
        if lam * f < g:
            f0, g0 = f, g
        else:
            f1, g1 = f, g
    tighten(true_score, query, workspace, best, best_ranking)
    return 1
