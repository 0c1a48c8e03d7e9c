"""Numbers as text: the digits and the form of Python's repr()."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.kernels.compiler.decorators import kernel
from firstpage.core.kernels.formatting import MAX_NUMBER_BYTES, powers_of_ten, write_number
from firstpage.core.types import Array, Bytes, Ints, Words

EDGES = [
    0.0, -0.0, 1.0, -7.0, 10.0, 1e15, 9999999999999998.0, 1e16, 1.5e16, 1e17, 1e22, 1e23,  # whole
    9007199254740991.0, 9007199254740993.0, 123456789012345680.0,  # around 2^53
    0.1, 0.5, 0.25, 1 / 3, 0.30000000000000004, 5.551115123125783e-17, 1234.5, 16777.217,
    0.001, 0.0001, 0.00012345, 1e-05, 9.9999e-05, 1e-100,  # around the first exponent
    5e-324, -5e-324, 1e-323, 2.225073858507201e-308, 2.2250738585072014e-308,  # subnormal, normal
    1.7976931348623157e308, -1.7976931348623157e308, float("nan"), float("inf"), float("-inf"),
]  # fmt: skip
FLOAT32_EDGES = [
    (1e-45, "1e-45"), (1.1754944e-38, "1.1754944e-38"), (3.4028235e38, "3.4028235e+38"),
    (0.1, "0.1"), (1 / 3, "0.33333334"), (0.0001, "0.0001"), (1e-5, "1e-05"),
    (16777216, "16777216"), (16777217, "16777216"), (123456789, "123456790"), (-0.0, "-0"),
    (1e15, "1000000000000000"), (1e16, "1e+16"), (float("nan"), "nan"), (float("-inf"), "-inf"),
]  # fmt: skip


@kernel
def format_numbers(
    words: Words, significand_bits: int, exponent_bits: int, powers: Words, out: Bytes, ends: Ints
) -> int:
    """Write numbers without a separator; `ends` receives where each of them ends."""
    at = 0
    for i in range(words.size):
        at = write_number(words[i], significand_bits, exponent_bits, powers, out, at)
        ends[i] = at
    return at


def texts(values: Array, *, interpreted: bool = False) -> list[str]:
    """Return the text of each number of a float32 or float64 array."""
    single = values.dtype == np.float32
    words = values.view(np.uint32 if single else np.uint64).astype(np.uint64)
    out = np.zeros(MAX_NUMBER_BYTES * len(values), np.uint8)
    ends = np.zeros(len(values), np.int64)
    run = format_numbers.python if interpreted else format_numbers
    with np.errstate(all="ignore"):
        run(words, 23 if single else 52, 8 if single else 11, powers_of_ten(), out, ends)
    text = out.tobytes().decode()
    return [text[a:b] for a, b in zip([0, *ends.tolist()], ends.tolist(), strict=False)]


def reference(value: float) -> str:
    return repr(value).removesuffix(".0")


@pytest.mark.parametrize("interpreted", [False, True])
def test_float64_text_is_that_of_repr(interpreted: bool) -> None:
    values = np.array(EDGES)
    assert texts(values, interpreted=interpreted) == [reference(v) for v in EDGES]


@pytest.mark.parametrize("interpreted", [False, True])
def test_float32_text_has_the_digits_of_its_type(interpreted: bool) -> None:
    values = np.array([value for value, _ in FLOAT32_EDGES], np.float32)
    assert texts(values, interpreted=interpreted) == [text for _, text in FLOAT32_EDGES]


def test_powers_of_two_and_ten_and_their_neighbors() -> None:
    """The spacing of floats changes at powers of two; digits carry at powers of ten."""
    exact = np.concatenate([2.0 ** np.arange(-1074, 1024), 10.0 ** np.arange(-323, 309)])
    values = np.concatenate([exact, np.nextafter(exact, 0), np.nextafter(exact, np.inf)])
    assert texts(values) == [reference(v) for v in values.tolist()]


def test_random_bits() -> None:
    words = np.random.default_rng(0).integers(0, 2**64, 100_000, np.uint64)
    values = words.view(np.float64)
    assert texts(values) == [reference(v) for v in values.tolist()]
    singles = (words >> np.uint64(32)).astype(np.uint32).view(np.float32)
    singles = singles[np.isfinite(singles)]
    for value, text in zip(singles, texts(singles), strict=True):
        digits, exponent = np.format_float_scientific(value, trim="-", exp_digits=2).split("e")
        if "e" in text:
            assert text == f"{digits}e{exponent}"
        else:
            assert -4 <= int(exponent) < 16
            assert text == np.format_float_positional(value, trim="-")


@given(st.lists(st.floats(), min_size=1, max_size=50))
def test_any_float(values: list[float]) -> None:
    assert texts(np.array(values)) == [reference(v) for v in values]
