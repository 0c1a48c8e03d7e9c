"""Data frames (pandas, polars) of runs and judgments: one row per document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats
from firstpage.data.column_names import GRADE_NAMES


def grade_names(table: Any) -> tuple[str, ...]:
    """Return the names of columns of grades; ranx calls them `score`, and they are integers."""
    whole = "score" in table.columns and np.asarray(table["score"]).dtype.kind in "iu"
    return (*GRADE_NAMES, "score") if whole else GRADE_NAMES


def is_frame(table: Any) -> bool:
    """Return whether an object is a data frame of pandas or polars."""
    return hasattr(type(table), "columns") and hasattr(table, "__getitem__")


def find_column(table: Any, names: Sequence[str], kind: str, source: str) -> str:
    """Return the first of these columns that a frame has; an error lists both."""
    if hasattr(table, "collect"):
        raise DataError(
            f"the data frame of {source} is a {type(table).__name__}; pass its collect()."
        )
    columns = [str(column) for column in table.columns]
    lower = {column.lower(): column for column in reversed(columns)}
    for name in names:
        if name in lower:
            return lower[name]
    raise DataError(
        f"the data frame of {source} has no column of {kind} ({', '.join(names)}); it has: "
        f"{', '.join(columns) or 'none'}."
    )


def frame_numbers(table: Any, column: str, source: str) -> Floats:
    """Return a column of numbers."""
    try:
        return np.asarray(table[column], np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the column {column!r} of {source} must have numbers ({error})."
        ) from error
