"""Two collections over the same documents, joined: the features of one, the order of the other."""

from __future__ import annotations

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.formats.trec import Column
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.kernels.hashing import join
from firstpage.types import Ints


def match_queries(mine: Ids, theirs: Ids) -> Ints:
    """For each of my queries its number among theirs, or -1."""
    numbers = {name: q for q, name in enumerate(theirs)}
    return np.array([numbers.get(name, -1) for name in mine], np.int64)


def join_documents(run: Column, other: Column, partner: Ints, what: str = "the judgments") -> Ints:
    """The row in `other` of every document of the run, -1 where it is not there.

    `what` names the other column where it has no source.  A document that stands twice in a query
    is an error, in both.
    """
    sizes = np.diff(run.offsets)
    other_sizes = np.diff(other.offsets)
    theirs = np.zeros(len(partner), np.int64)
    theirs[partner >= 0] = other_sizes[partner[partner >= 0]]
    room = 1 << max(4, (2 * int((sizes + theirs).max(initial=1)) - 1).bit_length())
    table = np.full(room, -1, np.int64)
    found = np.empty(len(run.values), np.int64)
    left, right = run.docids, other.docids
    code = join(
        left.data, left.starts, left.ends, left.hashes, run.offsets,
        right.data, right.starts, right.ends, right.hashes, other.offsets,
        partner, table, found,
    )  # fmt: skip
    if code >= 0:
        raise _repeated(run, code, "the run")
    if code <= -2:
        raise _repeated(other, -2 - code, what)
    return found


def _repeated(column: Column, row: int, what: str) -> DataError:
    query = column.queries[int(np.searchsorted(column.offsets, row, side="right")) - 1]
    return DataError(
        f"{column.source or what}: document {column.docids[row]!r} stands twice in query {query!r}."
    )


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
    offsets = offsets_from_lengths(counts)
    queries, docids = graded.queries[np.array(kept, np.int64)], graded.docids[picked]
    data = Dataset(
        graded.X[picked], graded.y[picked], offsets, queries, docids,
        graded.feature_names, f"{graded.source} and {ordered.source}",
    )  # fmt: skip
    return data, Truth(np.array(levels), offsets, queries).full_order()
