"""Joins of two collections over the same documents."""

from __future__ import annotations

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.formats.trec import Column
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.kernels.hashing import join_ids
from firstpage.types import Ints


def match_queries(queries: Ids, others: Ids) -> Ints:
    """Return the index of each query among the others, or -1 where it is not among them."""
    numbers = {name: q for q, name in enumerate(others)}
    return np.array([numbers.get(name, -1) for name in queries], np.int64)


def join_documents(
    run: Column, other: Column, partner: Ints, other_name: str = "the judgments"
) -> Ints:
    """Return the row in `other` of every document of the run, -1 where there is none.

    `partner` is the index in `other` of each query of the run, or -1.  `other_name` is what errors
    call the other column if it has no source.  A document that occurs twice in a query is an
    error, in both.
    """
    sizes = np.diff(run.offsets)
    all_other_sizes = np.diff(other.offsets)
    other_sizes = np.zeros(len(partner), np.int64)
    other_sizes[partner >= 0] = all_other_sizes[partner[partner >= 0]]
    capacity = 1 << max(4, (2 * int((sizes + other_sizes).max(initial=1)) - 1).bit_length())
    table = np.full(capacity, -1, np.int64)
    rows = np.empty(len(run.values), np.int64)
    left, right = run.docids, other.docids
    code = join_ids(
        left.data, left.starts, left.ends, left.hashes, run.offsets,
        right.data, right.starts, right.ends, right.hashes, other.offsets,
        partner, table, rows,
    )  # fmt: skip
    if code >= 0:
        raise _duplicate_error(run, code, "the run")
    if code <= -2:
        raise _duplicate_error(other, -2 - code, other_name)
    return rows


def _duplicate_error(column: Column, row: int, name: str) -> DataError:
    query = column.queries[int(np.searchsorted(column.offsets, row, side="right")) - 1]
    return DataError(
        f"{column.source or name}: document {column.docids[row]!r} occurs twice in query {query!r}."
    )


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
    indices = np.array(rows, np.int64)
    offsets = offsets_from_lengths(counts)
    names, docids = graded.queries[np.array(queries, np.int64)], graded.docids[indices]
    data = Dataset(
        graded.X[indices], graded.y[indices], offsets, names, docids,
        graded.feature_names, f"{graded.source} and {ordered.source}",
    )  # fmt: skip
    return data, Truth(np.array(levels), offsets, names).full_order()
