"""One number a line."""

from __future__ import annotations

import numpy as np

from firstpage.kernels.compiler.decorators import kernel
from firstpage.kernels.parsing.letor import is_space
from firstpage.kernels.parsing.numbers import parse_number
from firstpage.types import Bytes, Floats, Ints, Words


@kernel
def parse_scores(
    buf: Bytes,
    size: int,
    tens: Floats,
    fives: Words,
    bits: Words,
    real: Floats,
    values: Floats,
    hards: Ints,
    state: Ints,
) -> int:
    """Read buf[:size], which ends with a line feed; state: rows, hard numbers, place of error."""
    pos = rows = hard = np.int64(0)
    while pos < size:
        while is_space(buf[pos]):
            pos += 1
        if buf[pos] != 10 and buf[pos] != 35:
            start = pos
            done, pos, value = parse_number(buf, pos, tens, fives, bits, real)
            if not done:
                hards[hard] = rows
                hards[hard + 1] = start
                hards[hard + 2] = pos
                hard += 3
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
    state[1] = hard
    return 0
