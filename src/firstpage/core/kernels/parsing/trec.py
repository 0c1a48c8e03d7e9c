"""Parse TREC qrels and run lines to columns: query indices, document ranges, values."""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.hashing import BASIS, PRIME, equal_ranges, hash_bytes, mix
from firstpage.core.kernels.parsing.letor import is_space
from firstpage.core.kernels.parsing.numbers import parse_number
from firstpage.core.types import Bytes, Floats, Ints, Words

TOO_FEW, BAD_NUMBER, TOO_MANY = 1, 2, 3
# Slots of `state`.
ROWS, QUERIES, FALLBACKS, ERROR_AT, FIELD = range(5)


@subroutine
def find_query(
    buf: Bytes, start: int, end: int, table: Ints, starts: Ints, ends: Ints
) -> tuple[int, int]:
    """Return (slot, index) of a query name in the hash table; index -1 means a free slot."""
    mask = table.size - 1
    slot = np.int64(hash_bytes(buf, start, end) & np.uint64(mask))
    while table[slot] >= 0:
        q = table[slot]
        if equal_ranges(buf, start, end, buf, starts[q], ends[q]):
            return slot, q
        slot = (slot + 1) & mask
    return slot, -1


@subroutine
def parse_digits(buf: Bytes, start: int, end: int) -> int:
    """Return the integer that these digits represent, or -1 if they are not digits."""
    if end - start > 18:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(start, end):
        if buf[i] < 48 or buf[i] > 57:
            return np.int64(-1)
        value = 10 * value + np.int64(buf[i]) - 48
    return value


@kernel
def parse_trec(
    buf: Bytes,
    size: int,
    value_field: int,
    closed: int,
    tens: Floats,
    fives: Words,
    bits: Words,
    real: Floats,
    query: Ints,
    doc_starts: Ints,
    doc_ends: Ints,
    doc_hashes: Words,
    values: Floats,
    ranks: Ints,
    query_starts: Ints,
    query_ends: Ints,
    table: Ints,
    fallbacks: Ints,
    state: Ints,
) -> int:
    """Parse lines `query . document .. value ..`, with the value in field `value_field` (from 0).

    If `closed`, nothing may follow the value.  Else field 3 is a rank, written to `ranks`: -1 where
    it is not an integer.  The last byte is a line feed.  Queries are numbered by first appearance;
    the length of `table` is a power of two above the number of queries, and it is filled with -1.
    """
    pos = rows = queries = n_fallback = np.int64(0)
    last = np.int64(-1)
    while pos < size:
        while is_space(buf[pos]):
            pos += 1
        if buf[pos] != 10:
            field = 0
            while True:
                start = pos
                if field == value_field:
                    decided, pos, value = parse_number(buf, pos, tens, fives, bits, real)
                    if pos == start or not (is_space(buf[pos]) or buf[pos] == 10):
                        state[ERROR_AT] = start
                        return BAD_NUMBER
                    if not decided:
                        fallbacks[n_fallback] = rows
                        fallbacks[n_fallback + 1] = start
                        fallbacks[n_fallback + 2] = pos
                        n_fallback += 3
                    values[rows] = value
                    break
                if field == 2:
                    h = BASIS
                    while not is_space(buf[pos]) and buf[pos] != 10:
                        h = (h ^ np.uint64(buf[pos])) * PRIME
                        pos += 1
                    doc_starts[rows] = start
                    doc_ends[rows] = pos
                    doc_hashes[rows] = mix(h)
                else:
                    while not is_space(buf[pos]) and buf[pos] != 10:
                        pos += 1
                    if field == 3:
                        ranks[rows] = parse_digits(buf, start, pos)
                if field == 0 and not (
                    last >= 0
                    and equal_ranges(buf, start, pos, buf, query_starts[last], query_ends[last])
                ):
                    slot, last = find_query(buf, start, pos, table, query_starts, query_ends)
                    if last < 0:
                        last = queries
                        table[slot] = last
                        query_starts[last] = start
                        query_ends[last] = pos
                        queries += 1
                field += 1
                while is_space(buf[pos]):
                    pos += 1
                if buf[pos] == 10:
                    state[ERROR_AT] = pos
                    state[FIELD] = field
                    return TOO_FEW
            query[rows] = last
            rows += 1
            while is_space(buf[pos]):
                pos += 1
            if closed and buf[pos] != 10:
                state[ERROR_AT] = pos
                return TOO_MANY
            while buf[pos] != 10:
                pos += 1
        pos += 1
    state[ROWS] = rows
    state[QUERIES] = queries
    state[FALLBACKS] = n_fallback
    return 0
