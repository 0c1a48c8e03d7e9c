"""The logistic loss of document pairs that are neighbors in random rankings (YetiRank)."""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel
from firstpage.core.kernels.hashing import STEP, mix
from firstpage.core.kernels.losses.plrank import draw_ranking
from firstpage.core.types import Floats, Ints


@kernel
def sampled_neighbors(
    scores: Floats,
    labels: Floats,
    offsets: Ints,
    discount: Floats,
    samples: int,
    seed: int,
    first_query: int,
    calls: Ints,
    arrival: Floats,
    items: Ints,
    values: Floats,
    grad: Floats,
    curvature: Floats,
) -> None:
    """Write the loss of each query, its gradient, and the diagonal of its Hessian.

    Rankings are drawn from the Plackett-Luce model.  The documents of ranks x and x + 1 add
    discount[x] * |difference of labels| * log(1 + exp(score of the worse - score of the better)).
    No curvature is written where that array is empty.  Each call draws other rankings, as in
    `expected_measure`.
    """
    base = offsets[0]
    call = mix(mix(np.uint64(seed) + STEP) + np.uint64(calls[0]))
    calls[0] += 1
    for q in range(offsets.size - 1):
        lo, n = offsets[q] - base, offsets[q + 1] - offsets[q]
        informative = False
        for i in range(lo, lo + n):
            informative = informative or labels[i] != labels[lo]
            grad[i] = 0.0
            if curvature.size > 0:
                curvature[i] = 0.0
        values[q] = 0.0
        if not informative:
            continue
        depth = min(n, discount.size + 1)
        key = mix(call + np.uint64(first_query + q))
        for _ in range(samples):
            key = mix(key + STEP)
            draw_ranking(scores, lo, n, depth, key, arrival, items)
            for x in range(depth - 1):
                better, worse = lo + items[x], lo + items[x + 1]
                difference = labels[better] - labels[worse]
                if difference == 0.0:
                    continue
                if difference < 0.0:
                    better, worse, difference = worse, better, -difference
                weight = discount[x] * difference / samples
                gap = scores[worse] - scores[better]
                small = np.exp(-abs(gap))
                values[q] += weight * (max(gap, 0.0) + np.log(1.0 + small))
                p = (1.0 if gap > 0.0 else small) / (1.0 + small)
                grad[better] -= weight * p
                grad[worse] += weight * p
                if curvature.size > 0:
                    second = weight * small / (1.0 + small) ** 2
                    curvature[better] += second
                    curvature[worse] += second
