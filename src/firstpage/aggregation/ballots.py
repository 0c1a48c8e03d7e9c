"""Ballots: the rankers' votes on the order of the same candidates, query by query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from firstpage.data.formats.trec import Column, Run
from firstpage.data.groups import check_offsets, offsets_from_lengths, sort_groups
from firstpage.data.ids import Ids
from firstpage.data.joins import join_documents, match_queries
from firstpage.errors import DataError
from firstpage.kernels.voting.votes import ABSENT
from firstpage.types import Array, Floats, Ints

BaseOrder: TypeAlias = Run | int | Literal["round-robin"] | None
AFTER_BASE_RUN = float(1 << 40)  # beyond all positions of a base run


@dataclass(frozen=True, eq=False)
class MergedRuns:
    """The documents of several runs, grouped by query.

    Attributes
    ----------
    queries, offsets, docids
        The queries and their documents.
    key : ndarray of shape (n_docs,)
        A key that increases along the base order.
    ties : list of ndarray of shape (n_docs,)
        For each run, the first position of the documents of equal score, or ABSENT.
    """

    queries: Ids
    offsets: Ints
    docids: Ids
    key: Floats
    ties: list[Ints]


def merge_runs(runs: Sequence[Run], base: BaseOrder) -> MergedRuns:
    """Join runs by query and document; queries and documents in order of appearance."""
    if not runs or not all(isinstance(run, Column) for run in runs):
        raise DataError("give at least one run (a Run, as read_run returns it) to aggregate.")
    base_index, extra = _base_run(runs, base)
    columns = [*extra, *runs]
    sequence = sorted(range(len(columns)), key=lambda a: a != base_index)  # the base run first
    union, union_rows = _union([columns[a] for a in sequence])
    rows = [union_rows[sequence.index(a)] for a in range(len(columns))]
    size, first_voter = len(union.docids), len(extra)
    ranks = [_ranks(column) for column in columns]
    positions = [_scatter(p, r, size) for (p, _), r in zip(ranks, rows, strict=True)]
    ties = [_scatter(tie, r, size) for (_, tie), r in zip(ranks, rows, strict=True)]
    round_robin = np.min([p * len(runs) + a for a, p in enumerate(positions[first_voter:])], axis=0)
    key = round_robin.astype(np.float64) + AFTER_BASE_RUN
    if base_index is not None:
        listed = positions[base_index] != ABSENT
        key[listed] = positions[base_index][listed]
    return MergedRuns(union.queries, union.offsets, union.docids, key, ties[first_voter:])


def _base_run(runs: Sequence[Run], base: BaseOrder) -> tuple[int | None, list[Run]]:
    """Return the index of the base run, and a base run that does not vote and precedes the runs."""
    if isinstance(base, Column):
        return 0, [base]
    if isinstance(base, str):
        if base != "round-robin":
            raise DataError(f"base must be a run, its index or 'round-robin'; got {base!r}.")
        return None, []
    index = 0 if base is None else base
    if not isinstance(index, (int, np.integer)) or not 0 <= index < len(runs):
        raise DataError(
            f"base must be a run, an index from 0 to {len(runs) - 1} or 'round-robin'; got "
            f"{base!r}."
        )
    return int(index), []


def _union(columns: Sequence[Column]) -> tuple[Column, list[Ints]]:
    """Return all documents once, grouped by query, and the rows of each column's documents."""
    union = Column(Ids.from_values([]), np.zeros(1, np.int64), Ids.from_values([]), np.zeros(0))
    owner = np.zeros(0, np.int64)  # the query of each row
    rows: list[Ints] = []
    for column in columns:
        partner = match_queries(column.queries, union.queries)
        column_rows = join_documents(column, union, partner)
        new_query = partner < 0
        partner[new_query] = len(union) + np.arange(int(new_query.sum()))
        new = np.flatnonzero(column_rows < 0)
        column_rows[new] = len(owner) + np.arange(len(new))
        owner = np.concatenate([owner, np.repeat(partner, np.diff(column.offsets))[new]])
        order = np.argsort(owner, kind="stable")
        moved = np.empty(len(order), np.int64)
        moved[order] = np.arange(len(order))
        rows = [moved[r] for r in [*rows, column_rows]]
        owner = owner[order]
        new_queries = column.queries[np.flatnonzero(new_query)].compact()
        queries = Ids.concatenate(union.queries, new_queries)
        docids = Ids.concatenate(union.docids, column.docids[new].compact())[order]
        counts = np.bincount(owner, minlength=len(queries))
        offsets = offsets_from_lengths(counts)
        union = Column(queries, offsets, docids, np.zeros(len(owner)))
    return union, rows


def _ranks(run: Column) -> tuple[Ints, Ints]:
    """Return each document's position, ties in file order; and the first position of its tie."""
    order, keys = sort_groups(run.values, run.offsets)
    lo = np.repeat(run.offsets[:-1], np.diff(run.offsets))
    index = np.arange(len(order))
    new = np.ones(len(order), bool)
    new[1:] = (keys[1:] != keys[:-1]) | (lo[1:] != lo[:-1])
    first = np.maximum.accumulate(np.where(new, index, 0))
    position, tie = np.empty_like(index), np.empty_like(index)
    position[order], tie[order] = index - lo, first - lo
    return position, tie


def _scatter(values: Ints, rows: Ints, size: int) -> Ints:
    """Return an array with the values at these rows, and ABSENT elsewhere."""
    out = np.full(size, ABSENT, np.int64)
    out[rows] = values
    return out


Missing = Literal["last", "ignore"]
MAX_CANDIDATES = 10_000  # per query; a table of all their pairs takes 800 MB


@dataclass(frozen=True, eq=False)
class Ballots:
    """The candidates of every query in base order, and their positions in each ranker's list.

    Documents beyond the depth are not candidates: they keep the base order, below the candidates.
    Use `Ballots.from_scores`, `Ballots.from_runs` or `Ballots.from_lists` to build them.
    `len(ballots)` is the number of queries.

    Parameters
    ----------
    positions : ndarray of int of shape (n_rankers, n_candidates)
        0 is a ranker's best candidate of the query; ABSENT (`kernels.voting.votes.ABSENT`) means
        that the ranker does not list it.
    offsets : ndarray of shape (n_queries + 1,)
        Query `q` has the candidates `offsets[q]:offsets[q + 1]`.
    documents : ndarray of shape (n_docs,)
        The rows of all documents in base order, candidates first.
    ends : ndarray of shape (n_queries + 1,)
        Query `q` has the documents `ends[q]:ends[q + 1]`.
    queries : Ids
        The id of each query.
    docids : Ids, optional
        The id of each document, by row.
    names : tuple of str, default ()
        The names of the rankers.
    missing : {"last", "ignore"}, default "last"
        "last": a ranker puts the documents it lists before those it does not; "ignore": it does not
        vote on these.  It never orders two documents that it does not list.

    Attributes
    ----------
    n_rankers : int
        The number of rankers.
    lengths : ndarray of shape (n_queries,)
        The number of candidates of each query.
    longest : int
        The largest number of candidates of a query.
    vote_limit : int
        Candidates at positions below this can lose a vote.

    Raises
    ------
    DataError
        If shapes do not agree, or a query has more than 10000 candidates.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2]], [0, 3])
    >>> ballots
    Ballots(2 rankers, 1 queries, 3 candidates of 3 documents)
    >>> ballots.positions.tolist()
    [[0, 1, 2], [2, 0, 1]]
    """

    positions: Ints
    offsets: Ints
    documents: Ints
    ends: Ints
    queries: Ids
    docids: Ids | None = None
    names: tuple[str, ...] = ()
    missing: Missing = "last"

    def __post_init__(self) -> None:
        if self.missing not in get_args(Missing):
            raise DataError(f"missing must be last or ignore; got {self.missing!r}.")
        longest = int(np.diff(self.offsets).max(initial=0))
        if longest > MAX_CANDIDATES:
            raise DataError(
                f"a query has {longest} candidates, and the limit is {MAX_CANDIDATES}; set a depth."
            )
        check_offsets(self.offsets, self.queries, self.positions.shape[1], "ballots")
        check_offsets(self.ends, self.queries, len(self.documents), "ballots")
        for name in ("positions", "offsets", "documents", "ends"):
            view = getattr(self, name).view()  # the caller's arrays stay writable
            view.setflags(write=False)
            object.__setattr__(self, name, view)

    # --- construction

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        offsets: Any,
        base_scores: Any = None,
        *,
        depth: int | None = None,
        same_depth: bool = False,
        queries: Iterable[object] | None = None,
        docids: Iterable[object] | None = None,
        names: Sequence[str] = (),
    ) -> Ballots:
        """Return the ballots of several scorings of the same documents.

        Parameters
        ----------
        scores : array_like of shape (n_rankers, n_docs)
            A row of scores per ranker; equal scores are ordered by base order.
        offsets : array_like of shape (n_queries + 1,)
            Query `q` has the documents `offsets[q]:offsets[q + 1]`.
        base_scores : array_like of shape (n_docs,), optional
            Scores of the base order; by default it is the order of the documents.
        depth : int, optional
            The number of candidates per query; all documents by default.
        same_depth : bool, default False
            Use one depth for all queries: at most the length of the shortest.
        queries, docids : iterable, optional
            Query and document ids; queries are numbered from 1 by default.
        names : sequence of str, optional
            Names of the rankers.

        Returns
        -------
        Ballots
            The ballots.

        Raises
        ------
        DataError
            If shapes do not agree, or a score is NaN.

        Examples
        --------
        >>> import firstpage as fp
        >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1]], [0, 3], base_scores=[1, 2, 3])
        >>> ballots.documents.tolist()
        [2, 1, 0]
        """
        table = _score_table(scores)
        bounds = np.asarray(offsets)
        if bounds.ndim != 1 or not len(bounds) or bounds.dtype.kind not in "iu":
            raise DataError("offsets must be a one-dimensional array of integers that starts at 0.")
        ends = bounds.astype(np.int64)
        query_ids = Ids.from_values(map(str, range(1, len(ends))) if queries is None else queries)
        check_offsets(ends, query_ids, table.shape[1], "scores")
        documents = np.arange(table.shape[1])
        if base_scores is not None:
            base = _score_table([base_scores], "base_scores")
            if base.shape[1] != table.shape[1]:
                raise DataError(f"{base.shape[1]} base_scores for {table.shape[1]} documents.")
            documents, _ = sort_groups(base[0], ends)
        ids = None if docids is None else Ids.from_values(docids)
        if ids is not None and len(ids) != table.shape[1]:
            raise DataError(f"{len(ids)} docids for {table.shape[1]} documents.")
        if names and len(names) != len(table):
            raise DataError(f"{len(names)} names for {len(table)} rankers.")
        heads, rows = truncate(ends, documents, depth, same_depth)
        positions = np.array([_positions(row[rows], heads) for row in table], np.int64)
        return cls(
            positions.reshape(len(table), -1), heads, documents, ends, query_ids, ids,
            tuple(names) or tuple(f"ranker {a}" for a in range(1, len(table) + 1)),
        )  # fmt: skip

    @classmethod
    def from_runs(
        cls,
        runs: Sequence[Run],
        *,
        base: BaseOrder = None,
        depth: int | None = 100,
        same_depth: bool = False,
        missing: Missing = "last",
    ) -> Ballots:
        """Return the ballots of several runs, joined by query and document.

        A run need not list every document.  Documents that the base run does not list follow in
        turns: the first of each run, then the second of each, without repetition.  Equal scores are
        ordered by base order, those of the base run by the order of its file.

        Parameters
        ----------
        runs : sequence of Run
            A run per ranker.
        base : Run, int or "round-robin", optional
            The base order: a run, which votes only if it is among `runs` too; the index of one of
            these; or "round-robin".  By default the first run.
        depth : int or None, default 100
            The number of candidates per query, in base order; None for all documents.
        same_depth : bool, default False
            Use one depth for all queries: at most the length of the shortest.
        missing : {"last", "ignore"}, default "last"
            What a ranker says about documents that it does not list.

        Returns
        -------
        Ballots
            The ballots.

        Raises
        ------
        DataError
            If there is no run, a document occurs twice in a query, or an option is invalid.
        """
        merged = merge_runs(runs, base)
        documents, _ = sort_groups(-merged.key, merged.offsets)
        heads, rows = truncate(merged.offsets, documents, depth, same_depth)
        positions = np.empty((len(runs), len(rows)), np.int64)
        for a, ties in enumerate(merged.ties):
            key = ties[rows]
            positions[a] = _positions(-key.astype(np.float64), heads)
            positions[a][key == ABSENT] = ABSENT
        names = tuple(run.name or f"ranker {a}" for a, run in enumerate(runs, 1))
        return cls(
            positions, heads, documents, merged.offsets, merged.queries, merged.docids, names,
            missing,
        )  # fmt: skip

    @classmethod
    def from_lists(cls, lists: Sequence[Mapping[str, Sequence[str]]], **options: Any) -> Ballots:
        """Return the ballots of ranked lists of documents.

        Parameters
        ----------
        lists : sequence of mapping
            A mapping {query: [best document, second, ..]} per ranker.
        **options
            Keyword arguments of `from_runs`.

        Returns
        -------
        Ballots
            The ballots.

        Raises
        ------
        DataError
            If a list is malformed, or a document occurs twice in one.

        Examples
        --------
        >>> import firstpage as fp
        >>> ballots = fp.aggregation.Ballots.from_lists([{"q": ["a", "b"]}, {"q": ["b", "a"]}])
        >>> ballots.positions.tolist()
        [[0, 1], [1, 0]]
        """
        for a, table in enumerate(lists, 1):
            if not isinstance(table, Mapping) or any(
                isinstance(docs, str) or not isinstance(docs, Sequence) for docs in table.values()
            ):
                raise DataError(f"list {a} must be {{query: [best document, second, ..]}}.")
        runs = [
            Run.from_dict({q: {d: -i for i, d in enumerate(docs)} for q, docs in table.items()})
            for table in lists
        ]
        for a, (run, table) in enumerate(zip(runs, lists, strict=True), 1):
            if len(run.docids) < sum(map(len, table.values())):
                raise DataError(f"list {a}: a document occurs twice in a query.")
        return cls.from_runs(runs, **options)

    # --- properties

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.offsets) - 1

    @property
    def n_rankers(self) -> int:
        """The number of rankers."""
        return len(self.positions)

    @cached_property
    def lengths(self) -> Ints:
        """The number of candidates of each query."""
        return np.diff(self.offsets)

    @property
    def longest(self) -> int:
        """The largest number of candidates of a query."""
        return int(self.lengths.max(initial=0))

    @property
    def vote_limit(self) -> int:
        """Candidates at positions below this can lose a vote."""
        return ABSENT + 1 if self.missing == "last" else ABSENT

    def __repr__(self) -> str:
        return (
            f"Ballots({self.n_rankers} rankers, {len(self)} queries, {int(self.offsets[-1])} "
            f"candidates of {len(self.documents)} documents)"
        )


def truncate(ends: Ints, documents: Ints, depth: int | None, same: bool) -> tuple[Ints, Ints]:
    """Return the offsets and rows of the first `depth` documents of every query."""
    lengths = np.diff(ends)
    is_integer = isinstance(depth, (int, np.integer)) and not isinstance(depth, bool)
    if depth is not None and (not is_integer or depth < 1):
        raise DataError(f"depth must be an integer of at least 1, or None for all; got {depth!r}.")
    if same and (lengths > 0).any():
        shortest = int(lengths[lengths > 0].min())
        depth = shortest if depth is None else min(depth, shortest)
    if depth is None or depth >= len(documents):
        return ends, documents
    heads = offsets_from_lengths(np.minimum(lengths, depth))
    position = np.arange(len(documents)) - np.repeat(ends[:-1], lengths)
    return heads, documents[position < depth]


def _positions(scores: Floats, offsets: Ints) -> Ints:
    """Return the position of every row in its query by score; equal scores keep their order."""
    order, _ = sort_groups(scores, offsets)
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order)) - np.repeat(offsets[:-1], np.diff(offsets))
    return positions


def _score_table(scores: Any, name: str = "scores") -> Floats:
    try:
        table: Array = np.asarray(scores, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name} must be one row of numbers per ranker, all of one length ({error})."
        ) from error
    if table.ndim != 2 or not len(table):
        raise DataError(f"{name} must have the shape (rankers, documents); got {table.shape}.")
    if np.isnan(table).any():
        ranker, row = np.argwhere(np.isnan(table))[0].tolist()
        raise DataError(f"{name}: the score of document {row + 1} by ranker {ranker + 1} is NaN.")
    return np.ascontiguousarray(table)
