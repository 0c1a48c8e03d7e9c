"""Pairwise exponential and logistic losses: u of a higher level against v of a lower one.

Arguments are laid out as in `listwise`.  A pair has the weight upper[level of u] * weight[u] *
lower[level of v] * weight[v].  Pairs are never stored.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine, vector_kernel
from firstpage.core.types import Array, Floats, Ints

MAX_EXPONENT = 700.0  # exp of more overflows
MAX_EXP_RANGE = 600.0  # from this range of scores on, sums are computed as logarithms


@subroutine
def exponential_direct(
    order: Array,
    weight: Floats,
    lo: int,
    first: int,
    last: int,
    end: Ints,
    upper: Floats,
    lower: Floats,
    z: Floats,
    sum_below: Floats,
    grad: Floats,
    hessian: Floats,
    center: float,
) -> float:
    """Return the loss where exp(score - center) and its inverse are finite for all scores."""
    total = 0.0  # of exp(score) over the levels below
    for level in range(last - 1, first - 1, -1):
        sum_below[level - first] = total
        for i in range(lo + (end[level - 1] if level > first else 0), lo + end[level]):
            z[i] = np.exp(z[i] - center)
            total += lower[level] * weight[i] * z[i]
    value, total = 0.0, 0.0  # of exp(-score) over the levels above
    start = 0
    for level in range(first, last):
        sum_above = total
        for i in range(lo + start, lo + end[level]):
            inverse = weight[i] / z[i]
            lower_term = upper[level] * sum_below[level - first] * inverse
            upper_term = lower[level] * sum_above * weight[i] * z[i]
            value += lower_term
            total += upper[level] * inverse
            grad[lo + order[i]] = upper_term - lower_term
            if hessian.size > 0:
                hessian[lo + order[i]] = upper_term + lower_term
        start = end[level]
    return value


@subroutine
def exponential_in_logs(
    order: Array,
    weight: Floats,
    lo: int,
    first: int,
    last: int,
    end: Ints,
    upper: Floats,
    lower: Floats,
    z: Floats,
    log_below: Floats,
    grad: Floats,
    hessian: Floats,
) -> float:
    """Return the loss for any scores: sums are computed as logarithms.

    No exponent exceeds MAX_EXPONENT, where the true value would be infinite.
    """
    top, total = -np.inf, 0.0  # of exp(score) over the levels below
    for level in range(last - 1, first - 1, -1):
        log_below[level - first] = top + np.log(total) if total > 0.0 else -np.inf
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
        log_above = top + np.log(total) if total > 0.0 else -np.inf
        for i in range(start, end[level]):
            w = weight[lo + i]
            lower_term = (
                upper[level] * w * np.exp(min(log_below[level - first] - z[lo + i], MAX_EXPONENT))
            )
            upper_term = lower[level] * w * np.exp(min(log_above + z[lo + i], MAX_EXPONENT))
            value += lower_term
            grad[lo + order[lo + i]] = upper_term - lower_term
            if hessian.size > 0:
                hessian[lo + order[lo + i]] = upper_term + lower_term
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
    hessian: Floats,
) -> None:
    """Write the sum over pairs of exp(s_v - s_u), in O(n), since it factorizes.

    `hessian`, if not empty, receives the second derivatives.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        first, last = firsts[q], firsts[q + 1]
        minimum, maximum = np.inf, -np.inf
        for i in range(lo, lo + n):
            s = scores[lo + order[i]]
            z[i] = s
            minimum, maximum = min(minimum, s), max(maximum, s)
        if maximum - minimum < MAX_EXP_RANGE:
            values[q] = exponential_direct(
                order,
                weight,
                lo,
                first,
                last,
                end,
                upper,
                lower,
                z,
                sum_below=logs,
                grad=grad,
                hessian=hessian,
                center=0.5 * (minimum + maximum),
            )
        else:
            values[q] = exponential_in_logs(
                order,
                weight,
                lo,
                first,
                last,
                end,
                upper,
                lower,
                z,
                log_below=logs,
                grad=grad,
                hessian=hessian,
            )


MAX_PRODUCT_RANGE = 40.0  # range of scores for which 16 probabilities multiply without underflow
RUN = 16  # pairs per logarithm


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
    lower_weight: Floats,
    grad_sorted: Floats,
) -> float:
    """Gather scores and lower weights in true order, zero gradients; return the score range."""
    minimum, maximum = np.inf, -np.inf
    start = 0
    for level in range(first, last):
        for i in range(start, end[level]):
            s = scores[lo + order[lo + i]]
            z[i] = s
            lower_weight[i] = lower[level] * weight[lo + i]
            grad_sorted[i] = 0.0
            minimum, maximum = min(minimum, s), max(maximum, s)
        start = end[level]
    return maximum - minimum


@subroutine
def logistic_row_products(
    z: Floats, exp_z: Floats, grad_sorted: Floats, u: int, start: int, n: int, pair_weight: float
) -> float:
    """Add the pairs of u with all v from `start` on, of equal weight; return their loss.

    `exp_z` holds exp(z).  With a = exp(s_u) and b = exp(s_v) the derivative is b / (a + b) and the
    loss log((a + b) / a): no exponential per pair, and one logarithm per RUN pairs.
    """
    a = exp_z[u]
    total, value = 0.0, 0.0
    v = start
    while v < n:
        stop = min(v + RUN, n)
        likelihood = 1.0
        for i in range(v, stop):
            inverse = 1.0 / (a + exp_z[i])
            p = exp_z[i] * inverse
            likelihood *= a * inverse
            total += p
            grad_sorted[i] += pair_weight * p
        value -= np.log(likelihood)
        v = stop
    grad_sorted[u] -= pair_weight * total
    return pair_weight * value


@subroutine
def logistic_row(
    z: Floats,
    lower_weight: Floats,
    grad_sorted: Floats,
    u: int,
    start: int,
    n: int,
    pair_weight: float,
) -> float:
    """Add the pairs of u with all v from `start` on, for any scores and weights."""
    total, value = 0.0, 0.0
    for v in range(start, n):
        if lower_weight[v] > 0.0:
            t = z[u] - z[v]
            decay = np.exp(-abs(t))
            value += lower_weight[v] * (max(-t, 0.0) + np.log1p(decay))
            weighted_p = lower_weight[v] * ((decay if t > 0.0 else 1.0) / (1.0 + decay))
            total += weighted_p
            grad_sorted[v] += pair_weight * weighted_p
    grad_sorted[u] -= pair_weight * total
    return pair_weight * value


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
    unit_weights: int,
    z: Floats,
    exp_z: Floats,
    lower_weight: Floats,
    grad_sorted: Floats,
    values: Floats,
    grad: Floats,
) -> None:
    """Write the sum over pairs of log(1 + exp(s_v - s_u)), and its gradient.

    `unit_weights` is 1 if every lower weight is 1.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        first, last = firsts[q], firsts[q + 1]
        score_range = gather_scores(
            scores, order, weight, lo, first, last, end, lower, z, lower_weight, grad_sorted
        )
        in_range = unit_weights == 1 and score_range < MAX_PRODUCT_RANGE
        if in_range and last - first > 1:
            for i in range(n):
                exp_z[i] = np.exp(z[i] - z[0])
        value = 0.0
        start = 0
        for level in range(first, last - 1):
            for u in range(start, end[level]):
                pair_weight = upper[level] * weight[lo + u]
                if pair_weight > 0.0:
                    if in_range:
                        value += logistic_row_products(
                            z, exp_z, grad_sorted, u, start=end[level], n=n, pair_weight=pair_weight
                        )
                    else:
                        value += logistic_row(
                            z,
                            lower_weight,
                            grad_sorted,
                            u,
                            start=end[level],
                            n=n,
                            pair_weight=pair_weight,
                        )
            start = end[level]
        values[q] = value
        for i in range(n):
            grad[lo + order[lo + i]] = grad_sorted[i]


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
    lower_weight: Floats,
    hessian_sorted: Floats,
    out: Floats,
) -> None:
    """Write the second derivatives: p * (1 - p) of every pair, added to both documents."""
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        first, last = firsts[q], firsts[q + 1]
        gather_scores(
            scores,
            order,
            weight,
            lo,
            first,
            last,
            end,
            lower,
            z,
            lower_weight,
            grad_sorted=hessian_sorted,
        )
        start = 0
        for level in range(first, last - 1):
            for u in range(start, end[level]):
                pair_weight = upper[level] * weight[lo + u]
                if pair_weight <= 0.0:
                    continue
                for v in range(end[level], n):
                    decay = np.exp(-abs(z[u] - z[v]))
                    term = pair_weight * lower_weight[v] * decay / ((1.0 + decay) * (1.0 + decay))
                    hessian_sorted[u] += term
                    hessian_sorted[v] += term
            start = end[level]
        for i in range(n):
            out[lo + order[lo + i]] = hessian_sorted[i]
