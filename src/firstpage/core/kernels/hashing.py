"""Hashes of identifiers, joins by identifier, and random words, all based on one 64-bit mixer.

The random words are those of SplitMix64: the same on every machine and in every version.
"""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.types import Bytes, Ints, Words

STEP = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
S27, S30, S31, S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@subroutine
def mix(state: np.uint64) -> np.uint64:
    """Return the output of SplitMix64 for `state`; the next state is `state + STEP`."""
    z = state
    z = (z ^ (z >> S30)) * MIX1
    z = (z ^ (z >> S27)) * MIX2
    return z ^ (z >> S31)


@subroutine
def bounded(word: np.uint64, n: int) -> int:
    """Return an integer in 0..n-1 (n < 2^31) from a random word, with a bias below 2^-32."""
    return np.int64(((word >> S32) * np.uint64(n)) >> S32)


@kernel
def random_words(seeds: Words, offsets: Ints, out: Words) -> None:
    """Fill each group of `out` from its own seed, independently of the other groups."""
    for q in range(offsets.size - 1):
        state = seeds[q]
        for i in range(offsets[q], offsets[q + 1]):
            state = state + STEP
            out[i] = mix(state)


# --- identifiers as byte ranges: hashing, copying, joining


PRIME = np.uint64(0x100000001B3)
BASIS = np.uint64(0xCBF29CE484222325)


@subroutine
def hash_bytes(data: Bytes, start: int, end: int) -> np.uint64:
    """Return the FNV-1a hash, mixed so that its low bits are suitable for a hash table."""
    h = BASIS
    for i in range(start, end):
        h = (h ^ np.uint64(data[i])) * PRIME
    return mix(h)


@kernel
def hash_ids(data: Bytes, starts: Ints, ends: Ints, out: Words) -> None:
    """Write the hash of every byte range to `out`."""
    for i in range(starts.size):
        out[i] = hash_bytes(data, starts[i], ends[i])


@kernel
def gather_bytes(data: Bytes, starts: Ints, ends: Ints, out: Bytes) -> None:
    """Copy the byte ranges to `out`, one after the other."""
    at = 0
    for i in range(starts.size):
        for j in range(starts[i], ends[i]):
            out[at] = data[j]
            at += 1


@subroutine
def load_word(data: Bytes, at: int) -> np.uint64:
    """Return eight bytes as a word; the compiler makes one load of them."""
    first = np.uint64(at)  # an index that may be negative would take a branch per byte
    word = np.uint64(data[first])
    for i in range(1, 8):
        word |= np.uint64(data[first + np.uint64(i)]) << np.uint64(8 * i)
    return word


@subroutine
def equal_ranges(a: Bytes, a_start: int, a_end: int, b: Bytes, b_start: int, b_end: int) -> bool:
    """Return whether two byte ranges are equal: by words of eight bytes, the last of them short."""
    size = a_end - a_start
    if size != b_end - b_start:
        return False
    i: int = np.int64(0)
    while size - i >= 8:
        if load_word(a, a_start + i) != load_word(b, b_start + i):
            return False
        i += 8
    if i == size:
        return True
    if a_start + i + 8 <= a.size and b_start + i + 8 <= b.size:
        difference = load_word(a, a_start + i) ^ load_word(b, b_start + i)
        return difference << np.uint64(8 * (8 - (size - i))) == np.uint64(0)
    while i < size:
        if a[a_start + i] != b[b_start + i]:
            return False
        i += 1
    return True


@subroutine
def insert_right(
    data: Bytes, starts: Ints, ends: Ints, hashes: Words, lo: int, hi: int, table: Ints, size: int
) -> int:
    """Insert identifiers lo..hi into an empty hash table; return the first duplicate, or -1."""
    for i in range(lo, hi):
        slot = np.int64(hashes[i] & np.uint64(size - 1))
        while table[slot] != -1:
            other = table[slot]
            if hashes[other] == hashes[i] and equal_ranges(
                data, starts[i], ends[i], data, starts[other], ends[other]
            ):
                return i
            slot = (slot + 1) & (size - 1)
        table[slot] = i
    return -1


@kernel
def join_ids(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    hashes: Words,
    offsets: Ints,
    to_data: Bytes,
    to_starts: Ints,
    to_ends: Ints,
    to_hashes: Words,
    to_offsets: Ints,
    partner: Ints,
    table: Ints,
    matches: Ints,
) -> int:
    """Write the index of the equal identifier in the partner query, or -1, to `matches`.

    Query q on the left is looked up in query partner[q] on the right (-1: none).  Returns -1, or
    the index of a left identifier that occurs twice in its query; a duplicate right one is
    returned as -2 - index.  The length of `table` is a power of two, at least twice that of any two
    lists together, and it is filled with -1.  It stores right identifiers as i, left ones as
    -2 - i.
    """
    for q in range(offsets.size - 1):
        lo, hi = offsets[q], offsets[q + 1]
        right_lo, right_hi = 0, 0
        if partner[q] >= 0:
            right_lo, right_hi = to_offsets[partner[q]], to_offsets[partner[q] + 1]
        size = 16
        while size < 2 * (hi - lo + right_hi - right_lo):
            size *= 2
        repeated = insert_right(
            data=to_data,
            starts=to_starts,
            ends=to_ends,
            hashes=to_hashes,
            lo=right_lo,
            hi=right_hi,
            table=table,
            size=size,
        )
        if repeated >= 0:
            return -2 - repeated
        for i in range(lo, hi):
            matches[i] = -1
            slot = np.int64(hashes[i] & np.uint64(size - 1))
            while table[slot] != -1:
                other = table[slot]
                if other >= 0:
                    if to_hashes[other] == hashes[i] and equal_ranges(
                        data, starts[i], ends[i], to_data, to_starts[other], to_ends[other]
                    ):
                        matches[i] = other
                        break
                elif hashes[-2 - other] == hashes[i] and equal_ranges(
                    data, starts[i], ends[i], data, starts[-2 - other], ends[-2 - other]
                ):
                    return i
                slot = (slot + 1) & (size - 1)
            table[slot] = -2 - i  # a second occurrence in the query ends the search here
        for slot in range(size):
            table[slot] = -1
    return -1
