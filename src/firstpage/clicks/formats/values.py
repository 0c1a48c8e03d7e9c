"""Numbers, times and lists as logs write them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from firstpage.core import Floats

MILLISECONDS = 10**11  # larger numbers of time since 1970 are milliseconds, smaller ones seconds
WORDS = {"": math.nan, "true": 1.0, "false": 0.0}


def as_number(value: Any) -> float:
    """Return a value as a number; NaN where it is missing."""
    if value is None:
        return math.nan
    return (
        WORDS[value.lower()] if isinstance(value, str) and value.lower() in WORDS else float(value)
    )


def as_time(value: Any) -> float:
    """Return a time in milliseconds since 1970 (UTC): seconds, milliseconds or ISO 8601."""
    if isinstance(value, datetime):
        moment = value
    else:
        try:
            number = as_number(value)
            return number if abs(number) >= MILLISECONDS else 1000 * number
        except ValueError:
            moment = datetime.fromisoformat(value.strip())
    return 1000 * (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def column_numbers(name: str, values: Any) -> tuple[Floats, int | None]:
    """Return a column as numbers (NaN where missing), and the first row that has none."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64), None
    if hasattr(values, "to_physical"):
        return _series_numbers(name, values)
    convert = as_time if name == "time" else as_number
    numbers = np.full(len(values), np.nan)
    wrong = None
    for row, value in enumerate(values):
        try:
            numbers[row] = convert(value)
        except (TypeError, ValueError, OverflowError):
            wrong = row if wrong is None else wrong
    return numbers, wrong


def _series_numbers(name: str, column: Any) -> tuple[Floats, int | None]:
    """Return a column of polars as numbers; texts that are no numbers are converted one by one."""
    import polars as pl

    if column.dtype.is_temporal():
        column = column.dt.epoch("ms")
    numbers = column.cast(pl.Float64, strict=False)
    if name == "time":
        numbers = numbers.to_frame("n").select(
            pl.when(pl.col("n").abs() < MILLISECONDS).then(pl.col("n") * 1000).otherwise("n")
        )["n"]
    array: Floats = numbers.fill_null(np.nan).to_numpy().copy()
    failed = (numbers.is_null() & column.is_not_null()).to_numpy()
    if not failed.any():
        return array, None
    rest, wrong = column_numbers(name, column.filter(pl.Series(failed)).to_list())
    array[failed] = rest
    return array, None if wrong is None else int(np.flatnonzero(failed)[wrong])


def as_list(value: Any) -> Sequence[Any]:
    """Return a list: as it is, as JSON, or of texts separated by vertical bars."""
    if value is None or isinstance(value, list | tuple):
        return value or ()
    text = str(value).strip()
    if text.startswith("["):
        parsed = json.loads(text)
        return parsed if isinstance(parsed, list) else [parsed]
    return [word.strip() for word in text.split("|") if word.strip()]
