"""Pairwise hinge and exponential losses of label differences times score differences.

Arguments are laid out as in `pairwise`, with one label per level.  A pair of u of a higher level
and v of a lower one has the margin label_u - label_v, by which the difference of their scores is
multiplied.  All pairs are enumerated.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.losses.pairwise import gather_scores
from firstpage.core.types import Array, Floats, Ints

MAX_EXPONENT = 600.0  # so that sums of terms times squared margins are finite


@subroutine
def hinge_row(
    z: Floats,
    lower_weight: Floats,
    grad_sorted: Floats,
    u: int,
    start: int,
    stop: int,
    pair_weight: float,
    margin: float,
) -> float:
    """Add the pairs of u with v in start:stop, of one margin; return their loss."""
    total, value = 0.0, 0.0
    for v in range(start, stop):
        t = 1.0 - margin * (z[u] - z[v])
        if t > 0.0:
            w = pair_weight * lower_weight[v]
            value += w * t
            total += w * margin
            grad_sorted[v] += w * margin
    grad_sorted[u] -= total
    return value


@subroutine
def exponential_row(
    z: Floats,
    lower_weight: Floats,
    grad_sorted: Floats,
    hessian_sorted: Floats,
    u: int,
    start: int,
    stop: int,
    pair_weight: float,
    margin: float,
) -> float:
    """Add the pairs of u with v in start:stop, of one margin; return their loss."""
    total = 0.0
    for v in range(start, stop):
        exponent = min(margin * (z[v] - z[u]), MAX_EXPONENT)
        term = pair_weight * lower_weight[v] * np.exp(exponent)
        total += term
        grad_sorted[v] += margin * term
        hessian_sorted[v] += margin * margin * term
    grad_sorted[u] -= margin * total
    hessian_sorted[u] += margin * margin * total
    return total


@kernel
def label_margin_loss(
    scores: Floats,
    order: Array,
    weight: Floats,
    offsets: Ints,
    firsts: Ints,
    end: Ints,
    upper: Floats,
    lower: Floats,
    label: Floats,
    hinge: int,
    z: Floats,
    lower_weight: Floats,
    grad_sorted: Floats,
    hessian_sorted: Floats,
    values: Floats,
    grad: Floats,
    hessian: Floats,
) -> None:
    """Write the sum over pairs of max(0, 1 - m (s_u - s_v)), m the margin, or of exp(-m (s_u -
    s_v)) if `hinge` is 0, and its gradient.

    `hessian`, if not empty, receives the second derivatives of the exponential loss.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        first, last = firsts[q], firsts[q + 1]
        gather_scores(
            scores, order, weight, lo, first, last, end, lower, z, lower_weight, grad_sorted
        )
        for i in range(n):
            hessian_sorted[i] = 0.0
        value, start = 0.0, 0
        for level in range(first, last - 1):
            for u in range(start, end[level]):
                w = upper[level] * weight[lo + u]
                if w <= 0.0:
                    continue
                for other in range(level + 1, last):
                    margin = label[level] - label[other]
                    if hinge == 1:
                        value += hinge_row(
                            z,
                            lower_weight,
                            grad_sorted,
                            u,
                            start=end[other - 1],
                            stop=end[other],
                            pair_weight=w,
                            margin=margin,
                        )
                    else:
                        value += exponential_row(
                            z,
                            lower_weight,
                            grad_sorted,
                            hessian_sorted,
                            u,
                            start=end[other - 1],
                            stop=end[other],
                            pair_weight=w,
                            margin=margin,
                        )
            start = end[level]
        values[q] = value
        for i in range(n):
            grad[lo + order[lo + i]] = grad_sorted[i]
            if hessian.size > 0:
                hessian[lo + order[lo + i]] = hessian_sorted[i]
