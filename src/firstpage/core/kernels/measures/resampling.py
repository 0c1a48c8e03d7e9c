"""Resampling over queries: sign flips, permutations of systems, bootstrap means."""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import compiled_kernel
from firstpage.core.kernels.hashing import STEP, bounded, mix
from firstpage.core.types import Floats, Ints

ONE = np.uint64(1)
EIGHT = np.uint64(8)
BYTE = np.uint64(255)


@compiled_kernel
def flip_signs(sums: Floats, rounds: int, seed: int, limit: float) -> int:
    """Return how often |sum of randomly signed differences| reaches `limit` in `rounds` samples.

    Row g of `sums` has the sums of differences 8 g to 8 g + 7 for the 256 patterns of their signs.
    One random word gives the signs of 64 differences.
    """
    state = np.uint64(seed)
    count = 0
    groups = sums.shape[0]
    for _ in range(rounds):
        total = 0.0
        for first in range(0, groups, 8):
            state = state + STEP
            bits = mix(state)
            for group in range(first, min(first + 8, groups)):
                total += sums[group, bits & BYTE]
                bits = bits >> EIGHT
        if abs(total) >= limit:
            count += 1
    return count


@compiled_kernel
def flip_all_signs(differences: Floats, limit: float) -> int:
    """Return how many of the 2^(n-1) sign patterns reach `limit`, as in `flip_signs` (n <= 24).

    A pattern and its negative have the same absolute sum, so one of the two is counted.

    Patterns are enumerated in Gray-code order: each differs from the one before in one sign.
    """
    n = differences.size
    total = 0.0
    for i in range(n):
        total += differences[i]
    count = 1 if abs(total) >= limit else 0
    signs = np.uint64(0)
    for step in range(1, 1 << (n - 1)):
        index = 0
        bits = step
        while bits & 1 == 0:
            bits >>= 1
            index += 1
        bit = ONE << np.uint64(index)
        if signs & bit:
            total += 2.0 * differences[index]
        else:
            total -= 2.0 * differences[index]
        signs = signs ^ bit
        if abs(total) >= limit:
            count += 1
    return count


@compiled_kernel
def tukey_ranges(values: Floats, systems: int, rounds: int, seed: int, out: Floats) -> None:
    """Write the range of the systems' sums when each query's values are permuted among systems.

    `values` holds the systems of query 0, then of query 1, and so on; it is permuted in place.
    """
    state = np.uint64(seed)
    queries = values.size // systems
    for r in range(rounds):
        for q in range(queries):
            for s in range(systems - 1, 0, -1):
                state = state + STEP
                other = bounded(mix(state), s + 1)
                a, b = q * systems + s, q * systems + other
                values[a], values[b] = values[b], values[a]
        low, high = np.inf, -np.inf
        for s in range(systems):
            total = 0.0
            for q in range(queries):
                total += values[q * systems + s]
            low, high = min(low, total), max(high, total)
        out[r] = high - low


@compiled_kernel
def bootstrap_means(values: Floats, seed: int, sample: Ints, out: Floats) -> None:
    """Write the means of samples of the queries drawn with replacement, one row per round.

    `values` has one row per measure; all measures use the same sample.
    """
    measures, n = values.shape
    state = np.uint64(seed)
    for r in range(out.shape[0]):
        for i in range(n):
            state = state + STEP
            sample[i] = bounded(mix(state), n)
        for m in range(measures):
            total = 0.0
            for i in range(n):
                total += values[m, sample[i]]
            out[r, m] = total / n
