"""Listwise losses: values per query, gradients and second derivatives per document.

Query q of the slice has the rows offsets[q]-offsets[0] .. offsets[q+1]-offsets[0] of `scores`,
`grad`, `order` and `weight`.  `order` lists a query's documents from best to worst, as indices
within the query.  Documents of one label form a level: query q has the levels
firsts[q]:firsts[q+1], and `end[level]` is the end of the level's positions within the query.  A
document of weight 2 counts as two copies.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.types import Array, Floats, Ints

LOWEST = -np.inf
MAX_EXP_RANGE = 600.0  # of scores whose exponentials can be added


@subroutine
def level_sums(
    scores: Floats,
    order: Array,
    weight: Floats,
    lo: int,
    first: int,
    last: int,
    end: Ints,
    z: Floats,
    logs: Floats,
) -> None:
    """Compute logs[i], the log of the sum of weight * exp(score) over level first + i and below.

    `z` receives the scores in true order.  A running maximum keeps all exponents nonpositive.
    """
    top, total = LOWEST, 0.0
    for level in range(last - 1, first - 1, -1):
        start = end[level - 1] if level > first else 0
        for i in range(end[level] - 1, start - 1, -1):
            s, w = scores[lo + order[lo + i]], weight[lo + i]
            z[lo + i] = s
            if w > 0.0:
                if s > top:
                    total = total * np.exp(top - s) + w
                    top = s
                else:
                    total += w * np.exp(s - top)
        logs[level - first] = top + np.log(total)


@subroutine
def direct_plackett_luce(
    order: Array,
    weight: Floats,
    lo: int,
    first: int,
    last: int,
    end: Ints,
    placed: Floats,
    mass: Floats,
    top: float,
    z: Floats,
    ratios: Floats,
    grad: Floats,
) -> float:
    """Write the gradient and return the value of a query whose exponentials can be added.

    `z` has its scores in true order, of which `top` is the greatest.
    """
    value, total = 0.0, 0.0
    for level in range(last - 1, first - 1, -1):
        for i in range(lo + (end[level - 1] if level > first else 0), lo + end[level]):
            if weight[i] > 0.0:
                value -= placed[level] * weight[i] * (z[i] - top)
                z[i] = weight[i] * np.exp(z[i] - top)
                total += z[i]
            else:
                z[i] = 0.0
        ratios[level - first] = 0.0
        if mass[level] > 0.0:
            value += mass[level] * np.log(total)
            ratios[level - first] = mass[level] / total
    ratio, start = 0.0, 0
    for level in range(first, last):
        ratio += ratios[level - first]
        for i in range(lo + start, lo + end[level]):
            grad[lo + order[i]] = z[i] * ratio - placed[level] * weight[i]
        start = end[level]
    return value


@kernel
def plackett_luce(
    scores: Floats,
    order: Array,
    weight: Floats,
    offsets: Ints,
    firsts: Ints,
    end: Ints,
    placed: Floats,
    mass: Floats,
    z: Floats,
    logs: Floats,
    values: Floats,
    grad: Floats,
) -> None:
    """Write the negative log-likelihood of the order under the Plackett-Luce model.

    Each rank is drawn among all documents not ranked before:
    sum over levels of  mass * log(sum of exp in and below it)  -  placed * sum of weight * score.
    `placed` is the fraction of a level's documents that are ranked, `mass` that fraction times
    their weight.  Ties are treated by Breslow's method.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        first, last = firsts[q], firsts[q + 1]
        top, low = LOWEST, -LOWEST
        for i in range(lo, lo + n):
            z[i] = scores[lo + order[i]]
            if weight[i] > 0.0:
                top, low = max(top, z[i]), min(low, z[i])
        if top - low < MAX_EXP_RANGE:
            values[q] = direct_plackett_luce(
                order, weight, lo, first, last, end, placed, mass, top, z, ratios=logs, grad=grad
            )
            continue
        level_sums(scores, order, weight, lo, first, last, end, z, logs)
        value, top, total = 0.0, LOWEST, 0.0
        start = 0
        for level in range(first, last):
            if mass[level] > 0.0:
                value += mass[level] * logs[level - first]
                t = np.log(mass[level]) - logs[level - first]
                if t > top:
                    total = total * np.exp(top - t) + 1.0
                    top = t
                else:
                    total += np.exp(t - top)
            log_sum = top + np.log(total) if total > 0.0 else LOWEST
            for i in range(start, end[level]):
                w = weight[lo + i]
                value -= placed[level] * w * z[lo + i]
                derivative = 0.0
                if w > 0.0:
                    derivative = w * (np.exp(z[lo + i] + log_sum) - placed[level])
                grad[lo + order[lo + i]] = derivative
            start = end[level]
        values[q] = value


@kernel
def plackett_luce_curvature(
    scores: Floats,
    order: Array,
    weight: Floats,
    offsets: Ints,
    firsts: Ints,
    end: Ints,
    mass: Floats,
    z: Floats,
    logs: Floats,
    out: Floats,
) -> None:
    """Write the second derivative by each score: the sum over levels of mass * p * (1 - p)."""
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo = offsets[q] - base
        first, last = firsts[q], firsts[q + 1]
        level_sums(scores, order, weight, lo, first, last, end, z, logs)
        top, sum_inverse, sum_square = (
            LOWEST,
            0.0,
            0.0,
        )  # sums of mass / S and mass / S^2, around exp(top)
        start = 0
        for level in range(first, last):
            if mass[level] > 0.0:
                t = -logs[level - first]
                if t > top:
                    shrink = np.exp(top - t)
                    sum_inverse, sum_square = sum_inverse * shrink, sum_square * shrink * shrink
                    top = t
                scaled = np.exp(t - top)
                sum_inverse += mass[level] * scaled
                sum_square += mass[level] * scaled * scaled
            for i in range(start, end[level]):
                w = weight[lo + i]
                second = 0.0
                if w > 0.0 and sum_inverse > 0.0:
                    p = w * np.exp(z[lo + i] + top)
                    second = max(p * sum_inverse - p * p * sum_square, 0.0)
                out[lo + order[lo + i]] = second
            start = end[level]


@kernel
def softmax(psi: Floats, weight: Floats, offsets: Ints, out: Floats) -> None:
    """Write weight * exp(psi) divided by its sum over the query; 0 where no weight is positive."""
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        top, total = LOWEST, 0.0
        for i in range(lo, hi):
            if weight[i] > 0.0:
                top = max(top, psi[i])
        of_zero = np.exp(-top)  # most numbers are 0
        for i in range(lo, hi):
            out[i] = 0.0
            if weight[i] > 0.0:
                out[i] = weight[i] * (of_zero if psi[i] == 0.0 else np.exp(psi[i] - top))
                total += out[i]
        if total > 0.0:
            for i in range(lo, hi):
                out[i] /= total


@kernel
def softmax_cross_entropy(
    scores: Floats,
    target: Floats,
    weight: Floats,
    offsets: Ints,
    factor: Floats,
    values: Floats,
    grad: Floats,
) -> None:
    """Write the cross entropy - sum of target * log softmax(scores), times the query's factor.

    `target` sums to 1 over the documents of positive weight, and is 0 elsewhere.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        top = LOWEST
        for i in range(lo, hi):
            if weight[i] > 0.0:
                top = max(top, scores[i])
        total, target_score = 0.0, 0.0
        for i in range(lo, hi):
            grad[i] = 0.0
            if weight[i] > 0.0:
                grad[i] = weight[i] * np.exp(scores[i] - top)
                total += grad[i]
                target_score += target[i] * (scores[i] - top)
        values[q] = 0.0
        if not total <= 0.0:  # NaN is propagated
            values[q] = factor[q] * (np.log(total) - target_score)
            for i in range(lo, hi):
                grad[i] = factor[q] * (grad[i] / total - target[i])


@kernel
def softmax_curvature(
    scores: Floats, weight: Floats, offsets: Ints, factor: Floats, out: Floats
) -> None:
    """Write the second derivatives of the cross entropy: p * (1 - p), times the query's factor."""
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        top, total = LOWEST, 0.0
        for i in range(lo, hi):
            if weight[i] > 0.0:
                top = max(top, scores[i])
        for i in range(lo, hi):
            out[i] = 0.0
            if weight[i] > 0.0:
                out[i] = weight[i] * np.exp(scores[i] - top)
                total += out[i]
        if not total <= 0.0:
            for i in range(lo, hi):
                p = out[i] / total
                out[i] = factor[q] * p * (1.0 - p)


@kernel
def cosine(
    scores: Floats,
    target: Floats,
    weight: Floats,
    offsets: Ints,
    floor: float,
    values: Floats,
    grad: Floats,
    lengths: Floats,
) -> None:
    """Write (1 - cosine of scores and target) / 2; `target` has weighted norm 1, or is 0.

    The cosine is undefined where all scores are 0: norms below `floor` are replaced by it.
    `lengths` receives the norms of the scores.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        max_score, target_norm = 0.0, 0.0
        for i in range(lo, hi):
            target_norm += target[i] * target[i] * weight[i]
            if weight[i] > 0.0:
                max_score = max(max_score, abs(scores[i]))
        scale = max_score if max_score > 0.0 else 1.0  # squares of 1e200 would overflow
        square, inner = 0.0, 0.0
        for i in range(lo, hi):
            s = scores[i] / scale
            square += weight[i] * s * s
            inner += weight[i] * s * target[i]
        length = max(np.sqrt(square) * scale, floor)
        lengths[q] = length
        cosine_value = inner * (scale / length)
        radial = cosine_value if length > floor else 0.0  # below the floor the loss is linear
        values[q] = 0.0
        for i in range(lo, hi):
            grad[i] = 0.0
        if target_norm > 0.0:
            values[q] = 0.5 * (1.0 - cosine_value)
            for i in range(lo, hi):
                grad[i] = -0.5 * weight[i] * (target[i] - radial * (scores[i] / length)) / length


@kernel
def squared_error(
    scores: Floats,
    target: Floats,
    weight: Floats,
    offsets: Ints,
    factor: Floats,
    values: Floats,
    grad: Floats,
) -> None:
    """Write half the sum of weight * (score - target)^2, times the query's factor."""
    base = offsets[0]
    for q in range(offsets.size - 1):
        total = 0.0
        for i in range(offsets[q] - base, offsets[q + 1] - base):
            error = scores[i] - target[i]
            total += weight[i] * error * error
            grad[i] = factor[q] * weight[i] * error
        values[q] = 0.5 * factor[q] * total
