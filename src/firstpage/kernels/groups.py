"""Moving values between flat, dense and grouped forms."""

from __future__ import annotations

import numpy as np

from firstpage.kernels.native import kernel
from firstpage.types import Array, Floats, Ints


@kernel
def scatter(
    flat: Array, first_row: int, width: int, row_ends: Ints, columns: Ints, values: Floats
) -> int:
    """Write sparse rows into rows first_row.. of a dense row-major array, zeros elsewhere.

    Returns the number of a finite value that became infinite in the array's type, or -1.
    """
    at = 0
    lost = -1
    for r in range(row_ends.size):
        base = (first_row + r) * width
        for i in range(base, base + width):
            flat[i] = 0
        while at < row_ends[r]:
            place = base + columns[at]
            flat[place] = values[at]
            if lost < 0 and np.isinf(flat[place]) and not np.isinf(values[at]):
                lost = at
            at += 1
    return lost
