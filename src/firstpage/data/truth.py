"""Ground truth as an ordered partition: one label per document, larger is better.

Grades, full orders and top-k truths share one representation: documents of equal label are not
ordered.  A top-k truth labels its documents k, k-1, .. 1 and all others 0, so the first document
has the label k in every query, however short.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints
from firstpage.core.kernels import STEP, order_ties_by_key, random_words, rank_grades, top_labels
from firstpage.core.kernels.measures import count_relevant
from firstpage.data.groups import check_offsets, group_rows, offsets_from_lengths, sort_groups
from firstpage.data.ids import Ids

MAX_K = 10**9
MAX_PARTIAL_SORT = 64  # up to this depth the top labels are selected; beyond, all are sorted
GRADES = 16  # labels 0 to 15 are counted, not sorted
TruthKind = Literal["graded", "full order", "top-k"]
Shared = TypeVar("Shared", bound=Array)


@dataclass(frozen=True, eq=False)
class Truth:
    """Labels of the documents of many queries, with conversions between kinds of truth.

    Conversions return a new object.  Use `Truth.from_labels` to build one from arrays, or
    `Dataset.truth` for the labels of a dataset.

    Parameters
    ----------
    labels : ndarray of shape (n_docs,)
        Finite labels (float64); larger is better, equal labels are not ordered.
    offsets : ndarray of shape (n_queries + 1,)
        Query `q` owns the rows `offsets[q]:offsets[q + 1]`.
    queries : Ids
        The id of each query.

    Attributes
    ----------
    lengths : ndarray of shape (n_queries,)
        The number of documents of each query.
    by_label : tuple of (ndarray, ndarray)
        Row numbers sorted by descending label within each query, and the labels in this order.
    depth : ndarray of shape (n_queries,)
        The number of first positions that the labels decide.
    kind : {"graded", "full order", "top-k"}
        What the labels can be read as.
    top_k_depth : int or None
        k, if the labels are a top-k truth.
    max_labels : ndarray of shape (n_queries,)
        The greatest label of each query, at least 0.

    Raises
    ------
    DataError
        If a label is not finite, or the offsets do not fit the labels.

    References
    ----------
    .. [1] S. Niu, J. Guo, Y. Lan, X. Cheng, "Top-k Learning to Rank: Labeling, Ranking and
       Evaluation", SIGIR 2012.

    Examples
    --------
    >>> import firstpage as fp
    >>> truth = fp.Truth.from_labels([3, 0, 1, 0])
    >>> truth.kind
    'graded'
    >>> truth.top_k(2).labels.tolist()
    [2.0, 0.0, 1.0, 0.0]
    """

    labels: Floats
    offsets: Ints
    queries: Ids
    _ideals: dict[int, tuple[Floats, Ints]] = field(init=False, repr=False, default_factory=dict)
    _relevant: dict[float, Floats] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        labels = np.asarray(self.labels, np.float64).view()
        object.__setattr__(self, "labels", _read_only(labels))
        check_offsets(self.offsets, self.queries, len(self.labels), "truth")
        bad = ~np.isfinite(self.labels)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"a label of query {self._query_of(row)!r} is {self.labels[row]}; "
                "labels must be finite numbers."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without what is computed from the labels; a copy is read-only too."""
        return type(self), (self.labels, self.offsets, self.queries)

    @classmethod
    def from_labels(cls, labels: Any, qid: Any = None) -> Truth:
        """Return the truth of arrays with one entry per document.

        Parameters
        ----------
        labels : array_like of shape (n_docs,)
            Labels; larger is better.
        qid : array_like of shape (n_docs,), optional
            The query id of each document; rows of one query must be contiguous.  Without it all
            documents belong to one query.

        Returns
        -------
        Truth
            The labels, grouped by query.

        Raises
        ------
        DataError
            If rows of one query are not contiguous, or a label is not finite.
        """
        values = np.array(labels, np.float64).ravel()
        ids = np.zeros(len(values), np.int64) if qid is None else qid
        queries, offsets, order = group_rows(ids, len(values))
        if order is not None:
            raise DataError(
                "the rows of a query must be contiguous here; Dataset.from_arrays regroups them."
            )
        return cls(values, offsets, queries)

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.queries)

    def __repr__(self) -> str:
        span = (
            f", labels {self.labels.min():g} to {self.labels.max():g}" if len(self.labels) else ""
        )
        return f"Truth({len(self)} queries, {len(self.labels)} documents{span})"

    def _query_of(self, row: int) -> str:
        return self.queries[int(np.searchsorted(self.offsets, row, side="right")) - 1]

    # --- properties

    @property
    def lengths(self) -> Ints:
        """The number of documents of each query."""
        return np.diff(self.offsets)

    @cached_property
    def by_label(self) -> tuple[Ints, Floats]:
        """Rows by descending label, in file order among equals; and the labels in this order."""
        values, counts = np.ascontiguousarray(self.labels), np.empty(GRADES, np.int64)
        rows, labels = np.empty(len(values), np.int64), np.empty(len(values))
        if not rank_grades(values, self.offsets, counts, rows, labels):
            rows, labels = sort_groups(values, self.offsets)
        return _read_only(rows), _read_only(labels)

    @cached_property
    def depth(self) -> Ints:
        """The number of first positions of each query that the labels decide.

        It is n for a full order, k for a top-k truth, and 0 where the best grade is shared.
        """
        keys = self.by_label[1]
        depth = np.empty(len(self), np.int64)
        for q, (lo, hi) in enumerate(self._bounds()):
            tied = keys[lo : hi - 1] == keys[lo + 1 : hi] if hi > lo else np.empty(0, bool)
            depth[q] = int(np.argmax(tied)) if tied.any() else hi - lo
        return depth

    @property
    def kind(self) -> TruthKind:
        """What the labels can be read as; a full order is also a top-k truth."""
        if (self.depth == self.lengths).all():
            return "full order"
        return "top-k" if self.top_k_depth is not None else "graded"

    @cached_property
    def top_k_depth(self) -> int | None:
        """k, if the labels of every query are k, k-1, .. followed by zeros; else None."""
        if not len(self.labels) or (top := self.labels.max()) < 1 or top != int(top):
            return None
        position = np.arange(len(self.labels)) - np.repeat(self.offsets[:-1], self.lengths)
        expected = np.maximum(top - position, 0)
        return int(top) if np.array_equal(self.by_label[1], expected) else None

    # --- what measures compare a ranking with; computed once for all systems

    def ideal(self, depth: int) -> tuple[Floats, Ints]:
        """Return the first `depth` labels of each query in descending order, and their offsets.

        Parameters
        ----------
        depth : int
            Number of labels per query that are needed, at least 1; there may be more.

        Returns
        -------
        labels : ndarray of float
            The labels of the ideal lists, read-only.
        offsets : ndarray of int
            Query q has the labels offsets[q]:offsets[q + 1].

        Raises
        ------
        DataError
            If the depth is less than 1.

        Examples
        --------
        >>> import firstpage as fp
        >>> fp.Truth.from_labels([3, 0, 1, 0]).ideal(2)[0].tolist()
        [3.0, 1.0]
        """
        if depth < 1:
            raise DataError(f"depth must be at least 1; got {depth}.")
        if depth > MAX_PARTIAL_SORT or "by_label" in self.__dict__:
            return self.by_label[1], self.offsets
        if depth not in self._ideals:
            offsets = offsets_from_lengths(np.minimum(self.lengths, depth))
            best = np.empty(int(offsets[-1]))
            top_labels(self.labels, self.offsets, np.empty(GRADES, np.int64), offsets, best)
            self._ideals[depth] = _read_only(best), _read_only(offsets)
        return self._ideals[depth]

    @cached_property
    def max_labels(self) -> Floats:
        """The greatest label of each query, at least 0."""
        labels, offsets = self.ideal(max(self._ideals, default=1))
        maxima, judged = np.zeros(len(self)), np.diff(offsets) > 0
        maxima[judged] = labels[offsets[:-1][judged]]
        return _read_only(np.maximum(maxima, 0.0))

    def relevant_counts(self, level: float) -> Floats:
        """Return the number of documents of each query with a label of at least `level`.

        Parameters
        ----------
        level : float
            The smallest relevant label.

        Returns
        -------
        ndarray of shape (n_queries,)
            The numbers, as floats, read-only.
        """
        if level not in self._relevant:
            counts = np.empty(len(self))
            count_relevant(self.labels, self.offsets, level, counts)
            self._relevant[level] = _read_only(counts)
        return self._relevant[level]

    # --- conversions

    def full_order(self, seed: int = 0) -> Truth:
        """Return a full order: labels n-1 .. 0 without ties.

        Documents of equal label are put in a random order that depends on the seed and the query
        id alone, so adding or removing other queries changes nothing.

        Parameters
        ----------
        seed : int, default 0
            Seed of the order of equal labels.

        Returns
        -------
        Truth
            A truth of kind "full order".

        Examples
        --------
        >>> import firstpage as fp
        >>> fp.Truth.from_labels([1, 5, 3]).full_order().labels.tolist()
        [0.0, 2.0, 1.0]
        """
        positions = self._positions(seed)
        return self._with(np.repeat(self.lengths, self.lengths) - 1 - positions)

    def top_k(self, k: int, seed: int = 0, min_grade: float | None = None) -> Truth:
        """Return a top-k truth: the first k documents labeled k .. 1, the others 0.

        Parameters
        ----------
        k : int
            The number of ordered documents, at least 1.
        seed : int, default 0
            Seed of the order of equal labels, as in `full_order`.
        min_grade : float, optional
            Documents with a smaller label are never among the top k, even if fewer than k remain.

        Returns
        -------
        Truth
            A truth of kind "top-k".

        Raises
        ------
        DataError
            If k is not a positive integer, or this is a top-k truth of a smaller depth.
        """
        if not isinstance(k, (int, np.integer)) or not 1 <= k <= MAX_K:
            raise DataError(f"k must be an integer of at least 1; got {k}.")
        known = self.top_k_depth
        # Labels up to 2, 1, 0, 0 may be grades, of which a deeper top k can be drawn.
        if known is not None and known > 2 and (self.depth < np.minimum(k, self.lengths)).any():
            raise DataError(
                f"this truth orders only the top {known}; a top {k} cannot be derived from it."
            )
        labels = np.maximum(k - self._positions(seed), 0).astype(np.float64)
        if min_grade is not None:
            labels[self.labels < min_grade] = 0
        return self._with(labels)

    def binary(self, level: float = 1) -> Truth:
        """Return binary labels: 1 for labels of at least `level`, else 0.

        Parameters
        ----------
        level : float, default 1
            The smallest relevant label.

        Returns
        -------
        Truth
            Labels 0 and 1.
        """
        return self._with((self.labels >= level).astype(np.float64))

    def pairs(self, which: Literal["all", "cross"] = "all") -> tuple[Ints, Ints]:
        """Return the row numbers of all preferences between documents of one query.

        Parameters
        ----------
        which : {"all", "cross"}, default "all"
            "all" gives every pair with different labels; "cross" only the pairs of a document
            with a positive label and one without, FocusedRank's T x F.

        Returns
        -------
        better, worse : ndarray of int
            The rows of the preferred documents and of the others.

        Raises
        ------
        DataError
            If `which` is neither.

        Examples
        --------
        >>> import firstpage as fp
        >>> better, worse = fp.Truth.from_labels([2, 0, 1]).pairs()
        >>> better.tolist(), worse.tolist()
        ([0, 0, 2], [1, 2, 1])
        """
        if which not in ("all", "cross"):
            raise DataError(f"which must be 'all' or 'cross'; got {which!r}.")
        better, worse = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for lo, hi in self._bounds():
            y = self.labels[lo:hi]
            wins = y[:, None] > y[None, :]
            if which == "cross":
                wins &= (y[:, None] > 0) & (y[None, :] <= 0)
            u, v = np.nonzero(wins)
            better.append(u + lo)
            worse.append(v + lo)
        return np.concatenate(better), np.concatenate(worse)

    def _with(self, labels: Any) -> Truth:
        return Truth(np.asarray(labels, np.float64), self.offsets, self.queries)

    def _bounds(self) -> list[tuple[int, int]]:
        ends = self.offsets.tolist()
        return list(itertools.pairwise(ends))

    def _positions(self, seed: int) -> Ints:
        """Return the position of each document in its query, from 0; ties in seeded order."""
        order, keys = self.by_label[0].copy(), self.by_label[1]
        order_ties_by_key(keys, self.offsets, order, random_keys(self.queries, self.offsets, seed))
        positions = np.empty(len(order), np.int64)
        positions[order] = np.arange(len(order)) - np.repeat(self.offsets[:-1], self.lengths)
        return positions


def _read_only(array: Shared) -> Shared:
    """Return an array that cannot be changed: it is computed once, and shared."""
    array.setflags(write=False)
    return array


def random_keys(queries: Ids, offsets: Ints, seed: int) -> Floats:
    """Return a number in [0, 1) per document, derived from the seed and its query's id."""
    words = np.empty(int(offsets[-1]), np.uint64)
    salt = np.uint64(int(seed) * int(STEP) % 2**64)  # neighboring seeds differ in every bit
    random_words(queries.hashes ^ salt, offsets, words)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
