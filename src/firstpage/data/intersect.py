"""Two collections over the same documents, joined: the features of one, the order of the other."""

from __future__ import annotations

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.truth import Truth
from firstpage.errors import DataError


def intersect(graded: Dataset, ordered: Dataset) -> tuple[Dataset, Truth]:
    """Documents that two collections share: features and grades of one, order of the other.

    As MQ2007 with MQ2007-list: returns the shared part of `graded`, and the full order that
    the labels of `ordered` (larger is nearer the top) give these documents.
    """
    if graded.docids is None or ordered.docids is None:
        raise DataError("both collections need document ids to be intersected.")
    numbers = {name: q for q, name in enumerate(ordered.queries)}
    rows: list[int] = []
    levels: list[float] = []
    counts: list[int] = []
    kept: list[int] = []
    for q, name in enumerate(graded.queries):
        if name not in numbers:
            continue
        other = ordered[numbers[name]]
        assert other.docids is not None
        level = dict(zip(other.docids, other.y.tolist(), strict=True))
        lo, hi = int(graded.offsets[q]), int(graded.offsets[q + 1])
        shared = [lo + i for i, doc in enumerate(graded.docids[slice(lo, hi)]) if doc in level]
        if shared:
            rows += shared
            levels += [level[graded.docids[r]] for r in shared]
            counts.append(len(shared))
            kept.append(q)
    if not rows:
        raise DataError(f"{graded.source} and {ordered.source} share no document of any query.")
    picked = np.array(rows, np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    queries, docids = graded.queries[np.array(kept, np.int64)], graded.docids[picked]
    data = Dataset(
        graded.X[picked], graded.y[picked], offsets, queries, docids,
        graded.feature_names, f"{graded.source} and {ordered.source}",
    )  # fmt: skip
    return data, Truth(np.array(levels), offsets, queries).full_order()
