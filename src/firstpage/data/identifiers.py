"""Columns of tables that identify something, and so are no quantities to learn from."""

from __future__ import annotations

import re

import numpy as np

from firstpage.core import Array

MIN_ROWS = 100  # fewer integers may well be distinct
_ENDING = re.compile(r"(^|[\W_])(id|uuid|guid)$", re.IGNORECASE)
_CAMEL_CASE = re.compile(r"([A-Za-z][a-z0-9]+)I[dD]$")
_WORDS = frozenset({  # that end in "id", whatever the case: HybrID
    "acid", "aid", "android", "avid", "bid", "covid", "cuboid", "fluid", "forbid", "grid", "humid",
    "hybrid", "invalid", "kid", "lid", "lipid", "liquid", "lucid", "maid", "mid", "paid", "pyramid",
    "raid", "rapid", "rigid", "said", "skid", "solid", "squid", "steroid", "thyroid", "unpaid",
    "valid", "vivid", "void",
})  # fmt: skip


def is_identifier(name: str) -> bool:
    """Return whether a column is named `id`, or its name ends in `_id`, `-id`, ` id` or `Id`.

    Before `Id` or `ID` a word of two letters or more is needed, which does not complete another.
    """
    if _ENDING.search(name):
        return True
    compound = _CAMEL_CASE.search(name)
    return compound is not None and f"{compound[1]}id".lower() not in _WORDS


def are_distinct_integers(values: Array) -> bool:
    """Return whether many numbers are integers, each of which occurs once."""
    if len(values) < MIN_ROWS or not np.isfinite(values).all() or (values % 1).any():
        return False
    return len(np.unique(values)) == len(values)
