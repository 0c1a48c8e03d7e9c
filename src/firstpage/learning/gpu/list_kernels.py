"""List losses in Triton: one program per query, which reads its documents tile by tile.

Documents stand from best to worst label.  Every function computes one query: from the scores at
S + at it writes the gradient to G + at (D is workspace there), and returns the value.  A, B and K
are the columns of the term (see `losses.loss.LossTerm`), at `lo`.  `top` and `low` are the greatest
and the least score.  Where these are close, sums of exponentials are computed directly; where they
are far apart, through logarithms.  Scores beyond the end of a list have weight 0, but finite
exponentials: 0 times an overflow would be NaN.

`each_query` computes the losses of given scores.  `fused_pass` also computes linear scores and
their gradient, while the features of a query are still in the cache, so that memory is read about
once.  A program takes its queries one after the other, always the same ones: sums do not depend on
scheduling.
"""

from __future__ import annotations

import triton
import triton.language as tl

LOW = tl.constexpr(-3.0e38)
DIRECT_RANGE = tl.constexpr(80.0)  # exp(-80) is a float32 of full precision
DIRECT_PAIR_RANGE = tl.constexpr(20.0)  # so that products of PAIR_TILE exponentials do not overflow
PAIR_TILE = tl.constexpr(4)  # better documents whose pairs are computed at once


@triton.jit
def _add_log_sums(m1, s1, m2, s2):
    """Add two sums s * exp(m)."""
    m = tl.maximum(m1, m2)
    return m, tl.where(m1 == m, s1, s1 * tl.exp(m1 - m)) + tl.where(
        m2 == m, s2, s2 * tl.exp(m2 - m)
    )


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def plackett_luce(S, G, A, B, K, D, at, lo, n, count, top, low, factor, N: tl.constexpr):
    """A: coefficient of the score, B: mass at the first document of a level, K: weight."""
    value = tl.full((), 0.0, tl.float64)
    if top - low < DIRECT_RANGE:
        value = _direct_plackett_luce(S, G, A, B, K, at, lo, n, top, N)
    else:
        value = _log_plackett_luce(S, G, A, B, K, D, at, lo, n, N)
    return value


@triton.jit
def _direct_plackett_luce(S, G, A, B, K, at, lo, n, top, N: tl.constexpr):
    j = tl.arange(0, N)
    value = tl.full((), 0.0, tl.float64)
    below = tl.full((), 0.0, tl.float32)
    t = (n - 1) // N * N
    while t >= 0:
        ok = t + j < n
        s = tl.load(S + at + t + j, ok, other=top)
        coefficient = tl.load(A + lo + t + j, ok, other=0.0)
        mass = tl.load(B + lo + t + j, ok, other=0.0)
        e = tl.exp(s - top) * tl.load(K + lo + t + j, ok, other=0.0)
        z = tl.cumsum(e, 0, reverse=True) + below
        below += tl.sum(e, 0)
        z = tl.where(mass > 0, z, 1.0)
        value += tl.sum(mass * (tl.log(z) + top) - coefficient * s, 0).to(tl.float64)
        tl.store(G + at + t + j, mass / z, ok)
        t -= N
    tl.debug_barrier()
    above = tl.full((), 0.0, tl.float32)
    for t in range(0, n, N):
        ok = t + j < n
        s = tl.load(S + at + t + j, ok, other=top)
        e = tl.exp(s - top) * tl.load(K + lo + t + j, ok, other=0.0)
        ratio = tl.load(G + at + t + j, ok, other=0.0)
        reach = tl.cumsum(ratio, 0) + above
        above += tl.sum(ratio, 0)
        tl.store(G + at + t + j, e * reach - tl.load(A + lo + t + j, ok, other=0.0), ok)
    return value


@triton.jit
def _log_plackett_luce(S, G, A, B, K, D, at, lo, n, N: tl.constexpr):
    """Sums are s * exp(m), where m is a score: differences of scores far apart stay exact."""
    j = tl.arange(0, N)
    value = tl.full((), 0.0, tl.float64)
    m0, z0 = tl.full((), LOW, tl.float32), tl.full((), 0.0, tl.float32)
    t = (n - 1) // N * N
    while t >= 0:
        ok = t + j < n
        weight = tl.load(K + lo + t + j, ok, other=0.0)
        s = tl.load(S + at + t + j, ok, other=0.0)
        mass = tl.load(B + lo + t + j, ok, other=0.0)
        m, z = tl.associative_scan(
            (tl.where(weight > 0, s, LOW), weight), 0, _add_log_sums, reverse=True
        )
        m, total = _add_log_sums(m, z, m0, z0)
        z = tl.where(mass > 0, total, 1.0)
        logs = tl.where(mass > 0, m, 0.0).to(tl.float64) + tl.log(z).to(tl.float64)
        coefficient = tl.load(A + lo + t + j, ok, other=0.0)
        value += tl.sum(mass * logs - coefficient * s.to(tl.float64), 0)
        tl.store(G + at + t + j, m, ok)
        tl.store(D + at + t + j, mass / z, ok)
        m0 = tl.max(tl.where(j == 0, m, LOW), 0)
        z0 = tl.sum(tl.where(j == 0, total, 0.0), 0)
        t -= N
    tl.debug_barrier()
    m0, z0 = tl.full((), LOW, tl.float32), tl.full((), 0.0, tl.float32)
    for t in range(0, n, N):
        ok = t + j < n
        s = tl.load(S + at + t + j, ok, other=0.0)
        ratio = tl.load(D + at + t + j, ok, other=0.0)
        inverse = tl.where(ratio > 0, -tl.load(G + at + t + j, ok, other=0.0), LOW)
        m, z = tl.associative_scan((inverse, ratio), 0, _add_log_sums)
        m, z = _add_log_sums(m0, z0, m, z)
        weight = tl.load(K + lo + t + j, ok, other=0.0)
        counted = (z > 0) & (weight > 0)
        expected = tl.where(counted, weight * z * tl.exp(tl.where(counted, s + m, 0.0)), 0.0)
        tl.store(G + at + t + j, expected - tl.load(A + lo + t + j, ok, other=0.0), ok)
        m0 = tl.max(tl.where(j == N - 1, m, LOW), 0)
        z0 = tl.sum(tl.where(j == N - 1, z, 0.0), 0)
    return value


@triton.jit
def pairs(S, G, A, B, K, D, at, lo, n, count, top, low, factor, N: tl.constexpr):
    """A: weight as the better document, K: as the worse one, B: the end of the level.

    Only the first `count` documents are better than another one.
    """
    value = tl.full((), 0.0, tl.float64)
    if top - low < DIRECT_PAIR_RANGE:
        value = _direct_pairs(S, G, A, B, K, D, at, lo, n, count, 0.5 * (top + low), N)
    else:
        value = _log_pairs(S, G, A, B, K, D, at, lo, n, count, N)
    tl.debug_barrier()
    j = tl.arange(0, N)
    for t in range(0, count, N):
        ok = t + j < count
        g = tl.load(G + at + t + j, ok, other=0.0) - tl.load(D + at + t + j, ok, other=0.0)
        tl.store(G + at + t + j, g, ok)
    return value


@triton.jit
def _direct_pairs(S, G, A, B, K, D, at, lo, n, count, mid, N: tl.constexpr):
    """exp(s_v - s_u) factorizes, and a sum of logarithms is the logarithm of a product: no
    exponential per pair, and one logarithm per PAIR_TILE pairs."""
    j, k = tl.arange(0, N), tl.arange(0, PAIR_TILE)
    value = tl.zeros((N,), tl.float32)
    for t in range(0, n, N):
        i = t + j
        ok = i < n
        e = tl.exp(tl.load(S + at + i, ok, other=mid) - mid)
        worse = tl.load(K + lo + i, ok, other=0.0)
        worse_gradient = tl.zeros((N,), tl.float32)
        for first in range(0, tl.minimum(count, t + N), PAIR_TILE):
            u = first + k
            some = u < count
            inverse = tl.exp(mid - tl.load(S + at + u, some, other=0.0))
            better = tl.load(A + lo + u, some, other=0.0)
            end = tl.load(B + lo + u, some, other=3.0e38)
            largest, smallest = tl.max(better, 0), tl.min(tl.where(some, better, 3.0e38), 0)
            r = tl.where(i[None, :] >= end[:, None], e[None, :] * inverse[:, None], 0.0)
            if largest == smallest:
                value += largest * worse * tl.log(tl.reduce(1.0 + r, 0, _times))
            else:
                value += worse * tl.sum(better[:, None] * tl.log(1.0 + r), 0)
            p = better[:, None] * (r / (1.0 + r))
            worse_gradient += tl.sum(p, 0)
            better_gradient = tl.sum(p * worse[None, :], 1)
            if first < t:  # the tile before has started these sums
                better_gradient += tl.load(D + at + u, some, other=0.0)
            tl.store(D + at + u, better_gradient, some)
        tl.store(G + at + i, worse_gradient * worse, ok)
    return tl.sum(value, 0).to(tl.float64)


@triton.jit
def _log_pairs(S, G, A, B, K, D, at, lo, n, count, N: tl.constexpr):
    j, k = tl.arange(0, N), tl.arange(0, PAIR_TILE)
    value = tl.zeros((N,), tl.float32)
    for t in range(0, n, N):
        i = t + j
        ok = i < n
        s = tl.load(S + at + i, ok, other=0.0)
        worse = tl.load(K + lo + i, ok, other=0.0)
        worse_gradient = tl.zeros((N,), tl.float32)
        for first in range(0, tl.minimum(count, t + N), PAIR_TILE):
            u = first + k
            some = u < count
            better = tl.load(A + lo + u, some, other=0.0)
            end = tl.load(B + lo + u, some, other=3.0e38)
            w = tl.where(i[None, :] >= end[:, None], better[:, None], 0.0)
            x = s[None, :] - tl.load(S + at + u, some, other=0.0)[:, None]
            e = tl.exp(-tl.abs(x))
            value += tl.sum(w * (tl.maximum(x, 0.0) + tl.log(1.0 + e)), 0) * worse
            p = w * (tl.where(x > 0, 1.0, e) / (1.0 + e))
            worse_gradient += tl.sum(p, 0)
            better_gradient = tl.sum(p * worse[None, :], 1)
            if first < t:
                better_gradient += tl.load(D + at + u, some, other=0.0)
            tl.store(D + at + u, better_gradient, some)
        tl.store(G + at + i, worse_gradient * worse, ok)
    return tl.sum(value, 0).to(tl.float64)


@triton.jit
def softmax(S, G, A, B, K, D, at, lo, n, count, top, low, factor, N: tl.constexpr):
    """A: target probability, K: weight."""
    j = tl.arange(0, N)
    maximum = tl.full((), LOW, tl.float32)
    for t in range(0, n, N):
        weight = tl.load(K + lo + t + j, t + j < n, other=0.0)
        s = tl.load(S + at + t + j, t + j < n, other=0.0)
        maximum = tl.maximum(maximum, tl.max(tl.where(weight > 0, s, LOW), 0))
    total, agreement = tl.full((), 0.0, tl.float32), tl.full((), 0.0, tl.float32)
    for t in range(0, n, N):
        ok = t + j < n
        weight = tl.load(K + lo + t + j, ok, other=0.0)
        x = tl.where(weight > 0, tl.load(S + at + t + j, ok, other=0.0) - maximum, 0.0)
        e = weight * tl.exp(x)
        total += tl.sum(e, 0)
        agreement += tl.sum(tl.load(A + lo + t + j, ok, other=0.0) * x, 0)
        tl.store(G + at + t + j, e, ok)
    on = total > 0
    inverse = tl.where(on, factor, 0.0) / tl.where(on, total, 1.0)
    tl.debug_barrier()
    for t in range(0, n, N):
        ok = t + j < n
        target = tl.where(on, factor, 0.0) * tl.load(A + lo + t + j, ok, other=0.0)
        tl.store(G + at + t + j, tl.load(G + at + t + j, ok, other=0.0) * inverse - target, ok)
    return tl.where(on, factor * (tl.log(tl.where(on, total, 1.0)) - agreement), 0.0).to(tl.float64)


@triton.jit
def cosine(S, G, A, B, K, D, at, lo, n, count, top, low, factor, N: tl.constexpr):
    """A: the target, of length 1, K: weight; lengths below the factor are replaced by it."""
    j = tl.arange(0, N)
    largest = tl.where(n > 0, tl.maximum(tl.abs(top), tl.abs(low)), 0.0)
    unit = tl.maximum(largest, 1.0e-30)
    square, inner = tl.full((), 0.0, tl.float32), tl.full((), 0.0, tl.float32)
    target_square = tl.full((), 0.0, tl.float32)
    for t in range(0, n, N):
        ok = t + j < n
        s = tl.load(S + at + t + j, ok, other=0.0) / unit
        weight = tl.load(K + lo + t + j, ok, other=0.0)
        target = tl.load(A + lo + t + j, ok, other=0.0)
        square += tl.sum(weight * s * s, 0)
        inner += tl.sum(weight * s * target, 0)
        target_square += tl.sum(weight * target * target, 0)
    length = tl.maximum(tl.sqrt(square) * unit, factor)
    cosine = inner * (unit / length)
    projection = tl.where(length > factor, cosine, 0.0)
    half = tl.where(target_square > 0, 0.5, 0.0)
    for t in range(0, n, N):
        ok = t + j < n
        s = tl.load(S + at + t + j, ok, other=0.0)
        weight = tl.load(K + lo + t + j, ok, other=0.0)
        target = tl.load(A + lo + t + j, ok, other=0.0)
        tl.store(G + at + t + j, -half * weight * (target - projection * (s / length)) / length, ok)
    return (half * (1.0 - cosine)).to(tl.float64)


@triton.jit
def squared(S, G, A, B, K, D, at, lo, n, count, top, low, factor, N: tl.constexpr):
    """A: label, K: weight."""
    j = tl.arange(0, N)
    total = tl.full((), 0.0, tl.float64)
    for t in range(0, n, N):
        ok = t + j < n
        weight = tl.load(K + lo + t + j, ok, other=0.0)
        error = tl.load(S + at + t + j, ok, other=0.0) - tl.load(A + lo + t + j, ok, other=0.0)
        total += tl.sum(weight * error * error, 0).to(tl.float64)
        tl.store(G + at + t + j, factor * weight * error, ok)
    return 0.5 * factor * total


@triton.jit
def each_query(
    S, G, A, B, K, D, OFFSETS, COUNTS, FACTORS, VALUES, first, N: tl.constexpr, LOSS: tl.constexpr
):
    """Compute the loss of queries first, first + 1, .., one per program; S begins with the rows of
    query `first`."""
    number = tl.program_id(0)
    q = first + number
    lo = tl.load(OFFSETS + q)
    n = (tl.load(OFFSETS + q + 1) - lo).to(tl.int32)
    at = lo - tl.load(OFFSETS + first)
    j = tl.arange(0, N)
    top, low = tl.full((), LOW, tl.float32), tl.full((), -LOW, tl.float32)
    for t in range(0, n, N):
        s = tl.load(S + at + t + j, t + j < n, other=0.0)
        top = tl.maximum(top, tl.max(tl.where(t + j < n, s, LOW), 0))
        low = tl.minimum(low, tl.min(tl.where(t + j < n, s, -LOW), 0))
    value = LOSS(
        S, G, A, B, K, D, at, lo, n, tl.load(COUNTS + q), top, low, tl.load(FACTORS + q), N
    )
    tl.store(VALUES + number, value)


KINDS = {
    "plackett_luce": (plackett_luce, ("coefficient", "mass", "weight"), 256),
    "pairs": (pairs, ("upper", "end", "lower"), 128),
    "softmax": (softmax, ("target", None, "weight"), 256),
    "cosine": (cosine, ("target", None, "weight"), 256),
    "squared": (squared, ("label", None, "weight"), 256),
}
"""By kind of term: its function, the columns A, B and K, and the number of documents per tile."""


@triton.jit
def fused_pass(
    X,
    W,
    S,
    G,
    A,
    B,
    K,
    D,
    OFFSETS,
    COUNTS,
    FACTORS,
    QUERY_WEIGHTS,
    FIRSTS,
    VALUES,
    GRADIENTS,
    F: tl.constexpr,
    WIDE: tl.constexpr,
    REST: tl.constexpr,
    R: tl.constexpr,
    N: tl.constexpr,
    LOSS: tl.constexpr,
):
    """Compute scores, losses and gradients.

    Features are read as WIDE columns and the REST, R rows at a time.
    """
    program = tl.program_id(0)
    c0, c1, row = tl.arange(0, WIDE), WIDE + tl.arange(0, REST), tl.arange(0, R)
    inside = c1 < F
    w0, w1 = tl.load(W + c0), tl.load(W + c1, inside, other=0.0)
    gradient0, gradient1 = tl.zeros((R, WIDE), tl.float32), tl.zeros((R, REST), tl.float32)
    for q in range(tl.load(FIRSTS + program), tl.load(FIRSTS + program + 1)):
        lo = tl.load(OFFSETS + q)
        n = (tl.load(OFFSETS + q + 1) - lo).to(tl.int32)
        maxima, minima = tl.full((R,), LOW, tl.float32), tl.full((R,), -LOW, tl.float32)
        for r in range(0, n, R):
            ok = r + row < n
            at = X + (lo + r + row)[:, None] * F
            some = ok[:, None] & inside[None, :]
            x0 = tl.load(at + c0[None, :], ok[:, None], other=0.0, eviction_policy="evict_last")
            x1 = tl.load(at + c1[None, :], some, other=0.0, eviction_policy="evict_last")
            s = tl.sum(x0 * w0[None, :], 1) + tl.sum(x1 * w1[None, :], 1)
            tl.store(S + lo + r + row, s, ok)
            maxima = tl.where(ok, tl.maximum(maxima, s), maxima)
            minima = tl.where(ok, tl.minimum(minima, s), minima)
        top, low = tl.max(maxima, 0), tl.min(minima, 0)
        tl.debug_barrier()
        count, factor = tl.load(COUNTS + q), tl.load(FACTORS + q)
        value = LOSS(S, G, A, B, K, D, lo, lo, n, count, top, low, factor, N)
        tl.store(VALUES + q, value)
        tl.debug_barrier()
        weight = tl.load(QUERY_WEIGHTS + q)
        for r in range(0, n, R):
            ok = r + row < n
            at = X + (lo + r + row)[:, None] * F
            some = ok[:, None] & inside[None, :]
            g = tl.load(G + lo + r + row, ok, other=0.0) * weight
            x0 = tl.load(at + c0[None, :], ok[:, None], other=0.0, eviction_policy="evict_first")
            x1 = tl.load(at + c1[None, :], some, other=0.0, eviction_policy="evict_first")
            gradient0 += x0 * g[:, None]
            gradient1 += x1 * g[:, None]
    tl.store(GRADIENTS + program * F + c0, tl.sum(gradient0, 0))
    tl.store(GRADIENTS + program * F + c1, tl.sum(gradient1, 0), inside)
