"""Losses of whole lists: values per query, slopes and curvatures per document.

Query q of the slice owns the rows offsets[q]-offsets[0] on, of `scores`, `grad`, `order`, `weight`.
`order` lists a query's documents from best to worst, as numbers inside the query; documents of
one label are a *level*: levels first[q]:first[q+1] are its own, and `end[level]` is one past the
level's last place inside the query.  A document of weight 2 counts as two copies.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, subroutine
from firstpage.types import Array, Floats, Ints

LOWEST = -np.inf


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
    """logs[i] = log of the summed weight * exp(score) of level first + i and all below it.

    z gets the scores in true order.  One running maximum, so that no exponent is positive.
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


@kernel
def plackett_luce(
    scores: Floats,
    order: Array,
    weight: Floats,
    offsets: Ints,
    firsts: Ints,
    end: Ints,
    upper: Floats,
    mass: Floats,
    z: Floats,
    logs: Floats,
    values: Floats,
    grad: Floats,
) -> None:
    """-log likelihood of the order: each place is won among all that are not placed before it.

    sum over levels of  mass * log(sum of exp below and in it)  -  upper * sum of weight * score.
    `upper` is the share of a level's documents that is placed, `mass` that share times their
    weight.  Equal documents compete with each other once, whole (Breslow's way with ties).
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo = offsets[q] - base
        first, last = firsts[q], firsts[q + 1]
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
            reach = top + np.log(total) if total > 0.0 else LOWEST
            for i in range(start, end[level]):
                w = weight[lo + i]
                value -= upper[level] * w * z[lo + i]
                pull = 0.0
                if w > 0.0:
                    pull = w * (np.exp(z[lo + i] + reach) - upper[level])
                grad[lo + order[lo + i]] = pull
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
    """Second derivative by each score: the sum over the places above of mass * p * (1 - p)."""
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo = offsets[q] - base
        first, last = firsts[q], firsts[q + 1]
        level_sums(scores, order, weight, lo, first, last, end, z, logs)
        top, once, twice = LOWEST, 0.0, 0.0  # sums of mass / S and mass / S^2, around exp(top)
        start = 0
        for level in range(first, last):
            if mass[level] > 0.0:
                t = -logs[level - first]
                if t > top:
                    shrink = np.exp(top - t)
                    once, twice = once * shrink, twice * shrink * shrink
                    top = t
                rise = np.exp(t - top)
                once += mass[level] * rise
                twice += mass[level] * rise * rise
            for i in range(start, end[level]):
                w = weight[lo + i]
                curve = 0.0
                if w > 0.0 and once > 0.0:
                    p = w * np.exp(z[lo + i] + top)
                    curve = max(p * once - p * p * twice, 0.0)
                out[lo + order[lo + i]] = curve
            start = end[level]


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
    """- sum of target * log softmax(scores), times the query's factor.

    `target` sums to 1 over the documents of positive weight, and is 0 elsewhere.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        top = LOWEST
        for i in range(lo, hi):
            if weight[i] > 0.0:
                top = max(top, scores[i])
        total, agreed = 0.0, 0.0
        for i in range(lo, hi):
            grad[i] = 0.0
            if weight[i] > 0.0:
                grad[i] = weight[i] * np.exp(scores[i] - top)
                total += grad[i]
                agreed += target[i] * (scores[i] - top)
        values[q] = 0.0
        if not total <= 0.0:  # NaN goes on, so that it shows
            values[q] = factor[q] * (np.log(total) - agreed)
            for i in range(lo, hi):
                grad[i] = factor[q] * (grad[i] / total - target[i])


@kernel
def softmax_curvature(
    scores: Floats, weight: Floats, offsets: Ints, factor: Floats, out: Floats
) -> None:
    """p * (1 - p), times the query's factor."""
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
    """(1 - cosine of scores and target) / 2; `target` has length 1 under the weights, or is 0.

    Undefined where all scores are 0: lengths below `floor` count as it.  `lengths` gets them.
    """
    base = offsets[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q] - base, offsets[q + 1] - base
        most, known = 0.0, 0.0
        for i in range(lo, hi):
            known += target[i] * target[i] * weight[i]
            if weight[i] > 0.0:
                most = max(most, abs(scores[i]))
        unit = most if most > 0.0 else 1.0  # squares of 1e200 would overflow
        square, inner = 0.0, 0.0
        for i in range(lo, hi):
            s = scores[i] / unit
            square += weight[i] * s * s
            inner += weight[i] * s * target[i]
        length = max(np.sqrt(square) * unit, floor)
        lengths[q] = length
        at = inner * (unit / length)
        turn = at if length > floor else 0.0  # below the floor the value is a straight line
        values[q] = 0.0
        for i in range(lo, hi):
            grad[i] = 0.0
        if known > 0.0:
            values[q] = 0.5 * (1.0 - at)
            for i in range(lo, hi):
                grad[i] = -0.5 * weight[i] * (target[i] - turn * (scores[i] / length)) / length


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
    """Half the sum of weight * (score - target)^2, times the query's factor."""
    base = offsets[0]
    for q in range(offsets.size - 1):
        total = 0.0
        for i in range(offsets[q] - base, offsets[q + 1] - base):
            error = scores[i] - target[i]
            total += weight[i] * error * error
            grad[i] = factor[q] * weight[i] * error
        values[q] = 0.5 * factor[q] * total
