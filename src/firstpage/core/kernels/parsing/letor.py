"""Parse LETOR (SVMlight with qid) text to arrays, one chunk of complete lines at a time."""

from __future__ import annotations

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.hashing import equal_ranges
from firstpage.core.kernels.parsing.numbers import parse_number
from firstpage.core.types import Array, Bytes, Floats, Ints, Words

# Error codes; `data.formats.letor_reader` has the messages.
BAD_LABEL, NO_QID, EMPTY_QID, BAD_INDEX, BAD_VALUE, HUGE_INDEX = range(1, 7)
# Slots of `state`, which is both input and output.
USED, LINES, ROWS, VALUES, QUERIES, FALLBACKS, ID_BYTES, QID_BYTES, ERROR_AT = range(9)
MAX_INDEX, MIN_INDEX, UNSORTED, STATE_SIZE = range(9, 13)
INDEX_LIMIT = 2**31 - 1


@subroutine
def is_space(c: int) -> bool:
    """Return whether c is a blank: space, tab, vertical tab, form feed, carriage return."""
    return c == 32 or c == 9 or c == 13 or c == 11 or c == 12


@subroutine
def skip_space(buf: Bytes, pos: int) -> int:
    """Return the position of the next non-blank byte."""
    while is_space(buf[pos]):
        pos += 1
    return pos


@subroutine
def token_end(buf: Bytes, pos: int) -> int:
    """Return the end of the token that starts at `pos`."""
    while not ends_token(buf[pos]):
        pos += 1
    return pos


@subroutine
def word_end(buf: Bytes, pos: int) -> int:
    """Return the end of a word inside a comment, where # belongs to the word."""
    while not is_space(buf[pos]) and buf[pos] != 10:
        pos += 1
    return pos


@subroutine
def ends_token(c: int) -> bool:
    """Return whether c is a blank, a line feed or #."""
    return c == 10 or c == 35 or is_space(c)


@subroutine
def is_docid(buf: Bytes, at: int) -> bool:
    """Return whether "ocid" follows the byte at `at`."""
    return buf[at + 1] == 111 and buf[at + 2] == 99 and buf[at + 3] == 105 and buf[at + 4] == 100


@subroutine
def find_docid(buf: Bytes, pos: int) -> tuple[int, int]:
    """Return the range of the document id in a comment: after `docid =`, else the first word."""
    at = pos
    while buf[at] != 10:
        if buf[at] == 100 and is_docid(buf, at):
            start = skip_space(buf, at + 5)
            if buf[start] == 61 or buf[start] == 58:
                start = skip_space(buf, start + 1)
                return start, word_end(buf, start)
        at += 1
    start = skip_space(buf, pos)
    return start, word_end(buf, start)


@subroutine
def copy_bytes(buf: Bytes, start: int, end: int, out: Bytes, at: int) -> int:
    """Append a byte range to `out`; return the position of the next one."""
    for i in range(start, end):
        out[at] = buf[i]
        at += 1
    return at


@subroutine
def is_qid(buf: Bytes, pos: int) -> bool:
    """Return whether "qid:" starts at `pos`."""
    return buf[pos] == 113 and buf[pos + 1] == 105 and buf[pos + 2] == 100 and buf[pos + 3] == 58


@kernel
def parse_letor(
    buf: Bytes,
    size: int,
    tens: Floats,
    fives: Words,
    bits: Words,
    real: Floats,
    labels: Floats,
    row_ends: Ints,
    indices: Ints,
    values: Floats,
    query_rows: Ints,
    query_ends: Ints,
    query_names: Bytes,
    id_ends: Ints,
    ids: Bytes,
    fallbacks: Ints,
    state: Ints,
) -> int:
    """Parse the complete lines in buf[:size]; return 0 or the code of the first error.

    The last byte is a line feed, which ends every loop below.  Row r has the values
    row_ends[r-1]:row_ends[r].  A query is recorded where its name differs from that of the row
    before; the first row is always recorded.  `fallbacks` receives triples (index of the value, or
    -1 - row for a label; start; end) of numbers that Python must parse.
    """
    zero = np.int64(0)  # a literal 0 would compile the subroutines again, for constants
    pos = rows = count = queries = n_fallback = id_at = name_at = name_from = zero
    max_index, min_index = state[MAX_INDEX], state[MIN_INDEX]
    state[UNSORTED] = 0
    while pos < size:
        state[USED] = pos
        pos = skip_space(buf, pos)
        if buf[pos] != 10 and buf[pos] != 35:
            index, last = -1, -1  # index -1: the next number is the label
            while True:
                decided, after, value = parse_number(buf, pos, tens, fives, bits, real)
                if after == pos or not ends_token(buf[after]):
                    state[ERROR_AT] = pos
                    return BAD_LABEL if index < 0 else BAD_VALUE
                if not decided:
                    fallbacks[n_fallback] = count if index >= 0 else -1 - rows
                    fallbacks[n_fallback + 1] = pos
                    fallbacks[n_fallback + 2] = after
                    n_fallback += 3
                if index >= 0:
                    indices[count] = index
                    values[count] = value
                    count += 1
                else:
                    labels[rows] = value
                    pos = skip_space(buf, after)
                    after = token_end(buf, pos)
                    if not is_qid(buf, pos):
                        state[ERROR_AT] = pos
                        return NO_QID
                    pos += 4
                    if after == pos:
                        state[ERROR_AT] = pos
                        return EMPTY_QID
                    if rows == 0 or not equal_ranges(
                        buf, pos, after, query_names, name_from, name_at
                    ):
                        name_from = name_at
                        name_at = copy_bytes(buf, pos, after, query_names, name_at)
                        query_rows[queries] = rows
                        query_ends[queries] = name_at
                        queries += 1
                pos = after
                while is_space(buf[pos]):
                    pos += 1
                if buf[pos] == 10 or buf[pos] == 35:
                    break
                index, after = 0, pos
                while True:
                    digit = np.int64(buf[after]) - 48
                    if digit < 0 or digit > 9:
                        break
                    index = min(index * 10 + digit, INDEX_LIMIT + 1)
                    after += 1
                if after == pos or buf[after] != 58:
                    state[ERROR_AT] = pos
                    return BAD_INDEX
                if index > INDEX_LIMIT:
                    state[ERROR_AT] = pos
                    return HUGE_INDEX
                if index <= last:
                    state[UNSORTED] = 1
                last = max(last, index)
                min_index = min(min_index, index)
                pos = after + 1
            max_index = max(max_index, last)
            row_ends[rows] = count
            if buf[pos] == 35:
                pos, after = find_docid(buf, pos + 1)
                id_at = copy_bytes(buf, pos, after, ids, id_at)
            id_ends[rows] = id_at
            rows += 1
        while buf[pos] != 10:
            pos += 1
        pos += 1
        state[LINES] += 1
    state[USED] = size
    state[ROWS] = rows
    state[VALUES] = count
    state[QUERIES] = queries
    state[FALLBACKS] = n_fallback
    state[ID_BYTES] = id_at
    state[QID_BYTES] = name_at
    state[MAX_INDEX] = max_index
    state[MIN_INDEX] = min_index
    return 0


@kernel
def scatter(
    flat: Array, first_row: int, width: int, row_ends: Ints, columns: Ints, values: Floats
) -> int:
    """Write sparse rows to rows first_row.. of a dense row-major array, with zeros elsewhere.

    Returns the index of a finite value that overflowed the array's data type, or -1.
    """
    at = 0
    overflow = -1
    for r in range(row_ends.size):
        base = (first_row + r) * width
        for i in range(base, base + width):
            flat[i] = 0
        while at < row_ends[r]:
            position = base + columns[at]
            flat[position] = values[at]
            if overflow < 0 and np.isinf(flat[position]) and not np.isinf(values[at]):
                overflow = at
            at += 1
    return overflow


# --- files of scores: one number per line


@kernel
def parse_scores(
    buf: Bytes,
    size: int,
    tens: Floats,
    fives: Words,
    bits: Words,
    real: Floats,
    values: Floats,
    fallbacks: Ints,
    state: Ints,
) -> int:
    """Parse buf[:size], which ends with a line feed; return 0, or 1 for an error.

    `state` receives the number of rows, the size of `fallbacks`, and the position of an error.
    """
    pos = rows = n_fallback = np.int64(0)
    while pos < size:
        while is_space(buf[pos]):
            pos += 1
        if buf[pos] != 10 and buf[pos] != 35:
            start = pos
            decided, pos, value = parse_number(buf, pos, tens, fives, bits, real)
            if not decided:
                fallbacks[n_fallback] = rows
                fallbacks[n_fallback + 1] = start
                fallbacks[n_fallback + 2] = pos
                n_fallback += 3
            end = pos
            while is_space(buf[pos]):
                pos += 1
            if end == start or (buf[pos] != 10 and buf[pos] != 35):
                state[2] = start
                return 1
            values[rows] = value
            rows += 1
        while buf[pos] != 10:
            pos += 1
        pos += 1
    state[0] = rows
    state[1] = n_fallback
    return 0
