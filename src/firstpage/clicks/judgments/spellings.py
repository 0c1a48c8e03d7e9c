"""Spellings of one query: equal but for case and blanks, with one key, or with shared results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from firstpage.clicks.sessions import Sessions
from firstpage.core import DataError, Ints

QueryKey = Callable[[str], str]
MIN_OVERLAP = 0.5  # of the documents of two first pages (Jaccard), from which they are one query


def group_queries(sessions: Sessions, group: str | QueryKey | None, depth: int) -> Ints:
    """Return for each query the one that stands for its spellings: that with most pages."""
    pages = np.bincount(sessions.page_query, minlength=sessions.n_queries)
    by_traffic = np.argsort(-pages, kind="stable")
    if group is None:
        return np.arange(sessions.n_queries)
    if group == "results":
        return _with_shared_results(sessions, by_traffic, depth)
    if not callable(group) and group != "case":
        raise DataError(f"queries are grouped by case, results or a function; got {group!r}.")
    key = group if callable(group) else lambda text: " ".join(text.casefold().split())
    leader: dict[str, int] = {}
    groups = np.empty(sessions.n_queries, np.int64)
    for query in by_traffic.tolist():
        groups[query] = leader.setdefault(key(sessions.queries[query]), query)
    return groups


def _with_shared_results(sessions: Sessions, by_traffic: Ints, depth: int) -> Ints:
    """Return for each query the most frequent one whose first page shares half of its documents.

    A query joins another that leads a group, not one that has joined, so groups do not chain.
    """
    pairs = sessions.pairs
    shown = np.bincount(pairs.pair[sessions.rank <= depth], minlength=len(pairs.query))
    pages: dict[int, list[int]] = {}
    for row in np.lexsort((-shown, pairs.query)).tolist():
        documents = pages.setdefault(int(pairs.query[row]), [])
        if shown[row] and len(documents) < depth:
            documents.append(int(pairs.document[row]))
    groups = np.arange(sessions.n_queries)
    leaders: dict[int, list[int]] = {}  # queries that lead, by document
    for query in by_traffic.tolist():
        documents = pages.get(query, [])
        counts = Counter(other for d in documents for other in leaders.get(d, ()))
        for other in sorted(counts, key=lambda other: (-counts[other], other)):
            union = len(documents) + len(pages[other]) - counts[other]
            if counts[other] >= MIN_OVERLAP * union:
                groups[query] = other
                break
        else:
            for document in documents:
                leaders.setdefault(document, []).append(query)
    return groups
