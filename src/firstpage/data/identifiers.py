"""Columns of tables that identify something, and so are no quantities to learn from."""

from __future__ import annotations

import re

import numpy as np

from firstpage.types import Array

MIN_ROWS = 100  # fewer integers may well be distinct
_ENDING = re.compile(r"(^|[\W_])(id|uuid|guid)$", re.IGNORECASE)
_CAMEL_CASE = re.compile(r"[a-z0-9]I[dD]$")


def is_identifier(name: str) -> bool:
    """Return whether a column is named `id`, or its name ends in `_id`, `-id`, ` id` or `Id`."""
    return bool(_ENDING.search(name) or _CAMEL_CASE.search(name))


def are_distinct_integers(values: Array) -> bool:
    """Return whether many numbers are integers, each of which occurs once."""
    if len(values) < MIN_ROWS or not np.isfinite(values).all() or (values % 1).any():
        return False
    return len(np.unique(values)) == len(values)
