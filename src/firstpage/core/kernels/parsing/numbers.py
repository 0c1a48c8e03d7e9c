"""Parse decimal text to float64, correctly rounded, like Python's float().

Short numbers need one exact multiplication or division (Clinger); others need a 128-bit product
with a tabulated power of five (Lemire 2021, "Number parsing at a gigabyte per second").  The few
numbers that neither decides are returned as undecided, to be parsed by float() itself.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TypedDict

import numpy as np

from firstpage.core.kernels.compiler.decorators import subroutine
from firstpage.core.types import Bytes, Floats, Words

MIN_EXPONENT, MAX_EXPONENT = -342, 308  # decimal exponents outside give 0 or infinity
MAX_EXACT_INTEGER = 2**53  # integers up to here are exact floats
MAX_DIGITS = 18  # significant digits that always fit in an int64

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
LOW = np.uint64(0xFFFFFFFF)
ZERO, ONE, THREE = np.uint64(0), np.uint64(1), np.uint64(3)
HALF, TOP, DROP = np.uint64(32), np.uint64(63), np.uint64(9)
BIT52, BIT53 = np.uint64(1 << 52), np.uint64(1 << 53)
MASK9 = np.uint64(0x1FF)


class NumberTables(TypedDict):
    """What `parse_number` needs: powers of 10 and of 5, and one cell as a word and as a float."""

    tens: Floats
    fives: Words
    bits: Words
    real: Floats


def number_tables() -> NumberTables:
    """Return the tables of powers, which all share, with a cell of their own."""
    tens, fives = _powers()
    cell = np.zeros(1, np.uint64)
    return {"tens": tens, "fives": fives, "bits": cell, "real": cell.view(np.float64)}


@cache
def _powers() -> tuple[Floats, Words]:
    """Return 10^0..10^22 as floats, and 5^MIN_EXPONENT..5^MAX_EXPONENT as pairs of 64-bit words."""
    tens = np.array([10.0**e for e in range(23)])
    words = []
    for e in range(MIN_EXPONENT, MAX_EXPONENT + 1):
        if e >= 0:
            power = 5**e
            bits = power.bit_length()
            power = power << (128 - bits) if bits <= 128 else power >> (bits - 128)
        else:
            base = 5**-e
            # Rounded up, so that the product below is never too small by more than one unit.
            power = (1 << (base.bit_length() + 127)) // base + 1
            if power.bit_length() > 128:
                power >>= 1
        words += [power >> 64, power & 0xFFFFFFFFFFFFFFFF]
    return tens, np.array(words, np.uint64)


@subroutine
def product_high(a: np.uint64, b: np.uint64) -> np.uint64:
    """Return the upper 64 bits of a * b; the lower ones are a * b itself, which wraps."""
    a0, a1, b0, b1 = a & LOW, a >> HALF, b & LOW, b >> HALF
    low = a0 * b0
    mid = a1 * b0 + (low >> HALF)
    mid2 = a0 * b1 + (mid & LOW)
    return a1 * b1 + (mid >> HALF) + (mid2 >> HALF)


@subroutine
def scale_decimal(mantissa: int, exponent: int, fives: Words, bits: Words) -> bool:
    """Write mantissa * 10^exponent (mantissa > 0) as float64 bits to bits[0].

    Returns whether the rounding was decided.
    """
    if exponent < MIN_EXPONENT:
        bits[0] = ZERO
        return True
    if exponent > MAX_EXPONENT:
        bits[0] = np.uint64(0x7FF) << np.uint64(52)
        return True
    w = np.uint64(mantissa)
    shift = 0
    while w >> TOP == ZERO:
        w = w << ONE
        shift += 1
    at = 2 * (exponent - MIN_EXPONENT)
    high, low = product_high(w, fives[at]), w * fives[at]
    if high & MASK9 == MASK9:  # the dropped bits may carry: compute the full 192-bit product
        carry = product_high(w, fives[at + 1])
        low = low + carry
        if low < carry:
            high = high + ONE
    if low == ALL and (exponent < -27 or exponent > 55):
        return False
    upper = high >> TOP
    m = high >> (upper + DROP)
    power = ((217706 * exponent) >> 16) + 63 + np.int64(upper) - shift + 1023
    if power <= 0:  # subnormal
        if 1 - power >= 64:
            bits[0] = ZERO
            return True
        m = m >> np.uint64(1 - power)
        m = (m + (m & ONE)) >> ONE
        bits[0] = m  # a carry into bit 52 correctly makes it the smallest normal number
        return True
    if low <= ONE and -4 <= exponent <= 23 and m & THREE == ONE and m << (upper + DROP) == high:
        m = m & ~ONE  # exactly halfway: round to even
    m = (m + (m & ONE)) >> ONE
    if m >= BIT53:
        m = BIT52
        power += 1
    if power >= 0x7FF:
        m, power = ZERO, 0x7FF
    bits[0] = (m & (BIT52 - ONE)) | (np.uint64(power) << np.uint64(52))
    return True


@subroutine
def parse_long_mantissa(buf: Bytes, pos: int) -> tuple[int, int, bool]:
    """Return (mantissa, decimal exponent, exact) of a number with many digits."""
    mantissa, digits, exponent = 0, 0, 0
    point, exact = False, True
    while True:
        c = np.int64(buf[pos])
        if c == 46 and not point:
            point = True
        elif 48 <= c <= 57:
            if digits < MAX_DIGITS:
                mantissa = mantissa * 10 + (c - 48)
                if mantissa > 0:
                    digits += 1
                if point:
                    exponent -= 1
            else:
                if c != 48:
                    exact = False
                if not point:
                    exponent += 1
        else:
            return mantissa, exponent, exact
        pos += 1


@subroutine
def parse_number(
    buf: Bytes, start: int, tens: Floats, fives: Words, bits: Words, real: Floats
) -> tuple[bool, int, float]:
    """Parse the number that starts at `start`; return (decided, end position, value).

    A byte that cannot belong to a number must follow, such as the end of the line.  If it is not
    decided, the caller parses the word that ends at the position with `fallback_number`.  `bits`
    and `real` are two views of one 8-byte cell, to read bits as a float.
    """
    pos = start
    negative = buf[pos] == 45
    if negative or buf[pos] == 43:
        pos += 1
    first = pos
    mantissa, exponent = 0, 0
    while True:
        digit = np.int64(buf[pos]) - 48
        if digit < 0 or digit > 9:
            break
        mantissa = mantissa * 10 + digit
        pos += 1
    digits = pos - first
    if buf[pos] == 46:
        pos += 1
        point = pos
        while True:
            digit = np.int64(buf[pos]) - 48
            if digit < 0 or digit > 9:
                break
            mantissa = mantissa * 10 + digit
            pos += 1
        exponent = point - pos
        digits += pos - point
    exact = digits > 0
    if digits > MAX_DIGITS:  # the loops above may have overflowed: parse again, with care
        mantissa, exponent, exact = parse_long_mantissa(buf, first)
    if buf[pos] == 101 or buf[pos] == 69:
        pos += 1
        minus = buf[pos] == 45
        if minus or buf[pos] == 43:
            pos += 1
        digits, shift = pos, 0
        while True:
            digit = np.int64(buf[pos]) - 48
            if digit < 0 or digit > 9:
                break
            shift = min(shift * 10 + digit, 100000)
            pos += 1
        exact = exact and pos > digits and shift < 100000
        exponent += -shift if minus else shift
    value = np.float64(mantissa)
    if exact and (exponent != 0 or mantissa > MAX_EXACT_INTEGER) and mantissa != 0:
        if mantissa > MAX_EXACT_INTEGER or exponent < -22 or exponent > 22:
            exact = scale_decimal(mantissa, exponent, fives, bits)
            value = real[0]
        elif exponent < 0:
            value = value / tens[-exponent]
        else:
            value = value * tens[exponent]
    if not exact:
        while not (buf[pos] <= 32 or buf[pos] == 35):
            pos += 1
    return exact, pos, -value if negative else value


def fallback_number(word: bytes) -> float | None:
    """Parse what the kernel does not decide: long numbers, `nan`, `inf`, LETOR's `NULL`.

    Returns None if the word is not a number.
    """
    if word.lower() == b"null":
        return math.nan
    try:
        return None if b"_" in word else float(word)
    except ValueError:
        return None
