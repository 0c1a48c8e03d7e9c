"""Linear scores and their pull-back, X w and X' g, over the rows of some queries.

Products are taken in the type of the features, as vectors of the CPU like them, and kept short:
a row for the scores, CHUNK rows for the pull-back, whose sums are then added up in float64.
Rows that fit into the CPU's cache are read from memory once for both.
"""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import vector_kernel
from firstpage.types import Array, Floats, Ints

CHUNK = 64  # rows whose products are summed before float64 takes over


@vector_kernel
def dense_scores(X: Array, w: Array, out: Floats) -> None:
    """out = X w; `w` is of the type of X.  Four rows share each weight that is fetched."""
    n, d = X.shape
    zero = w.dtype.type(0)
    whole = n - n % 4
    for i in range(0, whole, 4):
        s0, s1, s2, s3 = zero, zero, zero, zero
        for j in range(d):
            s0 += X[i, j] * w[j]
            s1 += X[i + 1, j] * w[j]
            s2 += X[i + 2, j] * w[j]
            s3 += X[i + 3, j] * w[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = s0, s1, s2, s3
    for i in range(whole, n):
        s0 = zero
        for j in range(d):
            s0 += X[i, j] * w[j]
        out[i] = s0


@vector_kernel
def exact_scores(X: Array, w: Floats, out: Floats) -> None:
    """out = X w in float64, each row by itself."""
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += np.float64(X[i, j]) * w[j]
        out[i] = total


@vector_kernel
def dense_pull(X: Array, g: Floats, part: Array, out: Floats) -> None:
    """out = X' g; `part` is workspace of the type of X, one number a feature."""
    n, d = X.shape
    kind = part.dtype.type
    for j in range(d):
        out[j] = 0.0
    for start in range(0, n, CHUNK):
        end = min(start + CHUNK, n)
        whole = end - (end - start) % 4
        for j in range(d):
            part[j] = kind(0)
        for i in range(start, whole, 4):
            g0, g1, g2, g3 = kind(g[i]), kind(g[i + 1]), kind(g[i + 2]), kind(g[i + 3])
            for j in range(d):
                part[j] += (g0 * X[i, j] + g1 * X[i + 1, j]) + (g2 * X[i + 2, j] + g3 * X[i + 3, j])
        for i in range(whole, end):
            g0 = kind(g[i])
            for j in range(d):
                part[j] += g0 * X[i, j]
        for j in range(d):
            out[j] += part[j]


@vector_kernel
def sparse_scores(data: Array, indices: Array, indptr: Array, w: Floats, out: Floats) -> None:
    """out = X w for rows in CSR form; `indptr` points into the whole of `data`."""
    for i in range(out.size):
        total = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[at]) * w[indices[at]]
        out[i] = total


@vector_kernel
def sparse_pull(data: Array, indices: Array, indptr: Array, g: Floats, out: Floats) -> None:
    """out = X' g for rows in CSR form."""
    for j in range(out.size):
        out[j] = 0.0
    for i in range(g.size):
        for at in range(indptr[i], indptr[i + 1]):
            out[indices[at]] += g[i] * data[at]


@vector_kernel
def zero_sum(values: Array) -> float:
    """The sum of 0 * value: 0, or NaN where a value is missing or infinite."""
    total = values.dtype.type(0)
    for i in range(values.size):
        total += values[i] * values.dtype.type(0)
    return np.float64(total)


@vector_kernel
def center_rows(X: Array, weight: Floats, offsets: Ints, mean: Floats, out: Array) -> None:
    """out = X, the mean of each query off its rows: what comparisons inside it can see.

    Times the root of the weights, so that out' out sums by weight.
    """
    d = X.shape[1]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        total = 0.0
        for j in range(d):
            mean[j] = 0.0
        for i in range(lo, hi):
            total += weight[i]
            for j in range(d):
                mean[j] += weight[i] * X[i, j]
        for j in range(d):
            mean[j] = mean[j] / total if total > 0.0 else 0.0
        for i in range(lo, hi):
            root = np.sqrt(weight[i])
            for j in range(d):
                out[i, j] = root * (X[i, j] - mean[j])
