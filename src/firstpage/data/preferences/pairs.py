"""Preferences between two documents of a query: one vote per row, from one voter or from many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from firstpage.core import Bools, DataError, Floats, Ints
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.joins import join_documents, match_queries
from firstpage.data.preferences.preferences import MAX_WEIGHT
from firstpage.data.runs import Documents
from firstpage.data.truth import Truth

if TYPE_CHECKING:
    from firstpage.data.dataset import Dataset

EXAMPLES = 2  # unmatched pairs that a report names


@dataclass(frozen=True, eq=False)
class PreferencePairs:
    """Votes on pairs of documents: for a query, one document was preferred to another.

    Votes need not be complete or consistent: pairs may lack votes, have votes of many voters, and
    contradict each other.  `len(pairs)` is the number of votes.  Use `PreferencePairs.from_arrays`
    or `read_pairs` to build one.

    Parameters
    ----------
    queries : Ids
        The id of each query that has votes.
    offsets : ndarray of shape (n_queries + 1,)
        The documents of query `q` are `docids[offsets[q]:offsets[q + 1]]`.
    docids : Ids
        The ids of the documents that are compared, query after query.
    preferred, other : ndarray of shape (n_votes,)
        The preferred document of each vote and the other one, as indices of `docids`.
    tied : ndarray of bool of shape (n_votes,)
        Whether the vote is that neither is better.
    weight : ndarray of shape (n_votes,)
        The weight of each vote.
    voter : Ids, optional
        Who voted.
    source : str, default "the pairs"
        What messages call the data.

    Raises
    ------
    DataError
        If shapes do not agree, a weight is not a number of at least 0, or a document is compared
        with itself or with one of another query.

    See Also
    --------
    firstpage.read_pairs : Read votes from a file.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.PreferencePairs.from_arrays(["tea"] * 3, ["a", "b", "a"], ["b", "a", "c"])
    PreferencePairs(the pairs: 3 votes on 2 pairs of 3 documents, 1 query)
    """

    queries: Ids
    offsets: Ints
    docids: Ids
    preferred: Ints
    other: Ints
    tied: Bools
    weight: Floats
    voter: Ids | None = None
    source: str = "the pairs"

    def __post_init__(self) -> None:
        columns = (self.preferred, self.other, self.tied, self.weight)
        sizes = {len(column) for column in columns} | ({len(self.voter)} if self.voter else set())
        if len(sizes) > 1:
            raise DataError(f"{self.source}: the columns of votes must be equally long.")
        for column in (self.preferred, self.other):
            if len(column) and not 0 <= column.min() <= column.max() < len(self.docids):
                raise DataError(f"{self.source}: a vote refers to a document that is not listed.")
        bad = np.flatnonzero(~((self.weight >= 0) & (self.weight <= MAX_WEIGHT)))
        if len(bad):
            raise DataError(
                f"{self.source}: the weight of vote {bad[0] + 1} is {self.weight[bad[0]]:g}; it "
                f"must be a number from 0 to {MAX_WEIGHT:g}."
            )
        same = np.flatnonzero(self.preferred == self.other)
        if len(same):
            name = self.docids[int(self.preferred[same[0]])]
            raise DataError(
                f"{self.source}: vote {same[0] + 1} compares document {name!r} with itself."
            )
        crossing = np.flatnonzero(self.query_of(self.preferred) != self.query_of(self.other))
        if len(crossing):
            raise DataError(
                f"{self.source}: vote {crossing[0] + 1} compares documents of two queries."
            )

    @classmethod
    def from_arrays(
        cls,
        query: Iterable[object],
        preferred: Iterable[object],
        other: Iterable[object],
        *,
        weight: Any = None,
        tied: Any = None,
        voter: Iterable[object] | None = None,
        source: str = "the pairs",
    ) -> PreferencePairs:
        """Return the votes of columns with one entry per vote.

        Parameters
        ----------
        query : sequence
            The query id of each vote.
        preferred, other : sequence
            The ids of the preferred document and of the other one.
        weight : array_like, optional
            The weights; 1 by default.
        tied : array_like of bool, optional
            Whether neither is better; False by default.
        voter : sequence, optional
            Who voted.
        source : str, default "the pairs"
            What messages call the data.

        Returns
        -------
        PreferencePairs
            The votes.

        Raises
        ------
        DataError
            As described above.

        Examples
        --------
        >>> import firstpage as fp
        >>> pairs = fp.PreferencePairs.from_arrays(["q", "q"], ["a", "b"], ["b", "c"])
        >>> list(pairs.docids)
        ['a', 'b', 'c']
        """
        columns = [list(Ids.from_values(column)) for column in (query, preferred, other)]
        if len(set(map(len, columns))) > 1:
            raise DataError(f"{source}: the columns of votes must be equally long.")
        votes = len(columns[0])
        documents: dict[str, dict[str, int]] = {}
        sides = np.empty((2, votes), np.int64)
        for vote, (name, *pair) in enumerate(zip(*columns, strict=True)):
            of_query = documents.setdefault(name, {})
            for side, document in enumerate(pair):
                sides[side, vote] = of_query.setdefault(document, len(of_query))
        offsets = offsets_from_lengths(len(each) for each in documents.values())
        numbers = {name: number for number, name in enumerate(documents)}
        starts = offsets[np.fromiter((numbers[name] for name in columns[0]), np.int64, votes)]
        return cls(
            Ids.from_values(list(documents)),
            offsets,
            Ids.from_values([document for each in documents.values() for document in each]),
            starts + sides[0],
            starts + sides[1],
            np.zeros(votes, bool) if tied is None else np.asarray(tied, bool),
            np.ones(votes) if weight is None else _numbers(weight, source),
            None if voter is None else Ids.from_values(voter),
            source,
        )

    def __len__(self) -> int:
        """Return the number of votes."""
        return len(self.weight)

    def __repr__(self) -> str:
        pairs = np.sort(np.stack([self.preferred, self.other], axis=1), axis=1)
        count = len(np.unique(pairs, axis=0))
        voters = f", {self.n_voters} voters" if self.voter is not None else ""
        return (
            f"PreferencePairs({self.source}: {_count(len(self), 'vote')} on "
            f"{_count(count, 'pair')} of {_count(len(self.docids), 'document')}, "
            f"{_count(len(self.queries), 'query', 'queries')}{voters})"
        )

    @property
    def n_voters(self) -> int:
        """The number of voters; 0 if they are not known."""
        return 0 if self.voter is None else len(set(self.voter))

    def query_of(self, documents: Ints) -> Ints:
        """Return the index of the query of documents.

        Parameters
        ----------
        documents : ndarray of int
            Indices of `docids`.

        Returns
        -------
        ndarray of int
            Indices of `queries`.
        """
        return np.searchsorted(self.offsets, documents, side="right") - 1

    def __getitem__(self, votes: Any) -> PreferencePairs:
        """Return some of the votes: a slice, a mask, or their numbers."""
        rows = np.arange(len(self))[votes]
        voter = None if self.voter is None else self.voter[rows]
        return replace(
            self,
            preferred=self.preferred[rows],
            other=self.other[rows],
            tied=self.tied[rows],
            weight=self.weight[rows],
            voter=voter,
        )

    def of_queries(self, *queries: Ids) -> PreferencePairs:
        """Return the votes on documents of some queries.

        Parameters
        ----------
        *queries : Ids
            The ids of the queries, in one column or in several.

        Returns
        -------
        PreferencePairs
            The votes on their documents.
        """
        wanted = np.zeros(len(self.queries), bool)
        for each in queries:
            wanted |= match_queries(self.queries, each) >= 0
        return self[wanted[self.query_of(self.preferred)]]

    def rows_in(self, data: Dataset) -> tuple[Ints, Ints]:
        """Return the rows in a dataset of the preferred and the other document of each vote.

        Parameters
        ----------
        data : Dataset
            Documents with ids.

        Returns
        -------
        preferred, other : ndarray of int
            Row numbers; -1 where the dataset lacks the document.

        Raises
        ------
        DataError
            If the dataset has no document ids, or the same one twice in a query.
        """
        if data.docids is None:
            raise DataError(
                f"{data.source}: has no document ids, by which pairs are joined; add them (LETOR: "
                "# docid = .., tables: a column docid)."
            )
        partner = match_queries(self.queries, data.queries)
        rows = join_documents(cast("Documents", self), cast("Documents", data), partner)
        return rows[self.preferred], rows[self.other]

    def to_rows(self, data: Dataset) -> tuple[RowPairs, Bools]:
        """Return the votes on documents of a dataset, and which votes these are.

        Parameters
        ----------
        data : Dataset
            Documents with ids.

        Returns
        -------
        pairs : RowPairs
            The pairs of rows, with the summed weights of their votes.
        matched : ndarray of bool
            One entry per vote.

        Raises
        ------
        DataError
            If the dataset has no document ids.
        """
        first, second = self.rows_in(data)
        matched = (first >= 0) & (second >= 0)
        pairs = RowPairs.from_votes(
            data.offsets, first[matched], second[matched], self.weight[matched], self.tied[matched]
        )
        return pairs, matched

    def unmatched(self, matched: Bools, names: Sequence[str]) -> str | None:
        """Return one line on the votes that data do not match; None if there are none.

        Parameters
        ----------
        matched : ndarray of bool
            Which votes match.
        names : sequence of str
            What to call the data.

        Returns
        -------
        str or None
            The number of votes, with examples.

        Raises
        ------
        DataError
            If no vote matches.
        """
        missing = np.flatnonzero(~matched)
        sources = " and ".join(dict.fromkeys(names))
        if not len(self):
            raise DataError(f"{self.source}: contains no pairs.")
        examples = "; ".join(self._name(int(vote)) for vote in missing[:EXAMPLES])
        if len(missing) == len(self):
            raise DataError(
                f"{self.source}: none of its {len(self):,} pairs is of documents of {sources}, "
                f"such as {examples}."
            )
        if not len(missing):
            return None
        return (
            f"{self.source}: {len(missing):,} of {len(self):,} pairs are left out, since {sources} "
            f"has no such documents: {examples}"
            f"{'; and others' if len(missing) > EXAMPLES else ''}."
        )

    def _name(self, vote: int) -> str:
        first, second = int(self.preferred[vote]), int(self.other[vote])
        query = self.queries[int(self.query_of(self.preferred[vote : vote + 1])[0])]
        return f"{self.docids[first]!r} and {self.docids[second]!r} of query {query!r}"


def _numbers(values: Any, source: str) -> Floats:
    try:
        return np.array(values, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{source}: the weights of votes must be numbers.") from None


def _count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


@dataclass(frozen=True, eq=False)
class RowPairs:
    """The votes on pairs of rows, summed: each pair once, sorted by query and rows.

    Attributes
    ----------
    offsets : ndarray of shape (n_queries + 1,)
        Query `q` has the pairs `offsets[q]:offsets[q + 1]`.
    left, right : ndarray of shape (n_pairs,)
        The rows of the two documents, counted inside their query; left is the smaller one.
    left_weight, right_weight, tie_weight : ndarray of shape (n_pairs,)
        The summed weight of the votes for the left one, for the right one, and for neither.
    """

    offsets: Ints
    left: Ints
    right: Ints
    left_weight: Floats
    right_weight: Floats
    tie_weight: Floats

    @classmethod
    def from_votes(
        cls, offsets: Ints, preferred: Ints, other: Ints, weight: Floats, tied: Bools
    ) -> RowPairs:
        """Return the sums of votes on rows of data whose queries begin at `offsets`."""
        positive = weight > 0
        preferred, other = preferred[positive], other[positive]
        weight, tied = weight[positive], tied[positive]
        left, right = np.minimum(preferred, other), np.maximum(preferred, other)
        rows = max(int(offsets[-1]), 1)
        codes, pair = np.unique(left * rows + right, return_inverse=True)

        def summed(which: Bools) -> Floats:
            sums: Floats = np.bincount(pair[which], weight[which], len(codes)).astype(np.float64)
            return sums

        firsts, seconds = codes // rows, codes % rows
        starts = np.searchsorted(firsts, offsets).astype(np.int64)
        base = np.repeat(offsets[:-1], np.diff(starts))
        return cls(
            starts,
            firsts - base,
            seconds - base,
            summed(~tied & (preferred == left)),
            summed(~tied & (preferred == right)),
            summed(tied),
        )

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.left)

    def votes_for(self) -> tuple[Floats, Floats]:
        """Return the weights for the left and for the right one; a tie is half a vote for each."""
        return self.left_weight + 0.5 * self.tie_weight, self.right_weight + 0.5 * self.tie_weight

    def per_query(self) -> Ints:
        """Return the number of pairs of each query."""
        return np.diff(self.offsets)

    def take(self, queries: Bools) -> RowPairs:
        """Return the pairs of some queries, as those of data with these queries only."""
        rows = np.repeat(queries, self.per_query())
        _, *columns = vars(self).values()
        offsets = offsets_from_lengths(self.per_query()[queries])
        return RowPairs(offsets, *(column[rows] for column in columns))

    def fingerprint(self) -> dict[str, Any]:
        """Return what a model file records about the pairs."""
        columns = vars(self).values()  # in the order of the fields
        ties = float(self.tie_weight.sum())
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(c).tobytes() for c in columns))
        return {
            "pairs": len(self),
            "queries": int((self.per_query() > 0).sum()),
            "votes": float(self.left_weight.sum() + self.right_weight.sum()) + ties,
            "ties": ties,
            "sha256": digest.hexdigest(),
        }


@dataclass(frozen=True, eq=False)
class PairTruth(Truth):
    """A truth that has votes on pairs of documents besides its labels.

    Losses of labels read the labels; losses of pairs read the pairs.
    """

    votes: RowPairs

    @classmethod
    def of(cls, truth: Truth, pairs: RowPairs) -> PairTruth:
        """Return a truth with pairs of its documents."""
        return cls(truth.labels, truth.offsets, truth.queries, pairs)
