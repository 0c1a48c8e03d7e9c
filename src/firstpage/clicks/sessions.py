"""Sessions: pages of results with their clicks, as flat arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstpage.core import Array, Bools, DataError, Ints, counted
from firstpage.data import (
    Documents,
    Ids,
    Qrels,
    join_documents,
    match_queries,
    offsets_from_lengths,
)

Int32s = NDArray[np.int32]
SplitUnit = Literal["session", "query", "time"]
IMPRESSION_FIELDS = ("document", "rank", "clicks", "first_click", "value", "propensity", "arm")
PAGE_FIELDS = ("page_query", "session", "user", "time", "layout", "experiment")
TABLES = {  # of names, by the column that has indices into them
    "page_query": "queries", "document": "documents", "user": "users", "layout": "layouts",
    "arm": "arms", "experiment": "experiments",
}  # fmt: skip
CODED = ("query", "document", "page", "session", "user", "layout", "arm", "experiment")
DTYPES = {"time": np.int64, "value": np.float32, "propensity": np.float64, "page": np.int64}
MAX_PAIRS = 1 << 62


class QueryDocumentPairs(NamedTuple):
    """Distinct pairs of query and document.

    Attributes
    ----------
    pair : array of int
        The number of each impression's pair.
    query, document : array of int
        The query and the document of each pair.
    """

    pair: Ints
    query: Ints
    document: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Sessions:
    """Pages of results that people saw, with their clicks; immutable.

    Impressions are ordered by page, and within a page by rank.  `read_sessions` reads logs, and
    `Sessions.from_arrays` takes arrays.

    Attributes
    ----------
    queries, documents : tuple of str
        The distinct queries (texts or ids) and the distinct document ids.
    page_query : array of int32
        The query of each page, as an index into `queries`.
    offsets : array of int64
        The impressions of page p are `offsets[p]:offsets[p + 1]`.
    document : array of int32
        The document of each impression, as an index into `documents`.
    rank : array of int32
        The rank in the list of results, from 1: the second page of a list may begin at 11.
    clicks : array of int32
        How often the impression was clicked.
    session : array of int32
        The session of each page; pages of one session have the same number.
    first_click : array of int32 or None
        The place of the impression's first click in the order of clicks on its page: 1 for the
        first; 0 where there is no click.  None where the log does not tell the order.
    value : array of float32 or None
        The largest value of an action on the impression, such as a purchase.
    propensity : array of float64 or None
        The logged probability that this document was displayed at this rank.
    user : array of int32 or None
        The user of each page, as an index into `users`; -1 where unknown.
    time : array of int64 or None
        The time of each page in milliseconds since 1970 (UTC); -1 where unknown.
    layout : array of int32 or None
        The layout of each page, such as list or grid, as an index into `layouts`; -1 where unknown.
    arm : array of int32 or None
        The ranking that each impression of an interleaved page comes from, as an index into `arms`;
        -1 where unknown.
    experiment : array of int32 or None
        What the log tells of the experiment on each page, as an index into `experiments`; -1 for
        pages of none.
    users, layouts, arms, experiments : tuple of str
        The distinct users, layouts, rankings, and pages of experiments (JSON).
    decisions : dict of str to int
        What was decided when the log was read, in words, and in how many cases.
    source : str
        Where the sessions come from.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox", "fox", "fox", "fox"], document=["a", "b", "b", "a"],
    ...     rank=[1, 2, 1, 2], clicked=[1, 0, 1, 0], page=[1, 1, 2, 2])
    >>> sessions
    Sessions(2 pages, 4 impressions, 2 clicks, 1 query, 2 documents)
    """

    queries: tuple[str, ...]
    documents: tuple[str, ...]
    page_query: Int32s
    offsets: Ints
    document: Int32s
    rank: Int32s
    clicks: Int32s
    session: Int32s
    first_click: Int32s | None = None
    value: NDArray[np.float32] | None = None
    propensity: NDArray[np.float64] | None = None
    user: Int32s | None = None
    time: Ints | None = None
    layout: Int32s | None = None
    users: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    arm: Int32s | None = None
    arms: tuple[str, ...] = ()
    experiment: Int32s | None = None
    experiments: tuple[str, ...] = ()
    decisions: Mapping[str, int] = field(default_factory=dict)
    source: str = "sessions"

    @classmethod
    def from_arrays(
        cls,
        *,
        query: Any,
        document: Any,
        clicked: Any,
        rank: Any = None,
        page: Any = None,
        first_click: Any = None,
        value: Any = None,
        propensity: Any = None,
        session: Any = None,
        user: Any = None,
        time: Any = None,
        layout: Any = None,
        arm: Any = None,
    ) -> Sessions:
        """Return sessions of arrays with one value per impression.

        Parameters
        ----------
        query, document : array-like
            Queries and document ids, as texts or integers.
        clicked : array-like
            Whether the impression was clicked, or how often.
        rank : array-like, optional
            The rank, from 1.  By default the order of the rows on the page.
        page : array-like, optional
            What tells pages apart, such as an id; rows of a page need not be adjacent.  By default
            a page begins where the query or the session changes, or the rank does not increase.
        first_click : array-like, optional
            The place of the impression's first click in the order of clicks on its page; 0 without
            a click.
        value, propensity : array-like, optional
            The value of the best action; the probability of being displayed at this rank.
        session, user, time, layout : array-like, optional
            Properties of the page, of which the first row of a page counts.  Times are
            milliseconds since 1970.  By default each page is a session.
        arm : array-like, optional
            The ranking that the impression of an interleaved page comes from.

        Returns
        -------
        Sessions
            The sessions, grouped by page.

        Raises
        ------
        DataError
            If lengths differ, or a value is impossible.

        Examples
        --------
        >>> import firstpage as fp
        >>> sessions = fp.Sessions.from_arrays(
        ...     query=["fox"] * 3, document=["a", "b", "c"], rank=[1, 2, 3], clicked=[0, 2, 0])
        >>> sessions.rank[sessions.clicked].tolist()
        [2]
        """
        given = {
            "query": query, "document": document, "clicks": clicked, "rank": rank, "page": page,
            "first_click": first_click, "value": value, "propensity": propensity,
            "session": session, "user": user, "time": time, "layout": layout, "arm": arm,
        }  # fmt: skip
        columns = {name: values for name, values in given.items() if values is not None}
        try:
            lengths = {name: len(values) for name, values in columns.items()}
        except TypeError:
            raise DataError("sessions take one list or array per column.") from None
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise DataError(f"the arrays of sessions must have one length; got {counts}.")
        tables: dict[str, dict[str, int]] = {}
        coded: dict[str, Array] = {}
        for name, values in columns.items():
            table = tables.setdefault(name, {}) if name in CODED else None
            coded[name] = _numbers(name, values) if table is None else codes_of(values, table)
        if "rank" not in coded and "page" in coded:
            coded["rank"] = order_on_page(coded["page"])
        elif "rank" not in coded:
            raise DataError("sessions need the rank or the page of each impression.")
        if "page" not in coded:
            coded["page"] = pages_by_rank(coded)
        _check(coded)
        return assemble(coded, {name: tuple(table) for name, table in tables.items()})

    @property
    def n_pages(self) -> int:
        """The number of pages."""
        return len(self.page_query)

    @property
    def n_impressions(self) -> int:
        """The number of impressions."""
        return len(self.document)

    @property
    def n_queries(self) -> int:
        """The number of distinct queries in `queries`; a selection may have pages of fewer."""
        return len(self.queries)

    @property
    def n_documents(self) -> int:
        """The number of distinct documents in `documents`; a selection may show fewer."""
        return len(self.documents)

    @property
    def clicked(self) -> Bools:
        """Whether each impression was clicked."""
        return np.asarray(self.clicks > 0)

    @cached_property
    def page(self) -> Int32s:
        """The page of each impression."""
        return np.repeat(np.arange(self.n_pages, dtype=np.int32), np.diff(self.offsets))

    @cached_property
    def pairs(self) -> QueryDocumentPairs:
        """The distinct pairs of query and document, and the pair of each impression."""
        if self.n_queries * self.n_documents >= MAX_PAIRS:
            raise DataError(f"{self.source}: too many queries and documents to number their pairs.")
        key = self.page_query[self.page].astype(np.int64) * self.n_documents + self.document
        distinct, pair = np.unique(key, return_inverse=True)
        width = max(self.n_documents, 1)
        return QueryDocumentPairs(pair.astype(np.int64), distinct // width, distinct % width)

    @cached_property
    def displayed(self) -> Qrels:
        """The ids of the distinct pairs, in their order, to join with other data."""
        _, ids, offsets, docids = grouped_ids(self, self.pairs.query, self.pairs.document)
        return Qrels(ids, offsets, docids, np.zeros(len(docids)))

    def select(self, pages: Any) -> Sessions:
        """Return some of the pages, with the same tables of queries and documents.

        Parameters
        ----------
        pages : array of bool or int
            One value per page, or indices of pages in the order wanted.

        Returns
        -------
        Sessions
            The pages; indices into `queries` and `documents` stay comparable.
        """
        index = np.asarray(pages)
        try:
            wanted = np.arange(self.n_pages)[index if index.size else index.astype(np.int64)]
        except IndexError:
            wanted = np.array(0)
        if wanted.ndim != 1:
            raise DataError(f"pages are selected by a mask or by indices below {self.n_pages:,}.")
        lengths = np.diff(self.offsets)[wanted]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(self.offsets[:-1][wanted] - offsets[:-1], lengths)
        rows += np.arange(len(rows))
        changed: dict[str, Any] = {"offsets": offsets}
        for names, index in ((IMPRESSION_FIELDS, rows), (PAGE_FIELDS, wanted)):
            for name in names:
                values = getattr(self, name)
                changed[name] = None if values is None else _frozen(values[index])
        return replace(self, **changed)

    def split(
        self, fraction: float = 0.2, by: SplitUnit = "session", seed: int = 0
    ) -> tuple[Sessions, Sessions]:
        """Return the pages in two parts, such as for training and testing.

        Parameters
        ----------
        fraction : float, default 0.2
            The fraction of the sessions, queries or pages in the second part.
        by : {"session", "query", "time"}, default "session"
            Whether random sessions, random queries or the last pages are the second part.
        seed : int, default 0
            The random seed.

        Returns
        -------
        tuple of Sessions
            The larger and the smaller part.
        """
        if not 0 < fraction < 1:
            raise DataError(f"the fraction of a split is between 0 and 1; got {fraction!r}.")
        if by == "time":
            if self.time is None or (self.time < 0).all():
                raise DataError(f"{self.source}: has no times to split by.")
            order = np.argsort(self.time, kind="stable")
            second = np.zeros(self.n_pages, bool)
            second[order[self.n_pages - round(fraction * self.n_pages) :]] = True
        elif by in ("session", "query"):
            groups = self.session if by == "session" else self.page_query
            distinct, number = np.unique(groups, return_inverse=True)
            drawn = np.random.default_rng(seed).permutation(len(distinct))
            second = (drawn < round(fraction * len(distinct)))[number]
        else:
            raise DataError(f"sessions are split by session, query or time; got {by!r}.")
        return self.select(~second), self.select(second)

    def __repr__(self) -> str:
        sizes = {
            "pages": self.n_pages, "impressions": self.n_impressions,
            "clicks": int(self.clicks.sum()), "queries": self.n_queries,
            "documents": self.n_documents,
        }  # fmt: skip
        return f"Sessions({', '.join(counted(n, units) for units, n in sizes.items())})"


def grouped_ids(names: Any, query: Ints, document: Ints) -> tuple[Ints, Ids, Ints, Ids]:
    """Return the queries of pairs in order, their ids, the offsets of their documents, and the ids.

    `names` has the tables `queries` and `documents`, of which these are indices.
    """
    queries, lengths = np.unique(query, return_counts=True)
    ids = Ids.from_values(names.queries[number] for number in queries.tolist())
    docids = Ids.from_values(names.documents[number] for number in document.tolist())
    return queries, ids, offsets_from_lengths(lengths), docids


def rows_of_pairs(sessions: Sessions, other: Documents) -> Ints:
    """Return the row of each pair of query and document in other data, -1 where it has none."""
    shown = sessions.displayed
    rows = join_documents(shown, other, match_queries(shown.queries, other.queries))
    if not (rows >= 0).any():
        source = other.source or "the judgments"
        raise DataError(
            f"{source}: none of the documents of {sessions.source}; queries and documents need the "
            f"same names, as {str(shown.docids[0])!r} of query {str(shown.queries[0])!r}."
        )
    return rows


def concatenate(*parts: Sessions) -> Sessions:
    """Return the pages of several logs, with joined tables of queries and documents.

    Parameters
    ----------
    *parts : Sessions
        The logs; sessions of different logs are different sessions.

    Returns
    -------
    Sessions
        All pages, in order.  A column that a part lacks is missing in the result, except users,
        times and layouts, which are unknown (-1) there.

    Examples
    --------
    >>> import firstpage as fp
    >>> one = fp.Sessions.from_arrays(query=["q"], document=["a"], rank=[1], clicked=[1])
    >>> fp.clicks.concatenate(one, one)
    Sessions(2 pages, 2 impressions, 2 clicks, 1 query, 1 document)
    """
    if not parts:
        raise DataError("there are no sessions to concatenate.")
    joined: dict[str, Any] = {}
    for column, names in TABLES.items():
        table: dict[str, int] = {}
        recoded = [_recoded(part, names, column, table) for part in parts]
        known = any(getattr(part, column) is not None for part in parts)
        joined |= {names: tuple(table), column: np.concatenate(recoded) if known else None}
    for name in ("rank", "clicks", "first_click", "value", "propensity"):
        values = [getattr(part, name) for part in parts]
        joined[name] = None if any(v is None for v in values) else np.concatenate(values)
    times = [np.full(p.n_pages, -1) if p.time is None else p.time for p in parts]
    joined["time"] = None if all(p.time is None for p in parts) else np.concatenate(times)
    first = np.cumsum([0, *(int(p.session.max(initial=-1)) + 1 for p in parts)])
    sessions = [p.session + np.int32(f) for p, f in zip(parts, first[:-1], strict=True)]
    joined["session"] = np.concatenate(sessions)
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    joined["offsets"] = offsets_from_lengths(lengths)
    joined["decisions"] = dict(sum((Counter(part.decisions) for part in parts), Counter()))
    joined["source"] = ", ".join(dict.fromkeys(part.source for part in parts))
    fields = {n: _frozen(v) if isinstance(v, np.ndarray) else v for n, v in joined.items()}
    return Sessions(**fields)


def _recoded(part: Sessions, names: str, column: str, table: dict[str, int]) -> Int32s:
    """Return a column of indices into the joined table; -1 where the part has no such column."""
    codes = getattr(part, column)
    if codes is None:
        return np.full(part.n_impressions if column == "arm" else part.n_pages, -1, np.int32)
    new = [table.setdefault(name, len(table)) for name in getattr(part, names)]
    recoded: Int32s = np.array([*new, -1], np.int32)[codes]
    return recoded


def codes_of(values: Any, table: dict[str, int]) -> Int32s:
    """Return the index of each value in a table, to which new values are added.

    Missing values (None, NaN, empty texts) are -1.
    """
    if hasattr(values, "to_physical"):  # a column of polars
        return _codes_of_series(values, table)
    listed = values.tolist() if hasattr(values, "tolist") else values
    index: dict[Any, int] = {}
    try:
        distinct = dict.fromkeys(listed)
    except TypeError:
        raise DataError("queries, documents and ids must be texts or numbers, not lists.") from None
    for value in distinct:
        missing = value is None or value != value or value == ""
        index[value] = -1 if missing else table.setdefault(str(value), len(table))
    return np.fromiter((index[value] for value in listed), np.int32, len(listed))


def _codes_of_series(column: Any, table: dict[str, int]) -> Int32s:
    """Return the codes of a column of polars, whose distinct values alone are looked up."""
    import polars as pl

    if column.dtype != pl.Enum:
        column = column.cast(pl.String)
        column = column.cast(pl.Enum(column.drop_nulls().unique(maintain_order=True)))
    names = column.dtype.categories.to_list()
    codes = column.to_physical().cast(pl.Int64).fill_null(len(names)).to_numpy()
    used = np.zeros(len(names) + 1, bool)
    used[codes] = True
    there = zip(names, used.tolist(), strict=False)
    new = [table.setdefault(n, len(table)) if n and u else -1 for n, u in there]
    recoded: Int32s = np.array([*new, -1], np.int32)[codes]
    return recoded


def _numbers(name: str, values: Any) -> Array:
    """Return a column of numbers; refuse texts and NaN."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} of sessions must be numbers.") from None
    if array.ndim != 1 or np.isnan(array).any():
        raise DataError(f"{name} of sessions must be one number per impression, without NaN.")
    if name == "propensity" and (array > 1).any():
        raise DataError("propensity of sessions is a probability, at most 1.")
    dtype = DTYPES.get(name, np.int32)
    if not np.issubdtype(dtype, np.floating):
        largest = 2.0 ** (8 * np.dtype(dtype).itemsize - 1)
        if (array != np.round(array)).any() or (np.abs(array) >= largest).any():
            raise DataError(f"{name} of sessions must be integers below {largest:.4g}.")
    return array.astype(dtype)


def _check(columns: Mapping[str, Array]) -> None:
    """Refuse impossible values of arrays."""
    for name, least in (("rank", 1), ("clicks", 0), ("first_click", 0), ("propensity", 0)):
        if name in columns and (columns[name] < least).any():
            row = int(np.argmax(columns[name] < least))
            value = columns[name][row].item()
            raise DataError(f"{name} must be at least {least}; impression {row} has {value!r}.")
    if "first_click" in columns and columns["first_click"][columns["clicks"] == 0].any():
        raise DataError("first_click has a place in the order of clicks where there is no click.")
    for name in ("query", "document", "page"):
        if (columns[name] < 0).any():
            raise DataError(f"impression {np.argmax(columns[name] < 0)} has no {name}.")
    if (split_by_query(columns["page"], columns["query"]) != numbers_of(columns["page"])).any():
        raise DataError("a page has impressions of two queries; give each its own value of `page`.")
    for name in ("rank", "document"):
        repeated = repeats(columns["page"], columns[name])
        if repeated.any():
            raise DataError(
                f"impression {np.argmax(repeated)} has the {name} of an earlier one on its page; "
                "give each page its own value of `page`."
            )


def repeats(page: Array, values: Array) -> Bools:
    """Return which impressions repeat a value of an earlier one on their page."""
    order = np.lexsort((values, page))
    same = (page[order][1:] == page[order][:-1]) & (values[order][1:] == values[order][:-1])
    repeated = np.zeros(len(page), bool)
    repeated[order[1:][same]] = True  # lexsort is stable: the first one comes first
    return repeated


def order_on_page(page: Array) -> Int32s:
    """Return the place of each row among the rows of its page, from 1."""
    order = np.argsort(page, kind="stable")
    ordered = page[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])[: len(page)]
    lengths = np.diff(np.r_[starts, len(page)])
    place = np.empty(len(page), np.int32)
    place[order] = np.arange(len(page)) - np.repeat(starts, lengths) + 1
    return place


def split_by_query(page: Array, query: Array) -> Ints:
    """Return page numbers of which each has one query."""
    return numbers_of(page.astype(np.int64) * (int(query.max(initial=0)) + 1) + query)


def pages_by_rank(columns: Mapping[str, Array]) -> Ints:
    """Return page numbers: a page begins where query or session change or ranks do not increase."""
    begins = np.zeros(len(columns["rank"]), bool)
    begins[1:] = columns["rank"][1:] <= columns["rank"][:-1]
    for name in ("query", "session"):
        if name in columns:
            begins[1:] |= columns[name][1:] != columns[name][:-1]
    return np.cumsum(begins)


def assemble(
    columns: Mapping[str, Array],
    tables: Mapping[str, Sequence[str]],
    decisions: Mapping[str, int] | None = None,
    source: str = "sessions",
) -> Sessions:
    """Return sessions of valid columns with one value per impression, grouped by `page`."""
    order, offsets = _grouped(columns["page"], columns["rank"])
    rows: dict[str, Array] = {}
    first = offsets[:-1] if order is None else order[offsets[:-1]]
    for name, values in columns.items():
        if name in IMPRESSION_FIELDS:
            rows[name] = values if order is None else values[order]
        elif name != "page":
            rows["page_query" if name == "query" else name] = values[first]
    own = np.arange(len(first)) - len(first) - 1  # below -1: sessions of pages that have none
    session = rows.get("session", own)
    rows["session"] = numbers_of(np.where(session == -1, own, session))
    fields: dict[str, Any] = {
        name: tuple(tables.get(column.removeprefix("page_"), ())) for column, name in TABLES.items()
    }
    for name, values in rows.items():
        fields[name] = _frozen(np.ascontiguousarray(values, DTYPES.get(name, np.int32)))
    known = dict(decisions or {})
    return Sessions(offsets=_frozen(offsets), decisions=known, source=source, **fields)


def _grouped(page: Array, rank: Array) -> tuple[Ints | None, Ints]:
    """Return the order of rows by page (in order of appearance) and rank, and the offsets.

    The order is None where the rows have it already.
    """
    number = numbers_of(page)
    counts = np.bincount(number)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    same, up = number[1:] == number[:-1], number[1:] > number[:-1]
    ordered = bool((up | (same & (rank[1:] > rank[:-1]))).all())
    return None if ordered else np.lexsort((rank, number)), offsets


def numbers_of(keys: Array) -> Ints:
    """Return a number per key (of pages, of sessions) from 0, in order of appearance."""
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])[: len(keys)]
    _, first, run = np.unique(keys[starts], return_index=True, return_inverse=True)
    appearance = np.empty(len(first), np.int64)
    appearance[np.argsort(first)] = np.arange(len(first))
    return np.repeat(appearance[run], np.diff(np.r_[starts, len(keys)]))


def _frozen(array: Any) -> Any:
    """Return an array that cannot be written."""
    array.flags.writeable = False
    return array
