"""One pass over the features of a linear scorer, in Triton.

Scores, loss and gradient of a query are computed while its features are still in the cache, so that
memory is read about once.  A program takes its queries one after the other, always the same ones:
sums do not depend on scheduling.
"""

from __future__ import annotations

import triton
import triton.language as tl

from firstpage.solvers.gpu.list_kernels import LOW


@triton.jit
def fused_pass(
    X, W, S, G, A, B, K, D, OFFSETS, COUNTS, FACTORS, QUERY_WEIGHTS, FIRSTS, VALUES, GRADIENTS,
    F: tl.constexpr, WIDE: tl.constexpr, REST: tl.constexpr, R: tl.constexpr, N: tl.constexpr,
    LOSS: tl.constexpr,
):  # fmt: skip
    """Read the features as WIDE columns and the REST, R rows at a time."""
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
