"""Numbers parsed by the kernel must equal those of Python's float(), to the last bit."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firstpage.core.kernels.compiler.decorators import kernel
from firstpage.core.kernels.parsing.numbers import fallback_number, number_tables, parse_number
from firstpage.core.types import Bytes, Floats, Ints, Words


@kernel
def parse_text(
    buf: Bytes, tens: Floats, fives: Words, bits: Words, real: Floats, end: Ints, out: Floats
) -> int:
    decided, end[0], out[0] = parse_number(buf, 0, tens, fives, bits, real)
    return 1 if decided else 0


def read(text: str, interpreted: bool = False) -> float | None:
    """Return the number, or None if the text is not a number."""
    raw = text.encode() + b"\n"
    end, out = np.zeros(1, np.int64), np.zeros(1)
    parse = parse_text.python if interpreted else parse_text
    with np.errstate(all="ignore"):
        decided = parse(buf=np.frombuffer(raw, np.uint8), **number_tables(), end=end, out=out)
    word = raw[: end[0]]
    value = float(out[0]) if decided else fallback_number(word)
    return value if end[0] == len(raw) - 1 else None


def same(a: float | None, b: float) -> bool:
    return a is not None and struct.pack("d", a) == struct.pack("d", b)


@settings(max_examples=400)
@given(st.floats(allow_nan=False))
@example(5e-324)
@example(2.2250738585072011e-308)
@example(1.7976931348623157e308)
@example(9007199254740993.0)
def test_shortest_representations_round_trip(value: float) -> None:
    assert same(read(repr(value)), value)


@settings(max_examples=400)
@given(st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
@example("0.1e-400")
@example("1" + "0" * 24)
@example("9007199254740993")
@example("9007199254740992.99999999999999999999")
@example("123456789012345678")
@example("8.41e21")
@example("9.5e-322")
@example("179769313486231580793e289")
@example("-0")
def test_decimals_are_rounded_as_python_rounds_them(text: str) -> None:
    assert same(read(text), float(text))


def test_halfway_cases_are_rounded_correctly() -> None:
    """Numbers exactly between two floats, and their neighbors, are rounded correctly."""
    rng = np.random.default_rng(0)
    for _ in range(400):
        mantissa = int(rng.integers(2**52, 2**53))
        middle = (2 * mantissa + 1) * 2 ** int(rng.integers(0, 8))
        for number in (middle - 1, middle, middle + 1):
            assert same(read(str(number)), float(number)), number


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "NULL", "null"])
def test_missing_values_are_nan(text: str) -> None:
    value = read(text)
    assert value is not None
    assert np.isnan(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("inf", np.inf), ("-Infinity", -np.inf), ("1e999", np.inf), ("-1e999", -np.inf), (".5", 0.5),
     ("5.", 5.0), ("+3", 3.0), ("1E5", 1e5)],
)  # fmt: skip
def test_other_spellings_are_parsed(text: str, value: float) -> None:
    assert same(read(text), value)


@pytest.mark.parametrize(
    "text", ["", ".", "-", "e5", "1e", "1e+", "--1", "1_000", "nul", "x", "+-1"]
)
def test_invalid_numbers_are_rejected(text: str) -> None:
    assert read(text) is None


@given(st.text("0123456789.eE+-naif", max_size=12))
def test_machine_code_and_interpreter_agree(text: str) -> None:
    a, b = read(text), read(text, interpreted=True)
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        assert same(a, b)
