"""What looks wrong in data that were read: one warning each, in every reader of a Dataset."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.groups import repeated_rows
from firstpage.errors import FirstpageWarning

FEW = 10  # queries: fewer may well have one document each
ALMOST_ALL = 0.9  # of the queries


def remarks_of(data: Dataset) -> list[str]:
    """Return what looks wrong in the data, a sentence each, without the name of the file."""
    found = []
    if data.docids is not None:
        named = data.docids.ends > data.docids.starts
        repeated = repeated_rows(data.docids.hashes, data.offsets, named)
        if len(repeated):
            row = int(repeated[0])
            query = data.queries[int(np.searchsorted(data.offsets, row, side="right")) - 1]
            found.append(
                f"holds {len(repeated)} second or later copies of documents in their queries, and "
                f"every copy counts; the first is {data.docids[row]!r} in query {query!r}. Drop "
                "them if they are not meant."
            )
    single = int((data.lengths == 1).sum())
    if len(data) >= FEW and single >= ALMOST_ALL * len(data):
        found.append(
            f"{single} of {len(data)} queries have one document, where nothing can be ranked; are "
            "the ids of queries and documents swapped?"
        )
    return found


def warn_of(source: str, remarks: Iterable[str], stacklevel: int = 3) -> None:
    """Warn of each remark on a file."""
    for remark in remarks:
        warnings.warn(f"{source}: {remark}", FirstpageWarning, stacklevel=stacklevel + 1)
