"""SplitMix64: a small seeded generator, the same on every machine and in every version."""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel, part
from firstpage.types import Ints, Words

STEP = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
S27, S30, S31, S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@part
def mixed(state: np.uint64) -> np.uint64:
    """The output that belongs to `state`; the next state is `state + STEP`."""
    z = state
    z = (z ^ (z >> S30)) * MIX1
    z = (z ^ (z >> S27)) * MIX2
    return z ^ (z >> S31)


@part
def below(word: np.uint64, n: int) -> int:
    """A number in 0..n-1 (n < 2^31) from a random word, with a bias under 2^-32."""
    return np.int64(((word >> S32) * np.uint64(n)) >> S32)


@kernel
def random_words(seeds: Words, offsets: Ints, out: Words) -> None:
    """Fill each group of `out` from its own seed, whatever the other groups are."""
    for q in range(offsets.size - 1):
        state = seeds[q]
        for i in range(offsets[q], offsets[q + 1]):
            state = state + STEP
            out[i] = mixed(state)
