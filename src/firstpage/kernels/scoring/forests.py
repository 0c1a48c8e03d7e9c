"""Scores of grown trees, all of them laid out one after the other."""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel
from firstpage.types import Array, Floats, Ints


@kernel
def forest_scores(
    X: Array, feature: Ints, threshold: Floats, child: Ints, value: Array, roots: Ints,
    depths: Ints, out: Array,
) -> None:  # fmt: skip
    """Adds every tree's leaf to `out`, tree after tree.

    Node i sends x <= threshold[i] to child[2 i], the rest to child[2 i + 1]; leaves lead to
    themselves, so that every row takes as many steps as its tree is deep, without a branch.  Four
    rows side by side: each step waits for the one before it.
    """
    n = X.shape[0]
    fours = n - n % 4
    for t in range(len(roots)):
        root, depth = roots[t], depths[t]
        for i in range(0, fours, 4):
            a, b, c, d = root, root, root, root
            for _ in range(depth):
                a = child[2 * a + np.int64(X[i, feature[a]] > threshold[a])]
                b = child[2 * b + np.int64(X[i + 1, feature[b]] > threshold[b])]
                c = child[2 * c + np.int64(X[i + 2, feature[c]] > threshold[c])]
                d = child[2 * d + np.int64(X[i + 3, feature[d]] > threshold[d])]
            out[i] += value[a]
            out[i + 1] += value[b]
            out[i + 2] += value[c]
            out[i + 3] += value[d]
        for i in range(fours, n):
            a = root
            for _ in range(depth):
                a = child[2 * a + np.int64(X[i, feature[a]] > threshold[a])]
            out[i] += value[a]
