"""Scores of documents by linear models, stumps and forests, and their gradients."""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine, vector_kernel
from firstpage.core.types import Array, Bytes, Floats, Ints, Words

# --- linear models: scores X w and the vector-Jacobian product X' g, over the rows of some queries.
#
# Products are computed in the data type of the features, for SIMD, and summed over short ranges
# only: one row for scores, CHUNK rows for the vector-Jacobian product; these partial sums are then
# accumulated in float64.  Rows that fit into the CPU cache are read from memory once for both.


CHUNK = 64  # rows whose products are summed in the data type of the features


@vector_kernel
def dense_scores(X: Array, w: Array, out: Floats) -> None:
    """Compute out = X w; `w` has the data type of X.  Four rows share each load of a weight."""
    n, d = X.shape
    zero = w.dtype.type(0)
    unrolled = n - n % 4
    for i in range(0, unrolled, 4):
        s0, s1, s2, s3 = zero, zero, zero, zero
        for j in range(d):
            s0 += X[i, j] * w[j]
            s1 += X[i + 1, j] * w[j]
            s2 += X[i + 2, j] * w[j]
            s3 += X[i + 3, j] * w[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = s0, s1, s2, s3
    for i in range(unrolled, n):
        s0 = zero
        for j in range(d):
            s0 += X[i, j] * w[j]
        out[i] = s0


@vector_kernel
def float64_scores(X: Array, w: Floats, out: Floats) -> None:
    """Compute out = X w in float64, row by row."""
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += np.float64(X[i, j]) * w[j]
        out[i] = total


@vector_kernel
def dense_vjp(X: Array, g: Floats, partial: Array, out: Floats) -> None:
    """Compute out = X' g; `partial` is workspace of the data type of X, one number per feature."""
    n, d = X.shape
    dtype = partial.dtype.type
    for j in range(d):
        out[j] = 0.0
    for start in range(0, n, CHUNK):
        end = min(start + CHUNK, n)
        unrolled = end - (end - start) % 4
        for j in range(d):
            partial[j] = dtype(0)
        for i in range(start, unrolled, 4):
            g0, g1, g2, g3 = dtype(g[i]), dtype(g[i + 1]), dtype(g[i + 2]), dtype(g[i + 3])
            for j in range(d):
                partial[j] += (g0 * X[i, j] + g1 * X[i + 1, j]) + (
                    g2 * X[i + 2, j] + g3 * X[i + 3, j]
                )
        for i in range(unrolled, end):
            g0 = dtype(g[i])
            for j in range(d):
                partial[j] += g0 * X[i, j]
        for j in range(d):
            out[j] += partial[j]


@vector_kernel
def float64_vjp(X: Array, g: Floats, out: Floats, squares: Floats) -> None:
    """Compute out = X' g and the sum of squares of every column, in float64.

    Four rows share each load of a sum.
    """
    n, d = X.shape
    for j in range(d):
        out[j], squares[j] = 0.0, 0.0
    unrolled = n - n % 4
    for i in range(0, unrolled, 4):
        g0, g1, g2, g3 = g[i], g[i + 1], g[i + 2], g[i + 3]
        for j in range(d):
            x0, x1 = np.float64(X[i, j]), np.float64(X[i + 1, j])
            x2, x3 = np.float64(X[i + 2, j]), np.float64(X[i + 3, j])
            out[j] += (g0 * x0 + g1 * x1) + (g2 * x2 + g3 * x3)
            squares[j] += (x0 * x0 + x1 * x1) + (x2 * x2 + x3 * x3)
    for i in range(unrolled, n):
        for j in range(d):
            x0 = np.float64(X[i, j])
            out[j] += g[i] * x0
            squares[j] += x0 * x0


@vector_kernel
def sparse_scores(data: Array, indices: Array, indptr: Array, w: Floats, out: Floats) -> None:
    """Compute out = X w for rows in CSR form; `indptr` holds positions in `data`."""
    for i in range(out.size):
        total = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[at]) * w[indices[at]]
        out[i] = total


@vector_kernel
def sparse_vjp(data: Array, indices: Array, indptr: Array, g: Floats, out: Floats) -> None:
    """Compute out = X' g for rows in CSR form."""
    for j in range(out.size):
        out[j] = 0.0
    for i in range(g.size):
        for at in range(indptr[i], indptr[i + 1]):
            out[indices[at]] += g[i] * data[at]


@vector_kernel
def zero_if_finite(values: Array) -> float:
    """Return the sum of 0 * value: 0 if all values are finite, else NaN."""
    total = values.dtype.type(0)
    for i in range(values.size):
        total += values[i] * values.dtype.type(0)
    return np.float64(total)


@vector_kernel
def center_rows(X: Array, weight: Floats, offsets: Ints, mean: Floats, out: Array) -> None:
    """Compute out = sqrt(weight) * (X - weighted mean of the query's rows).

    out' out is then the weighted scatter matrix within queries.
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


# --- stumps: 1 where a feature is above a threshold; bins, edges, DCG, scores.
#
# Feature f has the thresholds firsts[f]:firsts[f + 1], ascending; a stump has the index of its
# threshold.  The bin of a document is the number of thresholds below its value, so stump t of a
# feature is 1 where the bin is above t.  `bins` has one row per feature, one byte per document.


@subroutine
def count_below(thresholds: Floats, lo: int, hi: int, x: float) -> int:
    """Return the number of thresholds[lo:hi] below x, by branchless binary search."""
    at, size = lo, hi - lo
    while size > 0:
        half = (size + 1) >> 1
        at += half * np.int64(thresholds[at + half - 1] < x)
        size -= half
    return at - lo


@kernel
def bin_columns(columns: Array, start: int, firsts: Ints, thresholds: Floats, bins: Bytes) -> None:
    """Write the bins of the documents from `start` on; `columns` has one row per feature.

    Four searches run interleaved, since each step of a search depends on the one before.
    """
    for f in range(columns.shape[0]):
        lo, hi = firsts[f], firsts[f + 1]
        n = columns.shape[1]
        unrolled = n - n % 4
        for i in range(0, unrolled, 4):
            x, y = columns[f, i], columns[f, i + 1]
            z, w = columns[f, i + 2], columns[f, i + 3]
            a, b, c, d, size = lo, lo, lo, lo, hi - lo
            while size > 0:
                half = (size + 1) >> 1
                a += half * np.int64(thresholds[a + half - 1] < x)
                b += half * np.int64(thresholds[b + half - 1] < y)
                c += half * np.int64(thresholds[c + half - 1] < z)
                d += half * np.int64(thresholds[d + half - 1] < w)
                size -= half
            bins[f, start + i] = a - lo
            bins[f, start + i + 1] = b - lo
            bins[f, start + i + 2] = c - lo
            bins[f, start + i + 3] = d - lo
        for i in range(unrolled, n):
            bins[f, start + i] = count_below(thresholds, lo, hi, columns[f, i])


@kernel
def bin_sums(bins: Bytes, values: Floats, out: Floats) -> None:
    """Write the sum of `values` over the documents of every bin of every feature.

    Four features are interleaved, so that their additions do not depend on each other.
    """
    for f in range(out.shape[0]):
        for b in range(out.shape[1]):
            out[f, b] = 0.0
    n = values.size
    unrolled = bins.shape[0] - bins.shape[0] % 4
    for f in range(0, unrolled, 4):
        for d in range(n):
            v = values[d]
            out[f, bins[f, d]] += v
            out[f + 1, bins[f + 1, d]] += v
            out[f + 2, bins[f + 2, d]] += v
            out[f + 3, bins[f + 3, d]] += v
    for f in range(unrolled, bins.shape[0]):
        for d in range(n):
            out[f, bins[f, d]] += values[d]


@kernel
def stump_edges(sums: Floats, firsts: Ints, out: Floats) -> None:
    """Write the sum over the documents of each stump, from the sums per bin."""
    for f in range(firsts.size - 1):
        count = firsts[f + 1] - firsts[f]
        total = 0.0
        for t in range(count - 1, -1, -1):
            total += sums[f, t + 1]
            out[firsts[f] + t] = total


@kernel
def add_stump(bins: Bytes, threshold: int, step: float, scores: Floats) -> None:
    """Add `step` to the scores of the documents whose bin is above `threshold`."""
    for d in range(scores.size):
        scores[d] += step if bins[d] > threshold else 0.0


@kernel
def add_scaled(column: Array, low: float, factor: float, scores: Floats) -> None:
    """Add factor * (feature - low) to the scores."""
    for i in range(scores.size):
        scores[i] += factor * (column[i] - low)


@vector_kernel
def row_products(rows: Array, vector: Floats, out: Floats) -> None:
    """Write the product of every row with a vector, accumulated in float64."""
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * vector[j]
        out[i] = total


@subroutine
def mean_or_zero(total: float, count: int) -> float:
    return total / count if count > 0 else 0.0


@kernel
def stump_dcg(
    bins: Bytes,
    gains: Floats,
    offsets: Ints,
    cumulative_discount: Floats,
    counts: Ints,
    sums: Floats,
    positive: Array,
    negative: Array,
) -> None:
    """Write the expected DCG of lists that are ranked by the stumps of one feature.

    A stump splits a list into two ties; the expected gain at each rank of a tie is its mean gain.
    cumulative_discount[r] is the sum of the first r discounts.  Rows are stumps, columns are
    queries: `positive` ranks the stump's documents above the others, `negative` below them.
    """
    stumps = positive.shape[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        for b in range(stumps + 1):
            counts[b] = 0
            sums[b] = 0.0
        total = 0.0
        for d in range(lo, hi):
            counts[bins[d]] += 1
            sums[bins[d]] += gains[d]
            total += gains[d]
        n, above, gain_above = hi - lo, 0, 0.0
        for t in range(stumps - 1, -1, -1):
            above += counts[t + 1]
            gain_above += sums[t + 1]
            high, low = mean_or_zero(gain_above, above), mean_or_zero(total - gain_above, n - above)
            discount_above, discount_below = (
                cumulative_discount[above],
                cumulative_discount[n - above],
            )
            positive[t, q] = high * discount_above + low * (cumulative_discount[n] - discount_above)
            negative[t, q] = low * discount_below + high * (cumulative_discount[n] - discount_below)


@kernel
def step_scores(
    X: Array, columns: Ints, firsts: Ints, thresholds: Floats, levels: Floats, out: Floats
) -> None:
    """Write the sum over columns of a step function of the column.

    The function has level b where b thresholds are below the value.  A column has one level more
    than thresholds, so the levels of column c begin at firsts[c] + c.
    """
    for i in range(X.shape[0]):
        total = 0.0
        for c in range(columns.size):
            b = count_below(thresholds, firsts[c], firsts[c + 1], X[i, columns[c]])
            total += levels[firsts[c] + c + b]
        out[i] = total


@vector_kernel
def feature_edges(columns: Array, low: Floats, values: Floats, out: Floats) -> None:
    """Write the sum over documents of value * (feature - low), one per feature."""
    for f in range(columns.shape[0]):
        total, minimum = 0.0, low[f]
        for d in range(values.size):
            total += values[d] * (columns[f, d] - minimum)
        out[f] = total


# --- forests: scores of trees whose nodes are stored one tree after the other.


@kernel
def forest_scores(
    X: Array,
    feature: Ints,
    threshold: Floats,
    child: Ints,
    value: Array,
    roots: Ints,
    depths: Ints,
    out: Array,
) -> None:
    """Add the leaf value of every tree to `out`, tree after tree.

    Node i sends x <= threshold[i] to child[2 i], other rows to child[2 i + 1].  A leaf is its own
    child, so that every row takes as many steps as the tree is deep, without a branch.  Four rows
    are interleaved, since each step depends on the one before.
    """
    n = X.shape[0]
    unrolled = n - n % 4
    for t in range(len(roots)):
        root, depth = roots[t], depths[t]
        for i in range(0, unrolled, 4):
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
        for i in range(unrolled, n):
            a = root
            for _ in range(depth):
                a = child[2 * a + np.int64(X[i, feature[a]] > threshold[a])]
            out[i] += value[a]


@subroutine
def goes_right(
    x: float,
    node: int,
    threshold: Floats,
    missing_right: Bytes,
    subset: Ints,
    starts: Ints,
    bits: Words,
) -> int:
    """Return 1 if a node sends x to its second child, else 0.

    NaN goes as `missing_right` says.  Node i with subset[i] = s >= 0 splits by categories: those
    whose bits are set in bits[starts[s]:starts[s + 1]] go to the first child.
    """
    if x != x:
        return np.int64(missing_right[node])
    s = subset[node]
    if s < 0:
        return np.int64(x > threshold[node])
    if x <= -1.0 or x >= 2147483648.0:
        return 1
    code = np.int64(x)
    word = starts[s] + (code >> 6)
    if word >= starts[s + 1]:
        return 1
    return 1 - np.int64((bits[word] >> np.uint64(code & 63)) & np.uint64(1))


@kernel
def forest_scores_missing(
    X: Array,
    feature: Ints,
    threshold: Floats,
    child: Ints,
    value: Array,
    roots: Ints,
    depths: Ints,
    missing_right: Bytes,
    subset: Ints,
    starts: Ints,
    bits: Words,
    out: Array,
) -> None:
    """Add the leaf value of every tree to `out`; features may be NaN or categories."""
    for t in range(len(roots)):
        for i in range(X.shape[0]):
            a = roots[t]
            for _ in range(depths[t]):
                x = np.float64(X[i, feature[a]])
                a = child[
                    2 * a
                    + goes_right(
                        x=x,
                        node=a,
                        threshold=threshold,
                        missing_right=missing_right,
                        subset=subset,
                        starts=starts,
                        bits=bits,
                    )
                ]
            out[i] += value[a]
