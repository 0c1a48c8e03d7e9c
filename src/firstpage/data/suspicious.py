"""Warnings about suspicious data, the same in every reader."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from firstpage.core import warn
from firstpage.data.dataset import Dataset
from firstpage.data.groups import duplicate_rows

MIN_QUERIES_TO_WARN = 10  # fewer queries may well have one document each
SINGLE_DOCUMENT_FRACTION = 0.9


def data_warnings(data: Dataset) -> list[str]:
    """Return a sentence about each suspicious property of the data, without the file name."""
    messages = []
    if data.docids is not None:
        named = data.docids.ends > data.docids.starts
        duplicates = duplicate_rows(data.docids.hashes, data.offsets, named)
        if len(duplicates):
            row = int(duplicates[0])
            query = data.queries[int(np.searchsorted(data.offsets, row, side="right")) - 1]
            messages.append(
                f"{len(duplicates)} documents repeat an earlier document id of their query, and "
                f"every copy counts; the first is {data.docids[row]!r} in query {query!r}. Drop "
                "the copies if they are not intended."
            )
    single = int((data.lengths == 1).sum())
    if len(data) >= MIN_QUERIES_TO_WARN and single >= SINGLE_DOCUMENT_FRACTION * len(data):
        messages.append(
            f"{single} of {len(data)} queries have one document, where nothing can be ranked; are "
            "the ids of queries and documents swapped?"
        )
    return messages


def warn_about(source: str, messages: Iterable[str]) -> None:
    """Issue a warning about a file for each message."""
    for message in messages:
        warn(f"{source}: {message}")
