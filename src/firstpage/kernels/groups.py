"""Moving values between flat, dense and grouped forms."""

from __future__ import annotations

from firstpage.kernels.native import kernel
from firstpage.types import Array, Ints


@kernel
def scatter(
    flat: Array, first_row: int, width: int, row_ends: Ints, columns: Ints, values: Array
) -> None:
    """Write sparse rows into rows first_row.. of a dense row-major array, zeros elsewhere."""
    at = 0
    for r in range(row_ends.size):
        base = (first_row + r) * width
        for i in range(base, base + width):
            flat[i] = 0
        while at < row_ends[r]:
            flat[base + columns[at]] = values[at]
            at += 1
