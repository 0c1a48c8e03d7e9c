"""Losses of lists whose labels are read once, as in batches of a training loop, in Triton.

The kernels of `list_kernels` read columns that are prepared once per fit.  Where every call has
other labels, preparing them takes longer than the loss: here both are one launch.  A program
computes one list, whose documents it holds at once, in any order.

Every loss returns the value of its list and the gradient by the scores: from the scores `s` and the
labels `key`, of which those of documents that do not exist are 0 and -inf.  Both are float64.
`K` and `W` are workspace, of which `lo` is the first row of the list.  `k` ranks count if TOP is
set; then levels of equal labels are taken from the best one downward, at most k of them.
"""

from __future__ import annotations

import triton
import triton.language as tl

NONE = tl.constexpr(float("-inf"))  # less than all labels
ALL = tl.constexpr(float("inf"))
DIRECT_RANGE = tl.constexpr(600.0)  # of scores whose exponentials can be added in float64
UNROLLED = tl.constexpr(8)  # iterations of a loop over documents


@triton.jit
def _greatest(x, chosen):
    return tl.max(tl.where(chosen, x, NONE), 0)


@triton.jit
def _sum(x, chosen):
    return tl.sum(tl.where(chosen, x, 0.0), 0)


@triton.jit
def _top_ranks(key, k):
    """Return how many documents are above each one and how many are its equals; k and 1 outside
    the top."""
    seen = 0.0 * k
    above, equal = tl.zeros_like(key) + k, tl.zeros_like(key) + 1.0
    level = tl.max(key, 0)
    while (seen < k) & (level > NONE):
        tied = key == level
        count = tl.sum(tied.to(tl.float64), 0)
        above, equal = tl.where(tied, seen, above), tl.where(tied, count, equal)
        seen += count
        level = _greatest(key, key < level)
    return above, equal


@triton.jit
def _top_probability(key, k):
    """Return the probability of each document to be among the first k."""
    above, equal = _top_ranks(key, k)
    return tl.minimum(tl.maximum(k - above, 0.0), equal) / equal


@triton.jit
def _relevance(key, exists, k, TOP: tl.constexpr):
    """Return what scores are compared with: the labels, or k + 1 - rank, at least 0, over ties."""
    if TOP:
        above, equal = _top_ranks(key, k)
        remaining = tl.maximum(k - above, 0.0)
        after = tl.maximum(remaining - equal, 0.0)
        return (remaining * (remaining + 1.0) - after * (after + 1.0)) / (2.0 * equal)
    else:
        return tl.where(exists, key, 0.0)


@triton.jit
def plackett_luce(
    s,
    key,
    exists,
    K,
    W,
    lo,
    n,
    k,
    PARAMETER: tl.constexpr,
    AVERAGE: tl.constexpr,
    CROSS: tl.constexpr,
    TOP: tl.constexpr,
    PAIRS: tl.constexpr,
):
    """Negative log-likelihood of the order under the Plackett-Luce model."""
    top, low = _greatest(s, exists), tl.min(tl.where(exists, s, ALL), 0)
    lowest = tl.min(tl.where(exists, key, ALL), 0)  # is preferred to nothing
    s = tl.where(exists, s - top, 0.0)
    if TOP:
        value, gradient, ranked = _plackett_luce_by_level(s, key, exists, lowest, k)
    elif top - low < DIRECT_RANGE:
        value, gradient, ranked = _direct_plackett_luce(s, key, exists, lowest, K, W, lo, n)
    else:
        value, gradient, ranked = _plackett_luce_by_level(s, key, exists, lowest, k)
    if AVERAGE:
        ranked = tl.maximum(ranked, 1.0)
        value, gradient = value / ranked, gradient / ranked
    return value, gradient


@triton.jit
def _plackett_luce_by_level(s, key, exists, lowest, k):
    """Add what the documents of each level lose against all that are not above them."""
    value, ranked, gradient = 0.0 * k, 0.0 * k, tl.zeros_like(s)
    level = tl.max(key, 0)
    while (ranked < k) & (level > lowest):
        tied, competing = key == level, exists & (key <= level)
        count = tl.sum(tied.to(tl.float64), 0)
        mass = tl.minimum(count, k - ranked)
        greatest = _greatest(s, competing)
        log_total = greatest + tl.log(_sum(tl.exp(s - greatest), competing))
        value += mass * log_total - mass / count * _sum(s, tied)
        expected = tl.where(competing, mass * tl.exp(s - log_total), 0.0)
        gradient += expected - tl.where(tied, mass / count, 0.0)
        ranked += mass
        level = _greatest(key, key < level)
    return value, gradient, ranked


@triton.jit
def _direct_plackett_luce(s, key, exists, lowest, K, W, lo, n):
    """Add the exponentials of all documents that are not above each one: O(n^2), for any labels."""
    at = lo + tl.arange(0, s.shape[0])
    inside = tl.arange(0, s.shape[0]) < n
    e = tl.where(exists, tl.exp(s), 0.0)
    tl.store(K + at, key, inside)
    tl.store(W + at, e, inside)
    tl.debug_barrier()
    total = tl.zeros_like(s)
    for i in tl.range(0, n, loop_unroll_factor=UNROLLED):
        total += tl.where(tl.load(K + lo + i) <= key, tl.load(W + lo + i), 0.0)
    p = (key > lowest).to(tl.float64)
    total = tl.where(p > 0, total, 1.0)
    tl.debug_barrier()
    tl.store(W + at, p / total, inside)
    tl.debug_barrier()
    reach = tl.zeros_like(s)
    for i in tl.range(0, n, loop_unroll_factor=UNROLLED):
        reach += tl.where(tl.load(K + lo + i) >= key, tl.load(W + lo + i), 0.0)
    return tl.sum(p * (tl.log(total) - s), 0), e * reach - p, tl.sum(p, 0)


@triton.jit
def softmax_cross_entropy(
    s,
    key,
    exists,
    K,
    W,
    lo,
    n,
    k,
    PARAMETER: tl.constexpr,
    AVERAGE: tl.constexpr,
    CROSS: tl.constexpr,
    TOP: tl.constexpr,
    PAIRS: tl.constexpr,
):
    """Minus the sum of softmax(labels / PARAMETER) * log softmax(scores)."""
    label = _relevance(key, exists, k, TOP)
    target = tl.where(exists, tl.exp((label - _greatest(label, exists)) / PARAMETER), 0.0)
    s = tl.where(exists, s - _greatest(s, exists), 0.0)
    e = tl.where(exists, tl.exp(s), 0.0)
    filled = tl.max(exists.to(tl.int32), 0) > 0
    total, target_total = tl.sum(e, 0), tl.sum(target, 0)
    total, target_total = tl.where(filled, total, 1.0), tl.where(filled, target_total, 1.0)
    target = target / target_total
    value = tl.where(filled, tl.log(total) - tl.sum(target * s, 0), 0.0)
    return value, e / total - target


@triton.jit
def cosine(
    s,
    key,
    exists,
    K,
    W,
    lo,
    n,
    k,
    PARAMETER: tl.constexpr,
    AVERAGE: tl.constexpr,
    CROSS: tl.constexpr,
    TOP: tl.constexpr,
    PAIRS: tl.constexpr,
):
    """(1 - cosine of scores and labels) / 2; scores shorter than PARAMETER count as that long.

    Vectors are divided by their greatest number before they are squared: nothing overflows.
    """
    label = tl.where(exists, _relevance(key, exists, k, TOP), 0.0)
    largest = tl.max(tl.abs(label), 0)
    known = tl.where(largest > 0, 0.5, 0.0)
    label = label / tl.where(largest > 0, largest, 1.0)
    unit = label / tl.maximum(tl.sqrt(tl.sum(label * label, 0)), 0.5)
    scale = tl.max(tl.abs(s), 0)
    scaled = s / tl.where(scale > 0, scale, 1.0)
    length = tl.maximum(tl.sqrt(tl.sum(scaled * scaled, 0)) * scale, PARAMETER)
    value = tl.sum(scaled * unit, 0) * (scale / length)
    radial = tl.where(length > PARAMETER, value, 0.0)
    gradient = (radial * (s / length) - unit) * (known / length)
    return known * (1.0 - value), gradient


@triton.jit
def squared_error(
    s,
    key,
    exists,
    K,
    W,
    lo,
    n,
    k,
    PARAMETER: tl.constexpr,
    AVERAGE: tl.constexpr,
    CROSS: tl.constexpr,
    TOP: tl.constexpr,
    PAIRS: tl.constexpr,
):
    """Half the squared differences of scores and labels."""
    error = tl.where(exists, s - _relevance(key, exists, k, TOP), 0.0)
    value = 0.5 * tl.sum(error * error, 0)
    if AVERAGE:
        count = tl.maximum(tl.sum(exists.to(tl.float64), 0), 1.0)
        value, error = value / count, error / count
    return value, error


@triton.jit
def _logistic(x, weight):
    """Return weight * log(1 + exp(x)), and its derivative; the logarithm is that of Kahan."""
    small = tl.exp(-tl.abs(x))
    sum = 1.0 + small
    log = tl.where(sum == 1.0, small, tl.log(sum) * (small / tl.where(sum == 1.0, 1.0, sum - 1.0)))
    return weight * (tl.maximum(x, 0.0) + log), weight * (tl.where(x > 0, 1.0, small) / sum)


@triton.jit
def pairwise_logistic(
    s,
    key,
    exists,
    K,
    W,
    lo,
    n,
    k,
    PARAMETER: tl.constexpr,
    AVERAGE: tl.constexpr,
    CROSS: tl.constexpr,
    TOP: tl.constexpr,
    PAIRS: tl.constexpr,
):
    """Logarithms of 1 + exp(s_v - s_u) over pairs, u better than v.

    The documents that can be better than another one are written side by side first.  The loss of
    PAIRS of them is computed at once, in float32 if the workspace W is.
    """
    FLOAT: tl.constexpr = W.dtype.element_ty
    lowest = tl.min(tl.where(exists, key, ALL), 0)
    upper, lower = (key > lowest).to(tl.float64), exists.to(tl.float64)
    if TOP:
        inside = _top_probability(key, k)
        upper = tl.where(key > lowest, inside, 0.0)
        if CROSS:
            lower = tl.where(exists, 1.0 - inside, 0.0)
    elif CROSS:  # of positive label against the others
        key = tl.where(exists, (key > 0).to(tl.float64), NONE)
        upper = (key > 0).to(tl.float64)
    chosen = (upper > 0).to(tl.int32)
    number = tl.cumsum(chosen, 0) - 1
    count = tl.sum(chosen, 0)
    better = W + 3 * lo  # scores, probabilities and derivatives of the chosen documents
    tl.store(K + lo + number, key, chosen > 0)
    tl.store(better + number, s.to(FLOAT), chosen > 0)
    tl.store(better + n + number, upper.to(FLOAT), chosen > 0)
    tl.debug_barrier()
    s, lower = s.to(FLOAT), lower.to(FLOAT)
    loss, gradient = tl.zeros_like(key), tl.zeros_like(key)
    total, u = tl.zeros_like(key), tl.arange(0, PAIRS)
    for first in range(0, count, PAIRS):
        at, some = first + u, first + u < count
        labels = tl.load(K + lo + at, some, other=NONE)
        scores = tl.load(better + at, some, other=0.0)
        weights = tl.load(better + n + at, some, other=0.0)
        weight = tl.where(labels[:, None] > key[None, :], weights[:, None] * lower[None, :], 0.0)
        pair_loss, derivative = _logistic(s[None, :] - scores[:, None], weight)
        loss += tl.sum(pair_loss, 0).to(tl.float64)
        gradient += tl.sum(derivative, 0).to(tl.float64)
        tl.store(better + 2 * n + at, tl.sum(derivative, 1), some)
        if AVERAGE:
            total += tl.sum(weight, 0).to(tl.float64)
    tl.debug_barrier()
    gradient -= tl.load(better + 2 * n + number, chosen > 0, other=0.0).to(tl.float64)
    value = tl.sum(loss, 0)
    if AVERAGE:
        weight_sum = tl.sum(total, 0)
        inverse = tl.where(weight_sum > 0, 1.0 / tl.where(weight_sum > 0, weight_sum, 1.0), 0.0)
        value, gradient = value * inverse, gradient * inverse
    return value, gradient


@triton.jit(do_not_specialize=["width", "k", "divisor"])
def each_list(
    S,
    Y,
    M,
    OFFSETS,
    K,
    W,
    G,
    V,
    width,
    k,
    divisor,
    N: tl.constexpr,
    PAIRS: tl.constexpr,
    MASKED: tl.constexpr,
    FLAT: tl.constexpr,
    PARAMETER: tl.constexpr,
    AVERAGE: tl.constexpr,
    CROSS: tl.constexpr,
    TOP: tl.constexpr,
    LOSS: tl.constexpr,
):
    """Write values V and gradients G, divided by a number, of scores S and labels Y.

    Lists are the rows of `width` documents, of which M hides some if MASKED is set; or, if FLAT is
    set, those between OFFSETS.
    """
    q = tl.program_id(0).to(tl.int64)
    lo, n = q * width, width
    if FLAT:
        lo = tl.load(OFFSETS + q)
        n = (tl.load(OFFSETS + q + 1) - lo).to(tl.int32)
    s, key, exists = _read_list(S, Y, M, lo, n, N, MASKED)
    value, gradient = LOSS(
        s, key, exists, K, W, lo, n, k.to(tl.float64), PARAMETER, AVERAGE, CROSS, TOP, PAIRS
    )
    j = tl.arange(0, N)
    tl.store(V + q, value / divisor)
    tl.store(G + lo + j, tl.where(exists, gradient / divisor, 0.0), j < n)


@triton.jit
def _read_list(S, Y, M, lo, n, N: tl.constexpr, MASKED: tl.constexpr):
    """Return scores, labels and which documents exist."""
    j = tl.arange(0, N)
    exists = j < n
    if MASKED:
        exists = exists & (tl.load(M + lo + j, j < n, other=0) != 0)
    s = tl.load(S + lo + j, exists, other=0.0).to(tl.float64)
    return s, tl.where(exists, tl.load(Y + lo + j, exists, other=0).to(tl.float64), NONE), exists


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
    s, gain, exists = _read_list(S, GAINS, M, lo, n, N, MASKED)
    gain = tl.where(exists, gain, 0.0).to(FLOAT)
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
