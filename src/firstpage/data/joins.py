"""Two columns of documents, joined by the ids of queries and documents."""

from __future__ import annotations

import numpy as np

from firstpage.data.ids import Ids
from firstpage.data.trec import Column
from firstpage.errors import DataError
from firstpage.kernels.ids import join
from firstpage.types import Ints


def partners(mine: Ids, theirs: Ids) -> Ints:
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
