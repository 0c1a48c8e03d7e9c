"""Slack scaling: the ranking of greatest Delta * (1 + score - own), own being the true one's score.

Both factors are linear in the ranking.  Of rankings with 1 + score - own + lam * Delta <= M the
product is at most M^2 / (4 lam): every weight `lam` whose best ranking (`augmented.ranking_at`) is
known gives an upper bound.  Weights are looked through by chords or by the paper's golden section;
where chords leave the best product below the bound, branch and bound closes the gap between them.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import subroutine
from firstpage.kernels.sorting import sort_down
from firstpage.types import Floats, Ints, Words

NOTHING = 1e-12  # a Delta below it is rounding
Query = tuple[Floats, Floats, Floats, int, int]
"""(scores, gains, discounts, number of documents, number of discounts)"""
Room = tuple[Floats, Words, Ints, Words, Words, Ints, Floats]
"""(keys, the same as words, the ranking found, three for sorting, its Delta and score)"""


@subroutine
def cheapest_swap(
    key: Floats, b: Floats, a: Floats, items: Ints, n: int, depth: int
) -> tuple[int, int]:
    """The two places whose exchange gives a loss and costs the least; (-1, -1): there are none.

    The order is ideal, so of places p < r only those matter where r is the first after p with
    another gain and a smaller discount.  Places from `depth` on have no discount.
    """
    best, first, second = np.inf, -1, -1
    after = -1  # the partner of the place looked at before, one further down
    for p in range(min(depth, n) - 1, -1, -1):
        r = p + 1
        while r < n and r < depth and a[r] == a[p]:
            r += 1
        if r < n and b[items[r]] == b[items[p]]:
            if after > r and b[items[p + 1]] == b[items[p]]:
                # The same partner; unless one is nearer that has the next place's discount.
                while r < after and r < depth and a[r] == a[p + 1] and b[items[r]] == b[items[p]]:
                    r += 1
                if r >= depth or a[r] != a[p + 1]:
                    r = after
            while r < n and b[items[r]] == b[items[p]]:
                r += 1
        after = r
        if r >= n:
            continue
        drop = a[p] - (a[r] if r < depth else 0.0)
        cost = drop * (key[items[p]] - key[items[r]])
        if cost < best:
            best, first, second = cost, p, r
    return first, second


@subroutine
def delta_of(query: Query, items: Ints) -> float:
    """1 less what the ranking collects."""
    _, b, a, n, depth = query
    gain = 0.0
    for p in range(min(depth, n)):
        gain += a[p] * b[items[p]]
    return 1.0 - gain


@subroutine
def ranking_at(lam: float, query: Query, room: Room) -> int:
    """The ranking with a loss of greatest score + lam * Delta, into the room; 0: there is none.

    Its Delta and its score are written into the last array of the room.
    """
    z, b, a, n, depth = query
    key, bits, items, words, spare_words, spare, found = room
    for i in range(n):
        key[i] = z[i] - lam * b[i]
    sort_down(key, bits, 0, n, items, words, spare_words, spare)
    delta = delta_of(query, items)
    if delta <= NOTHING:
        p, r = cheapest_swap(key, b, a, items, n, depth)
        if p < 0:
            return 0
        items[p], items[r] = items[r], items[p]
        delta = delta_of(query, items)
        if delta <= NOTHING:
            return 0
    score = 0.0
    for p in range(min(depth, n)):
        score += a[p] * z[items[p]]
    found[0], found[1] = delta, score
    return 1


GOLDEN = 0.6180339887498949
TURNS = 60
ROUNDS = 3  # of the golden section, each from a greater slack
LEAST = 1e-4  # the least loss that weights are looked for
TIGHT = 1e-6  # a product within this fraction of its upper bound is the greatest
ROUGH = 1e-2  # the tolerance that branch and bound begins with
MAX_STEPS = 10_000  # of branch and bound for one list and one tolerance


@subroutine
def visit(lam: float, own: float, query: Query, room: Room, best: Floats, kept: Ints) -> int:
    """Look at the ranking that a weight finds, and keep it if its product is greater; 0: none.

    `best` holds the greatest product, its Delta, the least upper bound, and the weight of that.
    """
    if ranking_at(lam, query, room) == 0:
        return 0
    items, found = room[2], room[6]
    scored = 1.0 + found[1] - own
    value = found[0] * scored
    if value > best[0] or (value == best[0] and found[0] > best[1]):
        best[0], best[1] = value, found[0]
        for i in range(query[3]):
            kept[i] = items[i]
    if lam > 0.0:
        reach = max(scored + lam * found[0], 0.0)
        bound = reach * reach / (4.0 * lam)
        if bound < best[2]:
            best[2], best[3] = bound, lam
    elif scored <= 0.0:
        best[2] = 0.0  # no ranking scores within the margin
    return 1


@subroutine
def tighten(own: float, query: Query, room: Room, best: Floats, kept: Ints) -> None:
    """Visit the weight at which the bound is the best product, if that is a corner of the chain."""
    if best[0] > 0.0 and best[2] > best[0] * (1.0 + TIGHT):
        visit(best[0] / best[1] / best[1], own, query, room, best, kept)


@subroutine
def discount(a: Floats, rank: int, depth: int) -> float:
    return a[rank] if rank < depth else 0.0


@subroutine
def greatest_product(
    reach: float, lam: float, fixed: float, first: int, levels: int, gain: Floats, left: Ints,
    sums: Floats,
) -> float:  # fmt: skip
    """A bound on the product of rankings with 1 + score - own + lam * Delta <= reach.

    Their ranks before `first` cost 1 - `fixed`; after that there are `left` documents per level,
    so that Delta is between what falling and what rising gains give.
    """
    low, high, down, up = fixed, fixed, first, first
    for i in range(levels):
        low -= gain[i] * (sums[down + left[i]] - sums[down])
        down += left[i]
        j = levels - 1 - i
        high -= gain[j] * (sums[up + left[j]] - sums[up])
        up += left[j]
    f = min(max(reach / (2.0 * lam), low), high)
    return f * (reach - lam * f)


@subroutine
def close_gap(
    own: float, query: Query, room: Room, best: Floats, kept: Ints, at: Floats, tree: Ints
) -> None:
    """Bring the best product and its bound together, from a rough tolerance to a tight one."""
    tol = ROUGH
    while tol > 0.9 * TIGHT and best[0] > 0.0:
        if best[2] > best[0] * (1.0 + tol):
            if branch_and_bound(tol, own, query, room, best, kept, at, tree) == 0:
                break
            best[2] = best[0] * (1.0 + tol)
        tol *= 0.1


@subroutine
def branch_and_bound(
    tol: float, own: float, query: Query, room: Room, best: Floats, kept: Ints, at: Floats,
    tree: Ints,
) -> int:  # fmt: skip
    """Look through all rankings that the bound at its weight does not rule out; 0: too many.

    Those are ruled out that are not better than the best by the tolerance.

    Ranks are filled from the first on, each by the best-scored document left of some level; the
    others follow in the order of the weight, which is optimal for them.  The later a document comes
    in that order the more it costs to take it now, so that one which is ruled out rules out the
    rest.  Levels rise among ranks of equal discount.  `at` and `tree` are workspace.
    """
    z, b, a, n, depth = query
    key, bits, items, words, spare_words, spare, _ = room
    delta, scored, fixed, gain, sums = at[0], at[1], at[2], at[3], at[4]
    taken, level, left, seen = tree[0], tree[1], tree[2], tree[3]
    lam, levels, end = best[3], 0, min(depth, n)
    sums[0] = 0.0
    for i in range(n):
        key[i] = z[i] - lam * b[i]
        sums[i + 1] = sums[i] + discount(a, i, depth)
        if i == 0 or b[i] != b[i - 1]:
            gain[levels], left[levels], seen[levels] = b[i], 0, 0
            levels += 1
        level[i] = levels - 1
        left[levels - 1] += 1
    sort_down(key, bits, 0, n, items, words, spare_words, spare)
    delta[0], scored[0], fixed[0] = 1.0, 1.0 - own, 1.0
    for p in range(end):
        delta[0] -= a[p] * b[items[p]]
        scored[0] += a[p] * z[items[p]]
    p, taken[0], steps, scan = 0, -1, 0, 0
    while p >= 0:
        last = taken[p]
        if last >= 0:  # back to where it stood
            who = items[p]
            for i in range(p, p + last):
                items[i] = items[i + 1]
            items[p + last] = who
            left[level[who]] += 1
        scan += 1
        above = best[0] * (1.0 + tol)
        floor = 2.0 * np.sqrt(lam * above)
        f, g, t, found = delta[p], scored[p], 0, False
        new_f, new_g = f, g
        while p + t < n and not found:
            who = items[p + t]
            drop = a[p] - discount(a, p + t, depth)
            new_f, new_g = f - drop * b[who], g + drop * z[who]
            reach = new_g + lam * new_f
            if reach <= floor:
                break
            mine = level[who]
            if seen[mine] != scan:
                seen[mine] = scan
                if t > last and not (p > 0 and a[p] == a[p - 1] and mine < level[items[p - 1]]):
                    left[mine] -= 1
                    fixed[p + 1] = fixed[p] - a[p] * b[who]
                    top = greatest_product(
                        reach, lam, fixed[p + 1], p + 1, levels, gain, left, sums
                    )
                    found = top > above
                    left[mine] += 0 if found else 1
            if not found:
                step = discount(a, p + t, depth) - discount(a, p + t + 1, depth)
                f, g, t = f + step * b[who], g - step * z[who], t + 1
        steps += t + 1
        if steps > MAX_STEPS:
            return 0
        if not found:
            p -= 1
            continue
        who = items[p + t]
        for i in range(p + t, p, -1):
            items[i] = items[i - 1]
        items[p], taken[p] = who, t
        if new_f > NOTHING and new_f * new_g > best[0]:
            best[0], best[1] = new_f * new_g, new_f
            for i in range(n):
                kept[i] = items[i]
        if p + 1 < end:
            p += 1
            delta[p], scored[p], taken[p] = new_f, new_g, -1
    return 1


@subroutine
def widest(z: Floats, b: Floats, n: int) -> float:
    """A weight from which on gains alone decide."""
    low, high, gap = z[0], z[0], np.inf
    least, most = b[0], b[0]
    for i in range(n):
        low, high = min(low, z[i]), max(high, z[i])
        least, most = min(least, b[i]), max(most, b[i])
    for i in range(n):
        if b[i] > least:
            gap = min(gap, b[i] - least)
    gap = min(gap, 1e-3 * (most - least)) if gap < np.inf else 1.0
    return 1.0 + 2.0 * (high - low) / gap


@subroutine
def by_chords(own: float, query: Query, room: Room, best: Floats, kept: Ints) -> int:
    """The best product over the rankings that some weight finds; 0: none has one above 0.

    Those rankings are corners of a convex chain, from the greatest score (weight 0) to the
    greatest loss.  A chord between two corners names the next weight to try; the product rises
    along the chain as long as the weight is below (1 + score - own) / Delta.
    """
    found = room[6]
    if visit(0.0, own, query, room, best, kept) == 0:
        return 0
    f0, g0 = found[0], 1.0 + found[1] - own
    if g0 <= 0.0:
        return 0  # no ranking scores within the margin
    visit(widest(query[0], query[1], query[3]), own, query, room, best, kept)
    f1, g1 = found[0], 1.0 + found[1] - own
    for _ in range(TURNS):
        if f1 - f0 <= NOTHING or g0 - g1 <= NOTHING:
            break
        lam = (g0 - g1) / (f1 - f0)
        visit(lam, own, query, room, best, kept)
        f, g = found[0], 1.0 + found[1] - own
        if g + lam * f <= g0 + lam * f0 + 1e-12 * (1.0 + abs(g0) + lam):
            break  # the chord is an edge
        if lam * f < g:
            f0, g0 = f, g
        else:
            f1, g1 = f, g
    tighten(own, query, room, best, kept)
    return 1


@subroutine
def variational(
    log_lam: float, xi: float, own: float, query: Query, room: Room, best: Floats, kept: Ints
) -> float:
    """F(lam) = max over rankings of score + lam * Delta, less 2 sqrt(xi lam)."""
    lam, found = np.exp(log_lam), room[6]
    visit(lam, own, query, room, best, kept)
    return found[1] + lam * found[0] - 2.0 * np.sqrt(xi * lam)


@subroutine
def by_golden_section(own: float, query: Query, room: Room, best: Floats, kept: Ints) -> int:
    """The same by the paper's search, for the weight at which F is least.

    xi, the slack so far, is the best product seen; it is raised until it stays.
    """
    if visit(0.0, own, query, room, best, kept) == 0:
        return 0
    visit(1.0, own, query, room, best, kept)
    for _ in range(ROUNDS):
        xi = best[0]
        if xi <= NOTHING:
            break
        low, high = np.log(xi), np.log(xi / LEAST**2)
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left = variational(left, xi, own, query, room, best, kept)
        at_right = variational(right, xi, own, query, room, best, kept)
        while high - low > 1e-3:
            if at_left < at_right:
                high, right, at_right = right, left, at_left
                left = high - GOLDEN * (high - low)
                at_left = variational(left, xi, own, query, room, best, kept)
            else:
                low, left, at_left = left, right, at_right
                right = low + GOLDEN * (high - low)
                at_right = variational(right, xi, own, query, room, best, kept)
        if best[0] <= xi * (1.0 + 1e-6):
            break
    tighten(own, query, room, best, kept)
    return 1
