"""Pages of a log as models count them: equal pages once, and pairs of query and document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.clicks.sessions import Sessions
from firstpage.core import Array, Bools, DataError, Floats, Ints, Table, Tabular, warn
from firstpage.core.kernels import click_models

MAX_RANK = 1000  # of models with a parameter per rank and rank of the last click
SHOWN_PAIRS = 20


def totals(index: Array, weights: Array, size: int) -> Floats:
    """Return the sum of the weights of each index below `size`."""
    return np.bincount(index, weights, size).astype(np.float64)


def last_clicks(offsets: Ints, rank: Array, clicked: Bools) -> Ints:
    """Return the rank of the last click above each impression on its page; 0 if there is none."""
    above = np.empty(len(rank), np.int64)
    click_models.last_clicks(offsets, rank, clicked, above)
    return above


def down_to_last_click(offsets: Ints, clicked: Bools) -> tuple[Bools, Bools]:
    """Return which impressions a click follows or is, or none is on the page; and last clicks."""
    page = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    rows, clicks = np.arange(len(clicked)), np.flatnonzero(clicked)
    last = np.full(len(offsets) - 1, len(clicked))
    last[page[clicks]] = clicks  # the last one of a page is assigned last
    return rows <= last[page], rows == last[page]


@dataclass(frozen=True, eq=False)
class CountedPages:
    """The distinct pages of a log and how often each occurs, ordered by query."""

    offsets: Ints
    pair: Ints
    rank: Array
    clicked: Bools
    weights: Floats
    n_pairs: int

    @classmethod
    def from_sessions(cls, sessions: Sessions, first_click_only: bool = False) -> CountedPages:
        """Count equal pages; clicks below the first one can be left out."""
        if not sessions.n_impressions:
            raise DataError(f"{sessions.source}: has no impressions to fit a click model to.")
        pairs, clicked = sessions.pairs, sessions.clicked
        if first_click_only:
            above = last_clicks(sessions.offsets, sessions.rank, clicked)
            clicked = clicked & (above == 0)
        hashes = np.empty(sessions.n_pages, np.uint64)
        click_models.hash_pages(sessions.offsets, pairs.pair, sessions.rank, clicked, hashes)
        _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        order = np.lexsort((first, sessions.page_query[first]))
        order = order[np.diff(sessions.offsets)[first[order]] > 0]  # pages with impressions
        pages = first[order]
        lengths = np.diff(sessions.offsets)[pages]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(sessions.offsets[pages] - offsets[:-1], lengths) + np.arange(offsets[-1])
        columns = pairs.pair[rows], sessions.rank[rows], clicked[rows]
        return cls(offsets, *columns, counts[order].astype(np.float64), len(pairs.query))

    @property
    def longest(self) -> int:
        """The number of impressions of the longest page."""
        return int(np.diff(self.offsets).max())

    @property
    def n_ranks(self) -> int:
        """The number of ranks, with rank 0."""
        return int(self.rank.max()) + 1

    @cached_property
    def row_weights(self) -> Floats:
        """How often each impression occurs."""
        return np.repeat(self.weights, np.diff(self.offsets))

    @cached_property
    def clicks(self) -> Floats:
        """The clicks of each pair."""
        return totals(self.pair, self.row_weights * self.clicked, self.n_pairs)

    @cached_property
    def shown(self) -> Floats:
        """The impressions of each pair."""
        return totals(self.pair, self.row_weights, self.n_pairs)


@dataclass(frozen=True, eq=False, repr=False)
class PairValues(Tabular):
    """A probability per pair of query and document, with its interval.

    Attributes
    ----------
    queries, documents : tuple of str
        Names of queries and documents.
    query, document : array of int
        The pair's query and document, as indices into the names; pairs are sorted by them.
    value : array of float
        The estimated probability.
    impressions : array of float
        How often the pair was displayed.
    hits, trials : array of float
        What the pair's own data weigh: expected events, and expected occasions.  Of attractiveness
        these are clicks and examinations.
    prior : tuple of float
        Events and non-events of the prior, which are added to those of each pair.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q", "q", "r", "r"] * 2, document=["a", "b"] * 4, rank=[1, 2] * 4,
    ...     clicked=[1, 0, 1, 0, 1, 0, 0, 0])
    >>> table = fp.clicks.DocumentCTR(prior=(1, 1)).fit(sessions).attractiveness_
    >>> table.value.tolist()
    [0.75, 0.25, 0.5, 0.25]
    """

    queries: Sequence[str]
    documents: Sequence[str]
    query: Ints
    document: Ints
    value: Floats
    impressions: Floats
    hits: Floats
    trials: Floats
    prior: tuple[float, float]

    def __post_init__(self) -> None:
        columns = (self.document, self.value, self.impressions, self.hits, self.trials)
        if any(column.shape != self.query.shape for column in columns):
            raise ValueError("the columns of pairs differ in length")

    def __len__(self) -> int:
        return len(self.value)

    @property
    def prior_mean(self) -> float:
        """The value of a pair without data."""
        return self.prior[0] / sum(self.prior)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the bounds of central posterior intervals, given the other parameters.

        Parameters
        ----------
        level : float, default 0.95
            The posterior probability of the intervals.

        Returns
        -------
        tuple of array
            The lower and the upper bounds, one of each per pair.
        """
        from scipy.special import betaincinv

        size, tail = sum(self.prior) + self.trials, (1 - level) / 2
        events, others = self.value * size, (1 - self.value) * size
        low, high = (betaincinv(events, others, t) for t in (tail, 1 - tail))
        return low.astype(np.float64), high.astype(np.float64)

    def rows_of(self, sessions: Sessions) -> Ints:
        """Return the row of each impression's pair, -1 for pairs that are not in the table.

        Parameters
        ----------
        sessions : Sessions
            Pages of results.

        Returns
        -------
        array of int
            One row per impression.
        """
        pairs = sessions.pairs
        query = _translation(sessions.queries, self.queries)[pairs.query]
        document = _translation(sessions.documents, self.documents)[pairs.document]
        width = max(len(self.documents), 1)
        known, code = self.query * width + self.document, query * width + document
        rows = np.minimum(np.searchsorted(known, code), max(len(known) - 1, 0))
        present = (query >= 0) & (document >= 0)
        if len(known):
            present &= known[rows] == code
        return np.where(present, rows, -1)[pairs.pair]

    def values_of(self, sessions: Sessions) -> Floats:
        """Return the value of each impression's pair, that of the prior for unknown pairs.

        Parameters
        ----------
        sessions : Sessions
            Pages of results.

        Returns
        -------
        array of float
            One value per impression.
        """
        return np.append(self.value, self.prior_mean)[self.rows_of(sessions)]

    def _frame_columns(self) -> dict[str, Any]:
        low, high = self.interval()
        return {
            "query": [self.queries[i] for i in self.query.tolist()],
            "document": [self.documents[i] for i in self.document.tolist()],
            "value": self.value,
            "impressions": self.impressions,
            "low": low,
            "high": high,
        }

    def summary_table(self) -> Table:
        """Return the pairs with most impressions as a table."""
        order = np.argsort(-self.impressions, kind="stable")[:SHOWN_PAIRS]
        low, high = self.interval()
        rows = []
        for i in order.tolist():
            names = [self.queries[self.query[i]], self.documents[self.document[i]]]
            numbers = [f"{self.impressions[i]:,.0f}", f"{self.value[i]:.3f}"]
            rows.append([*names, *numbers, f"{low[i]:.3f} to {high[i]:.3f}"])
        note = f"the {len(order)} of {len(self):,} pairs with most impressions"
        head = ["query", "document", "impressions", "value", "95 % interval"]
        return Table(head, rows, note=note, left_aligned=2)

    def __repr__(self) -> str:
        return self.summary_table().text()


def _translation(names: Sequence[str], known: Sequence[str]) -> Ints:
    """Return the index in `known` of each name; -1 where it is missing."""
    if names is known:
        return np.arange(len(names))
    index = {name: i for i, name in enumerate(known)}
    return np.array([index.get(name, -1) for name in names], np.int64)


def check_layouts(sessions: Sessions) -> None:
    """Warn where pages of several layouts are mixed: a rank is not the same in each."""
    if sessions.layout is not None and len(np.unique(sessions.layout)) > 1:
        warn(
            f"{sessions.source}: pages of several layouts are fitted together, though a rank is "
            "not examined equally in each; select those of one layout."
        )
