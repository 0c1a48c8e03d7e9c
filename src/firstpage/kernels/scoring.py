"""Scores of documents: linear, stumps, forests."""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, subroutine, vector_kernel
from firstpage.types import Array, Bytes, Floats, Ints

# --- linear: scores and their pull-back, X w and X' g, over the rows of some queries.
#
# Products are taken in the type of the features, as vectors of the CPU like them, and kept short:
# a row for the scores, CHUNK rows for the pull-back, whose sums are then added up in float64.
# Rows that fit into the CPU's cache are read from memory once for both.


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
def float64_scores(X: Array, w: Floats, out: Floats) -> None:
    """out = X w in float64, each row by itself."""
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += np.float64(X[i, j]) * w[j]
        out[i] = total


@vector_kernel
def dense_vjp(X: Array, g: Floats, part: Array, out: Floats) -> None:
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
def sparse_vjp(data: Array, indices: Array, indptr: Array, g: Floats, out: Floats) -> None:
    """out = X' g for rows in CSR form."""
    for j in range(out.size):
        out[j] = 0.0
    for i in range(g.size):
        for at in range(indptr[i], indptr[i + 1]):
            out[indices[at]] += g[i] * data[at]


@vector_kernel
def zero_if_finite(values: Array) -> float:
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


# --- stumps: 1 where a feature is above a threshold: bins, edges, measures, scores.
#
# Features have the thresholds firsts[f]:firsts[f+1], rising; a stump's number is its threshold's.
# A document's bin is the number of thresholds below its value, so stump t of a feature is 1 where
# the bin is above t.  `bins` has one row a feature, one byte a document.


@subroutine
def count_below(thresholds: Floats, lo: int, hi: int, x: float) -> int:
    """How many of thresholds[lo:hi] are below x, by halving without branches."""
    at, size = lo, hi - lo
    while size > 0:
        half = (size + 1) >> 1
        at += half * np.int64(thresholds[at + half - 1] < x)
        size -= half
    return at - lo


@kernel
def bin_columns(columns: Array, start: int, firsts: Ints, thresholds: Floats, bins: Bytes) -> None:
    """The bins of documents from `start` on; one row of `columns`, as of `bins`, a feature.

    Four documents side by side: each step of a search waits for the one before it.
    """
    for f in range(columns.shape[0]):
        lo, hi = firsts[f], firsts[f + 1]
        n = columns.shape[1]
        fours = n - n % 4
        for i in range(0, fours, 4):
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
        for i in range(fours, n):
            bins[f, start + i] = count_below(thresholds, lo, hi, columns[f, i])


@kernel
def bin_sums(bins: Bytes, values: Floats, out: Floats) -> None:
    """The sum of `values` over the documents of every bin of every feature.

    Four features side by side: a sum in one need not wait for the last one in another.
    """
    for f in range(out.shape[0]):
        for b in range(out.shape[1]):
            out[f, b] = 0.0
    n = values.size
    fours = bins.shape[0] - bins.shape[0] % 4
    for f in range(0, fours, 4):
        for d in range(n):
            v = values[d]
            out[f, bins[f, d]] += v
            out[f + 1, bins[f + 1, d]] += v
            out[f + 2, bins[f + 2, d]] += v
            out[f + 3, bins[f + 3, d]] += v
    for f in range(fours, bins.shape[0]):
        for d in range(n):
            out[f, bins[f, d]] += values[d]


@kernel
def stump_edges(sums: Floats, firsts: Ints, out: Floats) -> None:
    """The sum over the documents of each stump, from the sums of bins."""
    for f in range(firsts.size - 1):
        count = firsts[f + 1] - firsts[f]
        total = 0.0
        for t in range(count - 1, -1, -1):
            total += sums[f, t + 1]
            out[firsts[f] + t] = total


@kernel
def add_stump(bins: Bytes, least: int, step: float, scores: Floats) -> None:
    """Add a step to the scores of the documents whose bin is above `least`."""
    for d in range(scores.size):
        scores[d] += step if bins[d] > least else 0.0


@kernel
def add_scaled(column: Array, low: float, factor: float, scores: Floats) -> None:
    """Add factor * (feature - low) to the scores."""
    for i in range(scores.size):
        scores[i] += factor * (column[i] - low)


@vector_kernel
def row_products(rows: Array, vector: Floats, out: Floats) -> None:
    """The product of every row with a vector, added up in float64 whatever the rows' type."""
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
    reach: Floats,
    counts: Ints,
    sums: Floats,
    rising: Array,
    falling: Array,
) -> None:
    """What lists score by the stumps of one feature: sums of gain * discount, ties shared.

    A stump splits a list into two ties, so each block has its mean gain at each of its places.
    reach[p] is the sum of the first p discounts.  One row a stump, one column a query: `rising`
    where the stump's documents stand above the others, `falling` where below them.
    """
    stumps = rising.shape[0]
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        for b in range(stumps + 1):
            counts[b] = 0
            sums[b] = 0.0
        whole = 0.0
        for d in range(lo, hi):
            counts[bins[d]] += 1
            sums[bins[d]] += gains[d]
            whole += gains[d]
        n, above, held = hi - lo, 0, 0.0
        for t in range(stumps - 1, -1, -1):
            above += counts[t + 1]
            held += sums[t + 1]
            high, low = mean_or_zero(held, above), mean_or_zero(whole - held, n - above)
            up, down = reach[above], reach[n - above]
            rising[t, q] = high * up + low * (reach[n] - up)
            falling[t, q] = low * down + high * (reach[n] - down)


@kernel
def step_scores(X: Array, columns: Ints, firsts: Ints, thresholds: Floats, levels: Floats,
                out: Floats) -> None:  # fmt: skip
    """The sum over columns of a step function: level b of a column where b thresholds are below.

    A column has one level more than thresholds, so those of column c begin at firsts[c] + c.
    """
    for i in range(X.shape[0]):
        total = 0.0
        for c in range(columns.size):
            b = count_below(thresholds, firsts[c], firsts[c + 1], X[i, columns[c]])
            total += levels[firsts[c] + c + b]
        out[i] = total


@vector_kernel
def feature_edges(columns: Array, low: Floats, values: Floats, out: Floats) -> None:
    """The sum over documents of value * (feature - low); one row a feature."""
    for f in range(columns.shape[0]):
        total, least = 0.0, low[f]
        for d in range(values.size):
            total += values[d] * (columns[f, d] - least)
        out[f] = total


# --- forests: scores of grown trees, all of them laid out one after the other.


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
