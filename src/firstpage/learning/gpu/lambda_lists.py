"""LambdaLoss of padded lists in Triton: one program per list, whose documents it holds at once."""

from __future__ import annotations

import triton
import triton.language as tl

NONE = tl.constexpr(float("-inf"))  # less than all scores
UNROLLED = tl.constexpr(8)  # iterations of a loop over documents


@triton.jit
def _logistic(x, weight):
    """Return weight * log(1 + exp(x)), and its derivative; the logarithm is that of Kahan."""
    small = tl.exp(-tl.abs(x))
    sum = 1.0 + small
    log = tl.where(sum == 1.0, small, tl.log(sum) * (small / tl.where(sum == 1.0, 1.0, sum - 1.0)))
    return weight * (tl.maximum(x, 0.0) + log), weight * (tl.where(x > 0, 1.0, small) / sum)


@triton.jit(do_not_specialize=["n", "depth"])
def each_lambda_list(
    S,
    GAINS,
    M,
    SUMS,
    MOMENTS,
    K,
    W,
    G,
    V,
    n,
    depth,
    N: tl.constexpr,
    PAIRS: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Write LambdaLoss, values V and gradients G, of rows of n documents.

    The weight of a pair is its difference of gains times the mean change of the discount if both
    documents exchange their ranks.  SUMS and MOMENTS have the sums of discount[i] and of
    i * discount[i] over the first ranks i, of which `depth` count.
    """
    FLOAT: tl.constexpr = W.dtype.element_ty
    q, j = tl.program_id(0).to(tl.int64), tl.arange(0, N)
    lo = q * n
    exists = j < n
    if MASKED:
        exists = exists & (tl.load(M + lo + j, j < n, other=0) != 0)
    s = tl.load(S + lo + j, exists, other=0.0).to(tl.float64)
    gain = tl.load(GAINS + lo + j, exists, other=0.0).to(FLOAT)
    tl.store(K + lo + j, tl.where(exists, s, NONE), j < n)
    tl.debug_barrier()
    first, size = tl.zeros_like(j), tl.zeros_like(j)  # the ranks of documents of equal score
    for i in tl.range(0, n, loop_unroll_factor=UNROLLED):
        other = tl.load(K + lo + i)
        first += (other > s).to(tl.int32)
        size += (other == s).to(tl.int32)
    total = tl.load(SUMS + first + size, exists, other=0.0) - tl.load(SUMS + first, exists, other=0)
    moment = tl.load(MOMENTS + first + size, exists, other=0.0)
    moment -= tl.load(MOMENTS + first, exists, other=0.0)
    mean = (total / tl.maximum(size, 1)).to(FLOAT)
    exchanges = tl.maximum(0.5 * size.to(tl.float64) * (size - 1), 1.0)
    inner = tl.abs(((size - 1 + 2 * first) * total - 2.0 * moment) / exchanges)
    chosen = exists & (first < depth)  # can be at a rank that counts
    number = tl.cumsum(chosen.to(tl.int32), 0) - 1
    count = tl.sum(chosen.to(tl.int32), 0)
    upper = W + 7 * lo  # seven rows of numbers of the chosen documents
    s = s.to(FLOAT)
    tl.store(upper + number, s, chosen)
    tl.store(upper + n + number, gain, chosen)
    tl.store(upper + 2 * n + number, mean, chosen)
    tl.store(upper + 3 * n + number, inner.to(FLOAT), chosen)
    tl.store(upper + 4 * n + number, first.to(FLOAT), chosen)
    tl.store(upper + 5 * n + number, j.to(FLOAT), chosen)
    tl.debug_barrier()
    loss, gradient = tl.zeros((N,), tl.float64), tl.zeros((N,), tl.float64)
    u = tl.arange(0, PAIRS)
    for start in range(0, count, PAIRS):
        at, some = upper + start + u, start + u < count
        upper_first = tl.load(at + 4 * n, some, other=0.0).to(tl.int32)[:, None]
        upper_index = tl.load(at + 5 * n, some, other=0.0).to(tl.int32)[:, None]
        same = upper_first == first[None, :]
        below = (first[None, :] > upper_first) | (same & (j[None, :] > upper_index))
        change = tl.abs(tl.load(at + 2 * n, some, other=0.0)[:, None] - mean[None, :])
        change = tl.where(same, tl.load(at + 3 * n, some, other=0.0)[:, None], change)
        difference = tl.load(at + n, some, other=0.0)[:, None] - gain[None, :]
        weight = tl.where(below & exists[None, :] & some[:, None], tl.abs(difference) * change, 0.0)
        sign = tl.where(difference > 0, 1.0, -1.0).to(FLOAT)
        x = sign * (s[None, :] - tl.load(at, some, other=0.0)[:, None])
        pair_loss, derivative = _logistic(x, weight)
        loss += tl.sum(pair_loss, 0).to(tl.float64)
        derivative *= sign
        gradient += tl.sum(derivative, 0).to(tl.float64)
        tl.store(at + 6 * n, tl.sum(derivative, 1), some)
    tl.debug_barrier()
    gradient -= tl.load(upper + 6 * n + number, chosen, other=0.0).to(tl.float64)
    tl.store(V + q, tl.sum(loss, 0))
    tl.store(G + lo + j, tl.where(exists, gradient, 0.0), j < n)
