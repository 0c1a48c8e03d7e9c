"""Slack scaling: the ranking of greatest Delta * (1 + score - own), own being the true one's score.

Rankings that some weight finds (`augmented.ranking_at`) are looked through, by chords or by the
paper's golden section; in short lists single exchanges are tried after that.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.augmented import NOTHING, Query, Room, ranking_at
from firstpage.kernels.native import part
from firstpage.types import Floats, Ints

GOLDEN = 0.6180339887498949
TURNS = 60
ROUNDS = 3  # of the golden section, each from a greater slack
LEAST = 1e-4  # the least loss that weights are looked for


@part
def visit(lam: float, own: float, query: Query, room: Room, best: Floats, kept: Ints) -> int:
    """Look at the ranking that a weight finds, and keep it if its product is greater; 0: none."""
    if ranking_at(lam, query, room) == 0:
        return 0
    items, found = room[2], room[6]
    value = found[0] * (1.0 + found[1] - own)
    if value > best[0] or (value == best[0] and found[0] > best[1]):
        best[0], best[1] = value, found[0]
        for i in range(query[3]):
            kept[i] = items[i]
    return 1


@part
def polish(query: Query, best: Floats, kept: Ints) -> None:
    """Exchange two documents of the best ranking as long as its product rises.

    Corners of the chain lie close together in long lists; between those of a short one there may
    be a better ranking that no weight finds.
    """
    z, b, a, n, depth = query
    for _ in range(n):
        delta = best[1]
        scored = best[0] / delta  # 1 + score - own
        top, first, second = best[0] * (1.0 + 1e-12), -1, -1
        for p in range(min(depth, n)):
            for r in range(p + 1, n):
                drop = a[p] - (a[r] if r < depth else 0.0)
                f = delta + drop * (b[kept[p]] - b[kept[r]])
                g = scored - drop * (z[kept[p]] - z[kept[r]])
                if f > NOTHING and f * g > top:
                    top, first, second = f * g, p, r
        if first < 0:
            break
        drop = a[first] - (a[second] if second < depth else 0.0)
        best[0], best[1] = top, delta + drop * (b[kept[first]] - b[kept[second]])
        kept[first], kept[second] = kept[second], kept[first]


@part
def edge_top(f0: float, g0: float, f1: float, g1: float) -> float:
    """The greatest product of the two coordinates between two points."""
    df, dg = f1 - f0, g1 - g0
    top = max(f0 * g0, f1 * g1)
    if df * dg < 0.0:
        t = -(f0 * dg + g0 * df) / (2.0 * df * dg)
        if 0.0 < t < 1.0:
            top = max(top, (f0 + t * df) * (g0 + t * dg))
    return top


@part
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


@part
def by_chords(own: float, query: Query, room: Room, best: Floats, kept: Ints) -> float:
    """The best product over the rankings that some weight finds; returns a bound above that of any.

    Those rankings are corners of a convex chain, from the greatest score (weight 0) to the
    greatest loss.  A chord between two corners names the next weight to try; the product rises
    along the chain as long as the weight is below (1 + score - own) / Delta.
    """
    found = room[6]
    if visit(0.0, own, query, room, best, kept) == 0:
        return 0.0
    f0, g0 = found[0], 1.0 + found[1] - own
    if g0 <= 0.0:
        return 0.0  # no ranking scores within the margin
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
    return max(edge_top(f0, g0, f1, g1), best[0])


@part
def variational(
    log_lam: float, xi: float, own: float, query: Query, room: Room, best: Floats, kept: Ints
) -> float:
    """F(lam) = max over rankings of score + lam * Delta, less 2 sqrt(xi lam)."""
    lam, found = np.exp(log_lam), room[6]
    visit(lam, own, query, room, best, kept)
    return found[1] + lam * found[0] - 2.0 * np.sqrt(xi * lam)


@part
def by_golden_section(own: float, query: Query, room: Room, best: Floats, kept: Ints) -> float:
    """The same by the paper's search, for the weight at which F is least.

    xi, the slack so far, is the best product seen; it is raised until it stays.
    """
    if visit(0.0, own, query, room, best, kept) == 0:
        return 0.0
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
    return best[0]
