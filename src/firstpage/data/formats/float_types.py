"""The types of features in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from firstpage.core import DataError

FLOAT64_COMMAND = "`firstpage convert FILE OUT.npz --dtype float64` writes a file that can be read"


def float_type(dtype: object) -> np.dtype[Any]:
    """Return float32 or float64 by its name; refuse any other type."""
    try:
        chosen: np.dtype[Any] = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        raise DataError(f"dtype must be float32 or float64; got {dtype!r}.") from None
    if chosen not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise DataError(f"dtype must be float32 or float64; got {chosen}.")
    return chosen
