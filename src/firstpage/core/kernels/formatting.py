"""Write numbers as the shortest decimal text that reads back to the same bits, and LETOR lines.

The digits are found by Schubfach (Giulietti 2020, "The Schubfach way to render doubles"): of the
decimals that round to a float, the shortest, and of those the closest.  The text has the form of
Python's repr(), without a final `.0`: `3`, `-0`, `0.0001`, `1e-05`, `1.5e+16`, `nan`, `inf`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from firstpage.core.kernels.compiler.decorators import kernel, subroutine
from firstpage.core.kernels.parsing.letor import copy_bytes, is_space
from firstpage.core.kernels.parsing.numbers import product_high
from firstpage.core.types import Bytes, Ints, Words

MIN_POWER, MAX_POWER = -292, 324  # exponents of ten in the table: enough for float64
MAX_NUMBER_BYTES = 24  # -1.7976931348623157e+308
MIN_POINT, MAX_POINT = -3, 16  # other positions of the decimal point need an exponent

ZERO, ONE, TWO, FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)
TEN, FORTY = np.uint64(10), np.uint64(40)


@cache
def powers_of_ten() -> Words:
    """Return 10^MIN_POWER..10^MAX_POWER, each scaled to 128 bits and rounded up, as two words."""
    words = []
    for exponent in range(MIN_POWER, MAX_POWER + 1):
        size = (10 ** abs(exponent)).bit_length()
        if exponent < 0:
            power = -(-(1 << (127 + size)) // 10**-exponent)
        else:
            power = -(-(10**exponent << 128) >> size)
        words += [power >> 64, power & 0xFFFFFFFFFFFFFFFF]
    return np.array(words, np.uint64)


@subroutine
def multiply_round_to_odd(high: np.uint64, low: np.uint64, factor: np.uint64) -> np.uint64:
    """Return the product of a 128-bit number and `factor`, divided by 2^128.

    The last bit of the result is set if the division is not exact, apart from the error of `low`.
    """
    carry = product_high(low, factor)
    fraction = high * factor + carry
    whole = product_high(high, factor)
    if fraction < carry:
        whole = whole + ONE
    return whole | ONE if fraction > ONE else whole


@subroutine
def shortest_decimal(
    significand: np.uint64, exponent: int, is_power_of_two: bool, powers: Words
) -> tuple[np.uint64, int]:
    """Return (digits, decimal exponent) of the float significand * 2^exponent > 0.

    `is_power_of_two`: the next smaller float is at half the distance of the next larger one.
    """
    if -53 < exponent <= 0 and significand & ((ONE << np.uint64(-exponent)) - ONE) == ZERO:
        return significand >> np.uint64(-exponent), 0  # an integer
    # In units of a quarter of the last bit: the float, and the ends of the interval that rounds
    # to it.  An end belongs to the interval if the significand is even.
    center = FOUR * significand
    below = center - (ONE if is_power_of_two else TWO)
    above = center + TWO
    odd = significand & ONE
    scale = (exponent * 1262611 - (524031 if is_power_of_two else 0)) >> 22  # floor(log10(..))
    shift = np.uint64(exponent + ((-scale * 1741647) >> 19) + 1)
    at = 2 * (-scale - MIN_POWER)
    high, low = powers[at], powers[at + 1]
    lower = multiply_round_to_odd(high, low, below << shift) + odd
    middle = multiply_round_to_odd(high, low, center << shift)
    upper = multiply_round_to_odd(high, low, above << shift) - odd
    digits = middle // FOUR
    if digits >= TEN:  # one digit fewer, if exactly one such decimal is in the interval
        shorter = digits // TEN
        down = lower <= FORTY * shorter
        up = FORTY * shorter + FORTY <= upper
        if down != up:
            return shorter + (ONE if up else ZERO), scale + 1
    down = lower <= FOUR * digits
    up = FOUR * digits + FOUR <= upper
    if down != up:
        return digits + (ONE if up else ZERO), scale
    half = FOUR * digits + TWO
    up = middle > half or (middle == half and digits & ONE == ONE)
    return digits + (ONE if up else ZERO), scale


@subroutine
def count_digits(number: np.uint64) -> int:
    """Return the number of decimal digits of a number below 10^19."""
    count = 1
    limit = TEN
    while number >= limit and count < 19:
        limit = limit * TEN
        count += 1
    return count


@subroutine
def write_digits(number: np.uint64, count: int, out: Bytes, at: int) -> int:
    """Write the last `count` digits of a number to `out`; return the position after them."""
    for i in range(at + count - 1, at - 1, -1):
        rest = number // TEN
        out[i] = 48 + np.int64(number - rest * TEN)
        number = rest
    return at + count


@subroutine
def write_zeros(count: int, out: Bytes, at: int) -> int:
    """Write `count` zeros to `out`; return the position after them."""
    for i in range(at, at + count):
        out[i] = 48
    return at + count


@subroutine
def write_decimal(digits: np.uint64, exponent: int, out: Bytes, at: int) -> int:
    """Write digits * 10^exponent to `out`; return the position after it."""
    while digits >= TEN and digits - digits // TEN * TEN == ZERO:
        digits = digits // TEN
        exponent += 1
    count = count_digits(digits)
    point = count + exponent
    if point > MAX_POINT or point < MIN_POINT:
        end = write_digits(digits, count, out, at + 1)  # one to the right, to insert the point
        out[at] = out[at + 1]
        out[at + 1] = 46  # .
        at = end if count > 1 else at + 1
        out[at] = 101  # e
        out[at + 1] = 43 if point > 0 else 45  # + or -
        power = np.uint64(abs(point - 1))
        return write_digits(power, max(2, count_digits(power)), out, at + 2)
    if exponent >= 0:
        return write_zeros(exponent, out, write_digits(digits, count, out, at))
    if point <= 0:
        out[at] = 48
        out[at + 1] = 46
        return write_digits(digits, count, out, write_zeros(-point, out, at + 2))
    end = write_digits(digits, count, out, at + 1)
    for i in range(at, at + point):
        out[i] = out[i + 1]
    out[at + point] = 46
    return end


@subroutine
def write_number(
    word: np.uint64, significand_bits: int, exponent_bits: int, powers: Words, out: Bytes, at: int
) -> int:
    """Write the float with these bits to `out`; return the position after it."""
    fraction = word & ((ONE << np.uint64(significand_bits)) - ONE)
    largest = (1 << exponent_bits) - 1
    exponent = np.int64(word >> np.uint64(significand_bits)) & largest
    if exponent == largest and fraction != ZERO:
        out[at], out[at + 1], out[at + 2] = 110, 97, 110  # nan
        return at + 3
    if word >> np.uint64(significand_bits + exponent_bits) != ZERO:
        out[at] = 45  # -
        at += 1
    if exponent == largest:
        out[at], out[at + 1], out[at + 2] = 105, 110, 102  # inf
        return at + 3
    if exponent == 0 and fraction == ZERO:
        out[at] = 48
        return at + 1
    bias = (largest >> 1) + significand_bits
    if exponent == 0:  # subnormal
        digits, power = shortest_decimal(fraction, 1 - bias, False, powers)
    else:
        significand = fraction | (ONE << np.uint64(significand_bits))
        is_power_of_two = fraction == ZERO and exponent > 1
        digits, power = shortest_decimal(significand, exponent - bias, is_power_of_two, powers)
    return write_decimal(digits, power, out, at)


@kernel
def format_letor(
    words: Words,
    significand_bits: int,
    exponent_bits: int,
    columns: Ints,
    column_starts: Ints,
    row_starts: Ints,
    powers: Words,
    is_first: Bytes,
    width: int,
    label_text: Bytes,
    label_starts: Ints,
    label_ends: Ints,
    query_text: Bytes,
    query_starts: Ints,
    query_ends: Ints,
    id_text: Bytes,
    id_starts: Ints,
    id_ends: Ints,
    before_query: Bytes,
    before_id: Bytes,
    out: Bytes,
) -> int:
    """Write one LETOR line per document to `out`; return the number of bytes.

    Document r has the values words[row_starts[r]:row_starts[r + 1]], floats as bits, in columns
    from columns[column_starts[r]]; its label, query id and document id (empty: none) are ranges of
    the three texts.  A line with `is_first` names the last of the `width` features, so that
    the reader knows their number.
    """
    at = 0
    for r in range(is_first.size):
        at = copy_bytes(label_text, label_starts[r], label_ends[r], out, at)
        at = copy_bytes(before_query, 0, before_query.size, out, at)
        at = copy_bytes(query_text, query_starts[r], query_ends[r], out, at)
        last = 0
        for i in range(row_starts[r], row_starts[r + 1]):
            last = columns[column_starts[r] + i - row_starts[r]] + 1
            out[at] = 32
            at = write_digits(np.uint64(last), count_digits(np.uint64(last)), out, at + 1)
            out[at] = 58  # :
            at = write_number(words[i], significand_bits, exponent_bits, powers, out, at + 1)
        if is_first[r] != 0 and last < width:
            out[at] = 32
            at = write_digits(np.uint64(width), count_digits(np.uint64(width)), out, at + 1)
            out[at], out[at + 1] = 58, 48  # :0
            at += 2
        if id_ends[r] > id_starts[r]:
            at = copy_bytes(before_id, 0, before_id.size, out, at)
            at = copy_bytes(id_text, id_starts[r], id_ends[r], out, at)
        out[at] = 10
        at += 1
    return at


@kernel
def find_separator(text: Bytes, starts: Ints, ends: Ints, also: int) -> int:
    """Return the first range of `text` with a blank, a line feed or the byte `also`, or -1."""
    for r in range(starts.size):
        for i in range(starts[r], ends[r]):
            if is_space(text[i]) or text[i] == 10 or text[i] == also:
                return r
    return -1
