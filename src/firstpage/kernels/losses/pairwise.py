"""The logistic loss of document pairs: u of a higher level against v of a lower one.

Laid out as in `listwise`.  A pair weighs upper[level of u] * weight[u] * lower[level of v] *
weight[v].  No pair is ever written down.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, subroutine, vector_kernel
from firstpage.types import Array, Floats, Ints

MOST = 700.0  # exp of more is infinite
FAR = 600.0  # a spread of scores from which on sums are kept as logarithms


@subroutine
def near_products(
    order: Array,
    weight: Floats,
    lo: int,
    first: int,
    last: int,
    end: Ints,
    upper: Floats,
    lower: Floats,
    z: Floats,
    below: Floats,
    grad: Floats,
    curve: Floats,
    middle: float,
) -> float:
    """Scores so near each other that exp(score - middle) and its inverse are both finite."""
    total = 0.0  # of exp(score) over the levels below
    for level in range(last - 1, first - 1, -1):
        below[level - first] = total
        for i in range(lo + (end[level - 1] if level > first else 0), lo + end[level]):
            z[i] = np.exp(z[i] - middle)
            total += lower[level] * weight[i] * z[i]
    value, total = 0.0, 0.0  # of exp(-score) over the levels above
    start = 0
    for level in range(first, last):
        above = total
        for i in range(lo + start, lo + end[level]):
            inverse = weight[i] / z[i]
            down = upper[level] * below[level - first] * inverse
            up = lower[level] * above * weight[i] * z[i]
            value += down
            total += upper[level] * inverse
            grad[lo + order[i]] = up - down
            if curve.size > 0:
                curve[lo + order[i]] = up + down
        start = end[level]
    return value


@subroutine
def far_products(
    order: Array,
    weight: Floats,
    lo: int,
    first: int,
    last: int,
    end: Ints,
    upper: Floats,
    lower: Floats,
    z: Floats,
    logs: Floats,
    grad: Floats,
    curve: Floats,
) -> float:
    """The same for any scores: sums run as logarithms, and no exponent passes MOST, where the true
    value would be infinite.
    """
    top, total = -np.inf, 0.0  # of exp(score) over the levels below
    for level in range(last - 1, first - 1, -1):
        logs[level - first] = top + np.log(total) if total > 0.0 else -np.inf
        start = end[level - 1] if level > first else 0
        for i in range(start, end[level]):
            s, w = z[lo + i], lower[level] * weight[lo + i]
            if w > 0.0:
                if s > top:
                    total = total * np.exp(top - s) + w
                    top = s
                else:
                    total += w * np.exp(s - top)
    value, top, total = 0.0, -np.inf, 0.0  # of exp(-score) over the levels above
    start = 0
    for level in range(first, last):
        above = top + np.log(total) if total > 0.0 else -np.inf
        for i in range(start, end[level]):
            w = weight[lo + i]
            down = upper[level] * w * np.exp(min(logs[level - first] - z[lo + i], MOST))
            up = lower[level] * w * np.exp(min(above + z[lo + i], MOST))
            value += down
            grad[lo + order[lo + i]] = up - down
            if curve.size > 0:
                curve[lo + order[lo + i]] = up + down
        for i in range(start, end[level]):
            s, w = -z[lo + i], upper[level] * weight[lo + i]
            if w > 0.0:
                if s > top:
                    total = total * np.exp(top - s) + w
                    top = s
                else:
                    total += w * np.exp(s - top)
        start = end[level]
    return value


@kernel
def pairwise_exponential(
    scores: Floats,
    order: Array,
    weight: Floats,
    offsets: Ints,
    firsts: Ints,
    end: Ints,
    upper: Floats,
    lower: Floats,
    z: Floats,
    logs: Floats,
    values: Floats,
    grad: Floats,
    curve: Floats,
) -> None:
    """Sum over pairs of exp(s_v - s_u), in O(n): it factorizes.  `curve`, if not empty, gets the
    second derivatives.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        first, last = firsts[q], firsts[q + 1]
        least, most = np.inf, -np.inf
        for i in range(lo, lo + n):
            s = scores[lo + order[i]]
            z[i] = s
            least, most = min(least, s), max(most, s)
        if most - least < FAR:
            values[q] = near_products(
                order, weight, lo, first, last, end, upper, lower, z, logs, grad, curve,
                0.5 * (least + most),
            )  # fmt: skip
        else:
            values[q] = far_products(
                order, weight, lo, first, last, end, upper, lower, z, logs, grad, curve
            )


NEAR = 40.0  # a spread of scores for which 16 probabilities multiply without underflow
RUN = 16


@subroutine
def gather_scores(
    scores: Floats,
    order: Array,
    weight: Floats,
    lo: int,
    first: int,
    last: int,
    end: Ints,
    lower: Floats,
    z: Floats,
    below: Floats,
    slope: Floats,
) -> float:
    """Scores and lower weights in true order, slopes at 0; returns the spread of the scores."""
    least, most = np.inf, -np.inf
    start = 0
    for level in range(first, last):
        for i in range(start, end[level]):
            s = scores[lo + order[lo + i]]
            z[i] = s
            below[i] = lower[level] * weight[lo + i]
            slope[i] = 0.0
            least, most = min(least, s), max(most, s)
        start = end[level]
    return most - least


@subroutine
def near_pairs(
    z: Floats, e: Floats, slope: Floats, u: int, start: int, n: int, share: float
) -> float:
    """One u against all v from `start` on, of equal weight; e holds exp(z).  Returns the value.

    With a = exp(s_u) and b = exp(s_v) the slope is b / (a + b) and the value log((a + b) / a):
    no exponential for a pair, and one logarithm for RUN of them.
    """
    a = e[u]
    total, value = 0.0, 0.0
    v = start
    while v < n:
        stop = min(v + RUN, n)
        chance = 1.0
        for i in range(v, stop):
            part_ = 1.0 / (a + e[i])
            r = e[i] * part_
            chance *= a * part_
            total += r
            slope[i] += share * r
        value -= np.log(chance)
        v = stop
    slope[u] -= share * total
    return share * value


@subroutine
def far_pairs(
    z: Floats, below: Floats, slope: Floats, u: int, start: int, n: int, share: float
) -> float:
    """The same for any scores and weights."""
    total, value = 0.0, 0.0
    for v in range(start, n):
        if below[v] > 0.0:
            t = z[u] - z[v]
            small = np.exp(-abs(t))
            value += below[v] * (max(-t, 0.0) + np.log1p(small))
            r = below[v] * ((small if t > 0.0 else 1.0) / (1.0 + small))
            total += r
            slope[v] += share * r
    slope[u] -= share * total
    return share * value


@vector_kernel
def pairwise_logistic(
    scores: Floats,
    order: Array,
    weight: Floats,
    offsets: Ints,
    firsts: Ints,
    end: Ints,
    upper: Floats,
    lower: Floats,
    even: int,
    z: Floats,
    e: Floats,
    below: Floats,
    slope: Floats,
    values: Floats,
    grad: Floats,
) -> None:
    """Sum over pairs of log(1 + exp(s_v - s_u)).  `even`: every pair below a level weighs 1."""
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        first, last = firsts[q], firsts[q + 1]
        spread = gather_scores(scores, order, weight, lo, first, last, end, lower, z, below, slope)
        near = even == 1 and spread < NEAR
        if near and last - first > 1:
            for i in range(n):
                e[i] = np.exp(z[i] - z[0])
        value = 0.0
        start = 0
        for level in range(first, last - 1):
            for u in range(start, end[level]):
                share = upper[level] * weight[lo + u]
                if share > 0.0:
                    if near:
                        value += near_pairs(z, e, slope, u, end[level], n, share)
                    else:
                        value += far_pairs(z, below, slope, u, end[level], n, share)
            start = end[level]
        values[q] = value
        for i in range(n):
            grad[lo + order[lo + i]] = slope[i]


@kernel
def pairwise_logistic_curvature(
    scores: Floats,
    order: Array,
    weight: Floats,
    offsets: Ints,
    firsts: Ints,
    end: Ints,
    upper: Floats,
    lower: Floats,
    z: Floats,
    below: Floats,
    curve: Floats,
    out: Floats,
) -> None:
    """Second derivatives: p * (1 - p) of every pair, to both of its documents."""
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        first, last = firsts[q], firsts[q + 1]
        gather_scores(scores, order, weight, lo, first, last, end, lower, z, below, curve)
        start = 0
        for level in range(first, last - 1):
            for u in range(start, end[level]):
                share = upper[level] * weight[lo + u]
                if share <= 0.0:
                    continue
                for v in range(end[level], n):
                    small = np.exp(-abs(z[u] - z[v]))
                    c = share * below[v] * small / ((1.0 + small) * (1.0 + small))
                    curve[u] += c
                    curve[v] += c
            start = end[level]
        for i in range(n):
            out[lo + order[lo + i]] = curve[i]
