"""The exponential loss of document pairs, which factorises: exp(s_v - s_u) = exp(s_v) / exp(s_u).

Laid out as in `pairwise`.  Sums over the levels below and above a document do for all its pairs.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.native import kernel, part
from firstpage.types import Array, Floats, Ints

MOST = 700.0  # exp of more is infinite
FAR = 600.0  # a spread of scores from which on sums are kept as logarithms


@part
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


@part
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
def exponential_pairs(
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
    """Sum over pairs of exp(s_v - s_u), in O(n): it factorises.  `curve`, if not empty, gets the
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
