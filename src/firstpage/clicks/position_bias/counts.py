"""Impressions and clicks by document and rank, of the documents that were seen at several ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstpage.core import Array, Bools, DataError, Floats, Ints

DEFAULT_RANKS = 10  # the first page


@dataclass(frozen=True, eq=False)
class SwapCounts:
    """Counts of items, which are documents of a query, by rank.

    `shown` and `clicked` have a row per item that was seen at several ranks and a column per rank;
    `group` is the query of each row, from 0 to n_groups - 1.  `impressions` and `clicks` count all
    items.  `left_out` impressions were below `max_rank`.
    """

    ranks: Ints
    impressions: Ints
    clicks: Ints
    n_items: int
    left_out: int
    group: Ints
    n_groups: int
    shown: Floats
    clicked: Floats

    @property
    def seen_at_both(self) -> Ints:
        """The number of items that were seen at both of two ranks."""
        seen = (self.shown > 0).astype(np.float64)
        return np.asarray(seen.T @ seen, np.int64)

    def connections(self) -> Bools:
        """Return whether a click at rank j shows how it compares with rank k, by j and k."""
        items = self.clicked.sum(axis=1) > 0
        if not self.clicks.any():
            return self.seen_at_both > 0
        clicked, shown = self.clicked[items] > 0, self.shown[items] > 0
        return np.asarray(clicked.astype(np.float64).T @ shown.astype(np.float64)) > 0


def count_swaps(
    item: Array, rank: Array, clicked: Array, query_of_item: Array, max_rank: int = DEFAULT_RANKS
) -> SwapCounts:
    """Return the counts of impressions, whose items are numbers from 0."""
    from scipy.sparse import coo_array

    if max_rank < 2:
        raise DataError(
            f"propensities compare two ranks or more: max_rank={max_rank!r} is too few."
        )
    inside = rank <= max_rank
    left_out = len(rank) - int(inside.sum())
    if left_out:
        item, rank, clicked = item[inside], rank[inside], clicked[inside]
    if not len(rank):
        raise DataError(f"there are no impressions at the ranks 1 to {max_rank}.")
    by_rank = np.bincount(rank)
    ranks = np.flatnonzero(by_rank)
    column = (np.cumsum(by_rank > 0) - 1)[rank]
    shape = len(query_of_item), len(ranks)
    rows, columns = item[clicked], column[clicked]
    shown = coo_array((np.ones(len(item)), (item, column)), shape).tocsr()
    hits = coo_array((np.ones(len(rows)), (rows, columns)), shape).tocsr()
    seen_at = np.diff(shown.indptr)  # the number of ranks of each item
    _, group = np.unique(query_of_item[seen_at > 1], return_inverse=True)
    return SwapCounts(
        ranks=ranks,
        impressions=by_rank[ranks],
        clicks=np.bincount(columns, minlength=len(ranks)),
        n_items=int((seen_at > 0).sum()),
        left_out=left_out,
        group=group.astype(np.int64),
        n_groups=int(group.max(initial=-1)) + 1,
        shown=shown[seen_at > 1].toarray(),
        clicked=hits[seen_at > 1].toarray(),
    )


def components(connections: Bools) -> Ints:
    """Return the strongly connected component of each rank, numbered by its first rank."""
    reach = connections | np.eye(len(connections), dtype=bool)
    for _ in range(max(1, len(reach).bit_length())):
        reach = (reach.astype(np.float64) @ reach) > 0
    return np.asarray(np.argmax(reach & reach.T, axis=1), np.int64)
