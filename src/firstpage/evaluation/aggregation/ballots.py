"""Ballots: the rankers' votes on the order of the same candidates, query by query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints
from firstpage.core.kernels import base_points
from firstpage.core.kernels.voting import ABSENT
from firstpage.data import Column, Ids, Run, check_offsets, offsets_from_lengths, sort_groups
from firstpage.evaluation.aggregation.merge import BaseOrder, merge_runs
from firstpage.evaluation.aggregation.weights import normalize_weights

Missing = Literal["last", "ignore"]
FUSED_ORDER = "reciprocal rank fusion"


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
    scores : ndarray of shape (n_rankers, n_candidates), optional
        The rankers' scores, NaN for documents that a ranker does not list; None if only ranks are
        known.
    base_order : str, default "the ballots"
        Whose order the base order is, in words.

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
        If shapes do not agree.

    Examples
    --------
    >>> import firstpage as fp
    >>> ballots = fp.aggregation.Ballots.from_scores([[3, 2, 1], [1, 3, 2]], [0, 3])
    >>> ballots
    Ballots(2 rankers, 1 queries, 3 candidates of 3 documents)
    >>> ballots.documents.tolist(), ballots.positions.tolist()
    ([1, 0, 2], [[1, 0, 2], [0, 2, 1]])
    """

    positions: Ints
    offsets: Ints
    documents: Ints
    ends: Ints
    queries: Ids
    docids: Ids | None = None
    names: tuple[str, ...] = ()
    missing: Missing = "last"
    scores: Floats | None = None
    base_order: str = "the ballots"

    def __post_init__(self) -> None:
        if self.missing not in get_args(Missing):
            raise DataError(f"missing must be last or ignore; got {self.missing!r}.")
        check_offsets(self.offsets, self.queries, self.positions.shape[1], "ballots")
        check_offsets(self.ends, self.queries, len(self.documents), "ballots")
        if self.scores is not None and self.scores.shape != self.positions.shape:
            raise DataError(
                f"ballots: scores of the shape {self.scores.shape} for positions of the shape "
                f"{self.positions.shape}."
            )
        for name in ("positions", "offsets", "documents", "ends", "scores"):
            if (array := getattr(self, name)) is None:
                continue
            view = array.view()  # the caller's arrays stay writable
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
        weights: Iterable[float] | None = None,
    ) -> Ballots:
        """Return the ballots of several scorings of the same documents.

        Parameters
        ----------
        scores : array_like of shape (n_rankers, n_docs)
            A row of scores per ranker; equal scores are ordered by base order.
        offsets : array_like of shape (n_queries + 1,)
            Query `q` has the documents `offsets[q]:offsets[q + 1]`.
        base_scores : array_like of shape (n_docs,), optional
            Scores of the base order, equal ones in the order of the documents; by default those of
            reciprocal rank fusion.
        depth : int, optional
            The number of candidates per query; all documents by default.
        same_depth : bool, default False
            Use one depth for all queries: at most the length of the shortest.
        queries, docids : iterable, optional
            Query and document ids; queries are numbered from 1 by default.
        names : sequence of str, optional
            Names of the rankers.
        weights : iterable of float, optional
            A weight per ranker in the default base order; equal by default.

        Returns
        -------
        Ballots
            The ballots.

        Raises
        ------
        DataError
            If shapes do not agree, a score is NaN, or weights are invalid.

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
        if base_scores is None:
            base = _fused_scores(table, ends, normalize_weights(weights, len(table)))
        else:
            base = _score_table([base_scores], "base_scores")[0]
            if len(base) != table.shape[1]:
                raise DataError(f"{len(base)} base_scores for {table.shape[1]} documents.")
        documents, _ = sort_groups(base, ends)
        ids = None if docids is None else Ids.from_values(docids)
        if ids is not None and len(ids) != table.shape[1]:
            raise DataError(f"{len(ids)} docids for {table.shape[1]} documents.")
        if names and len(names) != len(table):
            raise DataError(f"{len(names)} names for {len(table)} rankers.")
        heads, rows = truncate(ends, documents, depth, same_depth)
        positions = np.array([_positions(row[rows], heads) for row in table], np.int64)
        return cls(
            positions.reshape(len(table), -1),
            heads,
            documents,
            ends,
            query_ids,
            ids,
            tuple(names) or tuple(f"ranker {a}" for a in range(1, len(table) + 1)),
            scores=table.take(rows, axis=1),
            base_order=f"{FUSED_ORDER}, then of rows" if base_scores is None else "the base scores",
        )

    @classmethod
    def from_runs(
        cls,
        runs: Sequence[Run],
        *,
        base: BaseOrder = None,
        depth: int | None = 100,
        same_depth: bool = False,
        missing: Missing = "last",
        with_scores: bool = True,
        weights: Iterable[float] | None = None,
    ) -> Ballots:
        """Return the ballots of several runs, joined by query and document.

        A run need not list every document.  The base order is that of reciprocal rank fusion, with
        the mean rank for equal scores, and equal documents by id, descending.  So it does not
        depend on the order of the runs.  A base run's own documents precede it, in their order.
        Equal scores are ordered by base order, those of a base run by the order of its file.

        Parameters
        ----------
        runs : sequence of Run
            A run per ranker.
        base : Run or int, optional
            The base run, which votes only if it is among `runs` too; or the index of one of these.
        depth : int or None, default 100
            The number of candidates per query, in base order; None for all documents.
        same_depth : bool, default False
            Use one depth for all queries: at most the length of the shortest.
        missing : {"last", "ignore"}, default "last"
            What a ranker says about documents that it does not list.
        with_scores : bool, default True
            Whether the ballots have the scores of the runs, which methods by rank do not read.
        weights : iterable of float, optional
            A weight per ranker in the base order; equal by default.

        Returns
        -------
        Ballots
            The ballots.

        Raises
        ------
        DataError
            If there is no run, a document occurs twice in a query, or an option is invalid.
        """
        merged = merge_runs(runs, base, weights)
        documents = np.arange(len(merged.docids))
        heads, _ = truncate(merged.offsets, documents, depth, same_depth)
        positions, scores = merged.tables(heads, with_scores)
        names = tuple(run.name or f"ranker {a}" for a, run in enumerate(runs, 1))
        return cls(
            positions,
            heads,
            documents,
            merged.offsets,
            merged.queries,
            merged.docids,
            names,
            missing,
            scores,
            _base_in_words(base, names),
        )

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
        return cls.from_runs(runs, with_scores=False, **options)

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


def _base_in_words(base: BaseOrder, names: Sequence[str]) -> str:
    """Return whose order the base order is."""
    if base is None:
        return f"{FUSED_ORDER}, then of document ids"
    return base.name or "the base run" if isinstance(base, Column) else names[base]


def _fused_scores(scores: Floats, offsets: Ints, weights: Floats) -> Floats:
    """Return the scores of reciprocal rank fusion, in which equal scores share their mean rank."""
    rankers, size = scores.shape
    ranked = [sort_groups(row, offsets) for row in scores]
    order = np.concatenate([rows + a * size for a, (rows, _) in enumerate(ranked)])
    keys = np.concatenate([values for _, values in ranked])
    begins = np.arange(rankers) * size
    bounds = np.stack([offsets[:-1, None] + begins, offsets[1:, None] + begins], axis=2)
    numbers = np.tile(np.arange(size) - np.repeat(offsets[:-1], np.diff(offsets)), rankers)
    points = np.empty(size)
    base_points(bounds, order, keys, numbers, weights, base=-1, offsets=offsets, points=points)
    return points


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
