"""The documents that two collections share, with the grades of one and the order of the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from firstpage.core import DataError
from firstpage.data.dataset import Dataset
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.rows import take_rows
from firstpage.data.truth import Truth


def intersect(graded: Dataset, ordered: Dataset) -> tuple[Dataset, Truth]:
    """Return the documents that two collections share, with the order of the second.

    One collection has features and grades, the other a full order of some of the same documents, as
    MQ2007 and MQ2007-list do.

    Parameters
    ----------
    graded : Dataset
        The collection whose features and grades are returned; it must have document ids.
    ordered : Dataset
        The collection whose labels order the documents (larger is nearer the top); it must have
        document ids.

    Returns
    -------
    data : Dataset
        The documents of `graded` that `ordered` has in the same query.
    truth : Truth
        The full order of these documents by the labels of `ordered`.

    Raises
    ------
    DataError
        If a collection has no document ids, or none are shared.

    Examples
    --------
    >>> import firstpage as fp
    >>> graded = fp.Dataset.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], [1, 1, 1], "abc")
    >>> ordered = fp.Dataset.from_arrays([[0.0], [0.0]], [5, 9], [1, 1], "ca")
    >>> data, truth = fp.intersect(graded, ordered)
    >>> data.docid.tolist(), truth.labels.tolist()
    (['a', 'c'], [1.0, 0.0])
    """
    if graded.docids is None or ordered.docids is None:
        raise DataError("both collections need document ids to be intersected.")
    numbers = {name: q for q, name in enumerate(ordered.queries)}
    rows: list[int] = []
    levels: list[float] = []
    counts: list[int] = []
    queries: list[int] = []
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
            queries.append(q)
    if not rows:
        raise DataError(f"{graded.source} and {ordered.source} share no document of any query.")
    offsets = offsets_from_lengths(counts)
    data = take_rows(graded, np.array(rows, np.int64), np.array(queries, np.int64), offsets)
    source = f"{graded.source} and {ordered.source}"
    data = replace(data, source=source, recipe=None, query_weights=None)
    return data, Truth(np.array(levels), offsets, data.queries).full_order()
