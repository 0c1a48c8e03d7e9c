"""Losses of given pairs of documents: logistic and hinge, in time proportional to the pairs.

Query q has the pairs pair_offsets[q]:pair_offsets[q + 1], sorted by `left`, as indices of documents
inside the query.  `left_weight` is the weight of the votes for the left document of a pair,
`right_weight` that of the votes for the right one; both may be positive.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.types import Floats, Ints

LOGISTIC, HINGE = 0, 1  # kinds of loss


@subroutine
def logistic_loss(t: float, a: float, b: float) -> tuple[float, float]:
    """Return a * log(1 + exp(-t)) + b * log(1 + exp(t)), and its derivative by t."""
    decay = np.exp(-abs(t))
    near = 1.0 / (1.0 + decay)
    far = decay * near
    value = (a + b) * np.log1p(decay)
    if t > 0.0:
        return value + b * t, b * near - a * far
    return value - a * t, b * far - a * near


@subroutine
def hinge_loss(t: float, a: float, b: float) -> tuple[float, float]:
    """Return a * max(0, 1 - t) + b * max(0, 1 + t), and a subderivative by t."""
    value, derivative = 0.0, 0.0
    if t < 1.0:
        value += a * (1.0 - t)
        derivative -= a
    if t > -1.0:
        value += b * (1.0 + t)
        derivative += b
    return value, derivative


@kernel
def voted_loss(
    kind: int,
    scores: Floats,
    offsets: Ints,
    pair_offsets: Ints,
    left: Ints,
    right: Ints,
    left_weight: Floats,
    right_weight: Floats,
    values: Floats,
    grad: Floats,
) -> None:
    """Write the sum of the losses of the pairs of each query, and its (sub)gradient.

    The loss of a pair depends on the score of the left document minus that of the right one.
    """
    base, first = offsets[0], pair_offsets[0]
    for q in range(offsets.size - 1):
        lo = offsets[q] - base
        for i in range(lo, offsets[q + 1] - base):
            grad[i] = 0.0
        value = 0.0
        pair, last = pair_offsets[q] - first, pair_offsets[q + 1] - first
        while pair < last:
            u = left[pair]
            row_value, row_grad = 0.0, 0.0
            while pair < last and left[pair] == u:
                v = lo + right[pair]
                t = scores[lo + u] - scores[v]
                if kind == LOGISTIC:
                    loss, derivative = logistic_loss(t, left_weight[pair], right_weight[pair])
                else:
                    loss, derivative = hinge_loss(t, left_weight[pair], right_weight[pair])
                row_value += loss
                row_grad += derivative
                grad[v] -= derivative
                pair += 1
            value += row_value
            grad[lo + u] += row_grad
        values[q] = value


@kernel
def voted_logistic_curvature(
    scores: Floats,
    offsets: Ints,
    pair_offsets: Ints,
    left: Ints,
    right: Ints,
    left_weight: Floats,
    right_weight: Floats,
    out: Floats,
) -> None:
    """Write the second derivatives: p * (1 - p) of every vote, added to both documents."""
    base, first = offsets[0], pair_offsets[0]
    for q in range(offsets.size - 1):
        lo = offsets[q] - base
        for i in range(lo, offsets[q + 1] - base):
            out[i] = 0.0
        for pair in range(pair_offsets[q] - first, pair_offsets[q + 1] - first):
            u, v = lo + left[pair], lo + right[pair]
            decay = np.exp(-abs(scores[u] - scores[v]))
            weight = left_weight[pair] + right_weight[pair]
            term = weight * decay / ((1.0 + decay) * (1.0 + decay))
            out[u] += term
            out[v] += term


@kernel
def voted_agreement(
    scores: Floats,
    offsets: Ints,
    pair_offsets: Ints,
    left: Ints,
    right: Ints,
    left_weight: Floats,
    right_weight: Floats,
    agreed: Floats,
    total: Floats,
) -> None:
    """Write the weight of the votes of each query that the scores agree with, and of all of them.

    Equal scores agree with half of the votes on the pair.
    """
    for q in range(offsets.size - 1):
        agreeing, every = 0.0, 0.0
        for pair in range(pair_offsets[q], pair_offsets[q + 1]):
            a, b = left_weight[pair], right_weight[pair]
            s, t = scores[offsets[q] + left[pair]], scores[offsets[q] + right[pair]]
            every += a + b
            if s > t:
                agreeing += a
            elif s < t:
                agreeing += b
            else:
                agreeing += 0.5 * (a + b)
        agreed[q] = agreeing
        total[q] = every
