"""Ranked lists: what measures read, sorted no further than they need.

Ranked lists hold, per query, the labels of the ranked documents in ranked order, the runs of tied
scores, and the labels of all judged documents (the pool), ranked or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.core import Advice, Array, Bools, DataError, Floats, Ints, MeasureError
from firstpage.core.kernels import number_ties, order_ties_by_id, order_ties_by_key, tie_blocks
from firstpage.core.kernels.measures import binary
from firstpage.data import (
    Ids,
    Truth,
    labels_by_score,
    offsets_from_lengths,
    random_keys,
    sort_groups,
    top_rows,
)
from firstpage.data.formats import DiversityQrels
from firstpage.evaluation.measures.convention import Convention

ALL = np.iinfo(np.int64).max // 4  # a cut-off that includes every document
MAX_COUNTED = 8  # mean number of relevant documents up to which ranks are counted, not sorted


@dataclass(frozen=True)
class Needs:
    """What a measure reads of a ranking, so that no more than that is sorted.

    `a | b` is what both need.  The default reads no rank at all.

    Attributes
    ----------
    depth : int
        Number of first ranks whose documents are read; `ALL` for the entire list.
    levels : frozenset of float
        Smallest relevant labels for which the ranks of all relevant documents are read.
    first_levels : frozenset of float
        Smallest relevant labels for which the rank of the first relevant document is read.

    Examples
    --------
    >>> import firstpage as fp
    >>> (fp.extend.Needs(depth=10) | fp.extend.Needs(depth=5)).depth
    10
    """

    depth: int = 0
    levels: frozenset[float] = frozenset()
    first_levels: frozenset[float] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            max(self.depth, other.depth),
            self.levels | other.levels,
            self.first_levels | other.first_levels,
        )


EVERYTHING = Needs(depth=ALL)


def kernel_cutoff(cutoff: int | None) -> int:
    """Return a cut-off as kernels take it: an integer, `ALL` for None."""
    return ALL if cutoff is None else min(int(cutoff), ALL)


def first_ranks(cutoff: int | None) -> Needs:
    """Return the needs of a measure that reads the ranks up to its cut-off, None meaning all."""
    return Needs(depth=kernel_cutoff(cutoff))


def relevant_ranks(level: float) -> Needs:
    """Return the needs of a measure that reads the ranks of all relevant documents."""
    return Needs(levels=frozenset([level]))


@dataclass(frozen=True, eq=False)
class UnsortedLists:
    """The retrieved documents of each query in any order: scores, labels and offsets."""

    scores: Floats
    labels: Floats
    offsets: Ints


@dataclass(frozen=True, eq=False)
class RankedLists:
    """The ranked documents of each query, with the judged documents to compare them with.

    Attributes
    ----------
    judged : Truth
        The judged documents of each query, ranked or not: the pool.
    queries : Ids
        Query ids.
    offsets : array of int
        Query q has the ranked documents offsets[q]:offsets[q + 1].
    labels : array of float
        Labels in ranked order; NaN for unjudged documents.
    tie_sizes : array of int
        At the first document of each run of equal scores, the length of that run.
    longest_tie : int
        The length of the longest run of equal scores.
    pool_offsets : array of int
        Query q has the judged documents pool_offsets[q]:pool_offsets[q + 1].
    pool : array of float
        Labels of the judged documents, ranked or not.
    pool_rows : array of int, optional
        The row of each ranked document in the pool; -1 for unjudged ones, -2 for those that were
        in the judgments with a grade that counts as unjudged.  None: the ranked documents are
        exactly the pool.
    depth : int, default ALL
        Number of first ranks that the lists contain, with all documents tied with one of them;
        `ALL` if they are complete.
    unsorted : UnsortedLists, optional
        All retrieved documents, where the lists are not complete.
    subtopics : DiversityQrels, optional
        Judgments of subtopics; labels are then rows of its documents.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import firstpage as fp
    >>> @dataclass(frozen=True)
    ... class TopLabel(fp.extend.Measure):
    ...     def values(self, lists, convention):
    ...         return lists.labels[lists.offsets[:-1]]
    >>> fp.evaluate([1, 2], [0, 3], qid=["q", "q"], measures=TopLabel()).values.tolist()
    [[3.0]]
    """

    judged: Truth
    offsets: Ints
    labels: Floats
    tie_sizes: Ints
    longest_tie: int
    pool_rows: Ints | None
    depth: int = ALL
    unsorted: UnsortedLists | None = None
    subtopics: DiversityQrels | None = None
    _ties: dict[tuple[float, bool, bool, bool], tuple[Ints, Ints]] = field(
        init=False, repr=False, default_factory=dict
    )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"RankedLists({len(self)} queries, {len(self.labels)} documents)"

    @property
    def queries(self) -> Ids:
        """The query ids."""
        return self.judged.queries

    @property
    def pool(self) -> Floats:
        """The labels of the judged documents, ranked or not."""
        return self.judged.labels

    @property
    def pool_offsets(self) -> Ints:
        """Query q has the judged documents pool_offsets[q]:pool_offsets[q + 1]."""
        return self.judged.offsets

    @cached_property
    def lengths(self) -> Ints:
        """The number of retrieved documents per query."""
        return np.diff(self.offsets if self.unsorted is None else self.unsorted.offsets)

    @property
    def ranked(self) -> tuple[Floats, Ints, Ints]:
        """The labels in ranked order, the sizes of ties and the offsets, as kernels take them."""
        return self.labels, self.tie_sizes, self.offsets

    def retrieved_counts(self, level: float) -> Floats:
        """Return the number of retrieved documents with a label of at least `level`.

        Parameters
        ----------
        level : float
            Smallest relevant label.

        Returns
        -------
        array of float
            One number per query.
        """
        lists = self if self.unsorted is None else self.unsorted
        out = np.empty(len(self))
        binary.count_relevant(lists.labels, lists.offsets, level, out)
        return out

    def relevant_ties(
        self, level: float, depth: int, first_only: bool = False, judged_only: bool = False
    ) -> tuple[Ints, Ints]:
        """Return the ties that contain relevant documents, and their ends per query.

        Parameters
        ----------
        level : float
            Smallest relevant label.
        depth : int
            Number of first ranks that matter.
        first_only : bool, default False
            Whether only the first such tie of a query is needed.
        judged_only : bool, default False
            Whether unjudged documents are left out.

        Returns
        -------
        ties : array of int of shape (n_ties, 3)
            Documents above the tie, its documents, and its relevant documents.  A document without
            a tie is one of size 1.
        ends : array of int
            The number of ties up to the end of each query.
        """
        judged_only = judged_only and self.pool_rows is not None
        listed = self.unsorted is None or depth <= self.depth
        key = (level, listed, first_only and not listed, judged_only)
        if key not in self._ties:
            self._ties[key] = self._find_ties(*key)
        return self._ties[key]

    def _find_ties(
        self, level: float, listed: bool, first_only: bool, judged_only: bool
    ) -> tuple[Ints, Ints]:
        ends = np.empty(len(self), np.int64)
        if listed:
            ties = np.empty((len(self.labels), 3), np.int64)
            binary.ties_in_lists(
                labels=self.labels,
                tie_sizes=self.tie_sizes,
                offsets=self.offsets,
                level=level,
                judged_only=int(judged_only),
                ties=ties,
                ends=ends,
            )
            return ties, ends
        assert self.unsorted is not None
        scores, labels, offsets = self.unsorted.scores, self.unsorted.labels, self.unsorted.offsets
        if first_only:
            ties = np.empty((len(self), 3), np.int64)
            listed_ties, listed_ends = self.relevant_ties(level, self.depth)
            binary.first_ties(
                scores=scores,
                labels=labels,
                offsets=offsets,
                level=level,
                listed=listed_ties,
                listed_ends=listed_ends,
                ties=ties,
                ends=ends,
            )
        else:
            ties = np.empty((len(labels), 3), np.int64)
            workspace = np.empty(int(self.lengths.max(initial=0)) + 1)
            binary.ties_by_counting(
                scores=scores,
                labels=labels,
                offsets=offsets,
                level=level,
                judged_only=int(judged_only),
                relevant_scores=workspace,
                ties=ties,
                ends=ends,
            )
        return ties, ends

    def relevant_counts(self, level: float) -> Floats:
        """Return the number of judged documents with a label of at least `level`.

        Parameters
        ----------
        level : float
            Smallest relevant label.

        Returns
        -------
        array of float
            One number per query.
        """
        return self.judged.relevant_counts(level)

    def without_relevant(self, level: float) -> Bools:
        """Return whether a query has no judged document with a label of at least `level`.

        Parameters
        ----------
        level : float
            Smallest relevant label.

        Returns
        -------
        array of bool
            One per query.
        """
        return np.asarray(self.relevant_counts(level) == 0)

    def select(self, queries: Bools) -> RankedLists:
        """Return the lists of the selected queries.

        Parameters
        ----------
        queries : array of bool
            Whether to select each query.

        Returns
        -------
        RankedLists
            Their lists.
        """
        unsorted = self.unsorted
        offsets, rows = _select(self.offsets, queries)
        pool_offsets, pool_selected = _select(self.pool_offsets, queries)
        pool_rows = self.pool_rows
        if unsorted is not None:
            list_offsets, list_rows = _select(unsorted.offsets, queries)
            unsorted = UnsortedLists(
                unsorted.scores[list_rows], unsorted.labels[list_rows], list_offsets
            )
        elif pool_rows is not None:
            new_row = np.cumsum(pool_selected) - 1
            pool_rows = pool_rows[rows]
            is_judged = pool_rows >= 0
            pool_rows[is_judged] = new_row[pool_rows[is_judged]]
        judged = Truth(
            self.pool[pool_selected], pool_offsets, self.queries[np.flatnonzero(queries)]
        )
        return RankedLists(
            judged,
            offsets,
            self.labels[rows],
            self.tie_sizes[rows],
            self.longest_tie,
            pool_rows,
            self.depth,
            unsorted,
            self.subtopics,
        )

    @property
    def judged_counts(self) -> Floats:
        """The number of judged documents per query."""
        return np.diff(self.pool_offsets).astype(np.float64)

    @property
    def max_labels(self) -> Floats:
        """The greatest label of each query's pool, at least 0."""
        return self.judged.max_labels

    def ideal(self, depth: int) -> tuple[Floats, Ints]:
        """Return the first `depth` labels of each pool in descending order, and their offsets.

        Parameters
        ----------
        depth : int
            Number of labels per query that are needed; there may be more.

        Returns
        -------
        labels : array of float
            The labels of the ideal lists.
        offsets : array of int
            Query q has the labels offsets[q]:offsets[q + 1].
        """
        return self.judged.ideal(depth)

    @cached_property
    def condensed(self) -> RankedLists:
        """The same lists without unjudged documents."""
        assert self.unsorted is None, "the lists are not complete"
        if self.pool_rows is None:
            return self
        is_judged = ~np.isnan(self.labels)
        ties = np.empty(len(self.labels), np.int64)
        number_ties(self.tie_sizes, self.offsets, ties)
        offsets = offsets_from_lengths(is_judged)[self.offsets]
        tie_sizes = np.ones(int(offsets[-1]), np.int64)
        longest = tie_blocks(-ties[is_judged].astype(np.float64), offsets, tie_sizes)
        return replace(
            self,
            offsets=offsets,
            labels=self.labels[is_judged],
            tie_sizes=tie_sizes,
            longest_tie=longest,
            pool_rows=self.pool_rows[is_judged],
        )

    @cached_property
    def judged_only(self) -> RankedLists:
        """The same lists without unjudged documents.

        Judged documents that were not retrieved form one tie at the end of the list.
        """
        assert self.unsorted is None, "the lists are not complete"
        if self.pool_rows is None:
            return self
        retrieved = np.flatnonzero(self.pool_rows >= 0)
        missing = np.ones(len(self.pool), bool)
        missing[self.pool_rows[retrieved]] = False
        tie = np.empty(len(self.labels), np.int64)
        number_ties(self.tie_sizes, self.offsets, tie)
        numbers = np.arange(len(self))
        query = np.concatenate(
            [
                np.repeat(numbers, self.lengths)[retrieved],
                np.repeat(numbers, np.diff(self.pool_offsets))[missing],
            ]
        )
        labels = np.concatenate([self.labels[retrieved], self.pool[missing]])
        last = np.full(int(missing.sum()), len(tie))
        keys = -np.concatenate([tie[retrieved], last]).astype(np.float64)
        order = np.argsort(query, kind="stable")
        tie_sizes = np.ones(len(labels), np.int64)
        longest = tie_blocks(keys[order], self.pool_offsets, tie_sizes)
        return RankedLists(self.judged, self.pool_offsets, labels[order], tie_sizes, longest, None)


def _select(offsets: Ints, queries: Bools) -> tuple[Ints, Bools]:
    """Return the offsets of the selected queries, and whether each row is one of theirs."""
    lengths = np.diff(offsets)
    return offsets_from_lengths(lengths[queries]), np.repeat(queries, lengths)


def kernel_values(
    kernel: Callable[..., object], ranked: tuple[Array, Ints, Ints], **arguments: Any
) -> Floats:
    """Return one value per list, which a kernel computes from numbers in ranked order and ties."""
    out = np.empty(len(ranked[2]) - 1)
    kernel(*ranked, **arguments, out=out)
    return out


@dataclass(frozen=True, eq=False)
class Retrieved:
    """The documents that a system retrieved, where they are not exactly the judged ones.

    Attributes
    ----------
    offsets : array of int
        Query q has the documents offsets[q]:offsets[q + 1].
    pool_rows : array of int
        The row of each document among the judged ones; -1 for unjudged ones, -2 for those that
        were in the judgments with a grade that counts as unjudged.
    """

    offsets: Ints
    pool_rows: Ints

    def labels(self, judged: Truth) -> Floats:
        """Return the label of each document, NaN for unjudged ones."""
        labels: Floats = np.append(judged.labels, [np.nan, np.nan])[self.pool_rows]  # -1, -2: NaN
        return labels


def rank_lists(
    scores: Floats,
    judged: Truth,
    convention: Convention,
    docids: Ids | None = None,
    retrieved: Retrieved | None = None,
    needs: Needs = EVERYTHING,
) -> RankedLists:
    """Return the documents of each query in descending order of score, ties by the convention.

    The scores are those of the `retrieved` documents, of the judged ones if that is None.  No more
    ranks are sorted than measures with these `needs` read.  Queries without relevant documents are
    left out if the convention skips them.
    """
    labels, offsets, pool_rows = judged.labels, judged.offsets, None
    if retrieved is not None:
        labels = retrieved.labels(judged)
        offsets, pool_rows = retrieved.offsets, retrieved.pool_rows
    _check_scores(scores, offsets, judged.queries)
    if convention.single:
        with np.errstate(over="ignore"):
            scores = scores.astype(np.float32).astype(np.float64)
    documents = UnsortedLists(scores, labels, offsets)
    lists = None
    if convention.ties in ("average", "file") and convention.depth is None:
        depth = _depth_to_sort(needs, labels, offsets, convention)
        if retrieved is None or depth < ALL:
            lists = _rank_labels(documents, judged, convention, pool_rows, depth)
    if lists is None:
        lists = _rank_documents(documents, judged, convention, pool_rows, docids)
    if convention.without_relevant != "skip":
        return lists
    return lists.select(~lists.without_relevant(convention.rel))


def _rank_documents(
    unsorted: UnsortedLists,
    judged: Truth,
    convention: Convention,
    pool_rows: Ints | None,
    docids: Ids | None,
) -> RankedLists:
    """Rank lists completely, with the identity of documents."""
    labels, offsets, queries = unsorted.labels, unsorted.offsets, judged.queries
    order, keys = sort_groups(unsorted.scores, offsets)
    if convention.ties == "docid":
        if docids is None:
            raise MeasureError(
                "ties by document id need document ids, and these lists have none.",
                Advice("Choose another rule of the convention, such as {}.", "ties", "average"),
            )
        workspace = np.empty(len(order), np.int64)
        order_ties_by_id(keys, offsets, order, docids.data, docids.starts, docids.ends, workspace)
    elif convention.ties == "shuffle":
        order_ties_by_key(keys, offsets, order, random_keys(queries, offsets, convention.seed))
    elif convention.ties == "worst":
        order_ties_by_key(keys, offsets, order, np.nan_to_num(labels, nan=-np.inf))
    if convention.depth is not None:
        order, keys, offsets = _truncate(order, keys, offsets, queries, convention)
        pool_rows = order if pool_rows is None else pool_rows[order]
    elif pool_rows is not None:
        pool_rows = pool_rows[order]
    tie_sizes, longest = np.ones(len(keys), np.int64), 1
    if convention.ties == "average":
        longest = tie_blocks(keys, offsets, tie_sizes)
    return RankedLists(judged, offsets, labels[order], tie_sizes, longest, pool_rows)


def _depth_to_sort(needs: Needs, labels: Floats, offsets: Ints, convention: Convention) -> int:
    """Return the number of first ranks to sort; `ALL` where that is cheaper, or needed."""
    lengths = np.diff(offsets)
    if needs.depth >= lengths.max(initial=0):
        return ALL
    if needs.levels or needs.first_levels:
        if convention.ties != "average":
            return ALL  # the ranks of relevant documents depend on the order inside ties
        # Counting compares every relevant document with all documents of its query.
        mean_length = float(lengths @ lengths) / len(labels)
        sample = labels[: 1 << 16]
        for level in needs.levels:
            if float((sample >= level).mean()) * mean_length > MAX_COUNTED:
                return ALL
    return needs.depth


def _rank_labels(
    unsorted: UnsortedLists,
    judged: Truth,
    convention: Convention,
    pool_rows: Ints | None,
    depth: int,
) -> RankedLists:
    """Rank lists for which labels are enough, without the identity of documents."""
    scores, labels, offsets = unsorted.scores, unsorted.labels, unsorted.offsets
    if depth < ALL:
        rows, offsets = top_rows(scores, offsets, depth) if depth else _no_rows(offsets)
        scores, labels = scores[rows], labels[rows]
    ordered, tie_sizes, longest = labels_by_score(scores, labels, offsets)
    if convention.ties == "file":
        tie_sizes[:], longest = 1, 1
    return RankedLists(
        judged,
        offsets,
        ordered,
        tie_sizes,
        longest,
        pool_rows,
        depth,
        unsorted if depth < ALL else None,
    )


def _no_rows(offsets: Ints) -> tuple[Ints, Ints]:
    """Return no row of any query, and the offsets of that."""
    return np.empty(0, np.int64), np.zeros_like(offsets)


def _truncate(
    order: Ints, keys: Floats, offsets: Ints, queries: Ids, convention: Convention
) -> tuple[Ints, Floats, Ints]:
    """Return the first `depth` documents; a tie across that depth is broken at random, by seed."""
    assert convention.depth is not None
    if convention.ties == "average":
        order_ties_by_key(keys, offsets, order, random_keys(queries, offsets, convention.seed))
    position = np.arange(len(order)) - np.repeat(offsets[:-1], np.diff(offsets))
    selected = position < convention.depth
    lengths = np.minimum(np.diff(offsets), convention.depth)
    return order[selected], keys[selected], offsets_from_lengths(lengths)


def _check_scores(scores: Floats, offsets: Ints, queries: Ids) -> None:
    with np.errstate(all="ignore"):
        if not np.isnan(scores.sum()):  # a NaN makes the sum one
            return
    bad = np.isnan(scores)
    if bad.any():
        row = int(np.argmax(bad))
        q = int(np.searchsorted(offsets, row, side="right")) - 1
        raise DataError(
            f"the score of document {row - int(offsets[q]) + 1} in query {queries[q]!r} (row "
            f"{row + 1}) is not a number (NaN); a document without a score cannot be ranked."
        )
