"""Preferences between the lists that people were shown for one query, by their clicks."""

from __future__ import annotations

import numpy as np

from firstpage.clicks.sessions import Sessions, rows_of_pairs
from firstpage.core import Array, DataError, Ints
from firstpage.data import Ids, Qrels
from firstpage.data.preferences import MAX_LEVELS, UNKNOWN, Preferences


def preferences(
    sessions: Sessions, qrels: Qrels, *, depth: int = 10, lists: int = 20
) -> Preferences:
    """Return which lists of a query get more clicks, for `DCGLearn`.

    Pages of a query are compared that have different lists of grades, such as those of two rankings
    in an A/B test, or interleaved ones.  If users examine ranks independently of each other, the
    expected clicks on a page are a sum of gains times discounts: the probability of a click on a
    document of its grade, times that of examining its rank.

    Parameters
    ----------
    sessions : Sessions
        Pages of results with clicks.
    qrels : Qrels
        Grades of documents.
    depth : int, default 10
        The number of ranks that count.
    lists : int, default 20
        The largest number of different lists per query: those with the most pages.

    Returns
    -------
    Preferences
        A pair for each two lists of a query.  Its weight is 2p - 1, p being the posterior
        probability that the preferred list gets more clicks per page (Jeffreys prior, Poisson
        counts).

    Raises
    ------
    DataError
        If no query has pages with different lists of grades.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 200, document=["a", "b", "b", "a"] * 50, rank=[1, 2] * 100,
    ...     clicked=[0, 0, 1, 0] * 50, page=[page for page in range(100) for _ in range(2)])
    >>> qrels = fp.Qrels.from_dict({"fox": {"a": 0, "b": 2}})
    >>> pairs = fp.clicks.preferences(sessions, qrels, depth=2)
    >>> pairs.left.tolist(), pairs.right.tolist(), pairs.outcome.tolist()
    ([[0, 2]], [[2, 0]], [-1])
    """
    from scipy.special import betainc

    if depth < 1 or lists < 2:
        raise DataError(f"depth is at least 1, and lists at least 2; got {depth} and {lists}.")
    grades, levels = _levels(sessions, qrels, depth)
    counted = sessions.rank <= depth
    clicks = np.bincount(sessions.page[counted], sessions.clicked[counted], sessions.n_pages)
    rows = np.column_stack([sessions.page_query, levels]).astype(np.int64)
    distinct, of_page = np.unique(rows, axis=0, return_inverse=True)
    of_page = of_page.ravel()
    pages = np.bincount(of_page)
    successes = np.bincount(of_page, clicks) + 0.5
    left, right = _pairs(distinct[:, 0], pages, lists)
    if not len(left):
        raise DataError(
            f"{sessions.source}: no query has pages with different lists of grades in "
            f"{qrels.source or 'the judgments'}, so that there is nothing to compare."
        )
    n, m = pages[left], pages[right]
    is_better = betainc(successes[right], successes[left], m / (n + m))
    names = Ids.from_values([sessions.queries[query] for query in distinct[left, 0]])
    lists_of = distinct[:, 1:].astype(np.int8)
    return Preferences(
        grades, lists_of[left], lists_of[right], np.where(is_better >= 0.5, 1, -1).astype(np.int8),
        np.abs(2 * is_better - 1), query=names, source=sessions.source,
    )  # fmt: skip


def _levels(sessions: Sessions, qrels: Qrels, depth: int) -> tuple[tuple[int, ...], Array]:
    """Return all grades, and the level of the document at each rank of each page, or UNKNOWN."""
    rows = rows_of_pairs(sessions, qrels)
    judged, of_pair = rows >= 0, qrels.values[rows]
    if not (of_pair[judged] == np.round(of_pair[judged])).all():
        raise DataError(f"{qrels.source or 'the judgments'}: the grades must be integers.")
    lowest, highest = int(min(of_pair[judged].min(), 0)), int(of_pair[judged].max())
    if highest - lowest >= MAX_LEVELS:
        raise DataError(f"grades from {lowest} to {highest} exceed the limit of {MAX_LEVELS}.")
    level = np.where(judged, of_pair - lowest, UNKNOWN).astype(np.int8)
    matrix = np.full((sessions.n_pages, depth), UNKNOWN, np.int8)
    counted = sessions.rank <= depth
    matrix[sessions.page[counted], sessions.rank[counted] - 1] = level[sessions.pairs.pair[counted]]
    return tuple(range(lowest, highest + 1)), matrix


def _pairs(query: Ints, pages: Ints, lists: int) -> tuple[Ints, Ints]:
    """Return the pairs of lists of each query, of those with the most pages."""
    order = np.lexsort((-pages, query))
    starts = np.flatnonzero(np.diff(query[order], prepend=-1))
    ends = np.append(starts[1:], len(order))
    chosen: list[tuple[Ints, Ints]] = []
    for start, end in zip(starts, np.minimum(ends, starts + lists), strict=True):
        some = order[start:end]
        first, second = np.triu_indices(len(some), 1)
        chosen.append((some[first], some[second]))
    left, right = (np.concatenate(side) for side in zip(*chosen, strict=True))
    return left, right
