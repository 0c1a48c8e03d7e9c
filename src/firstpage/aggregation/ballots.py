"""Ballots: what several rankers say about the order of the same candidates, query by query."""

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

BaseOrder: TypeAlias = Run | int | Literal["turns"] | None
AFTER_BASE_RUN = float(1 << 40)  # beyond all places of a base run


@dataclass(frozen=True, eq=False)
class MergedRuns:
    """Documents by query; `key` rises along base order.

    `ties[a]` has for each document the first place of its equals in run a, or ABSENT.
    """

    queries: Ids
    offsets: Ints
    docids: Ids
    key: Floats
    ties: list[Ints]


def merge_runs(runs: Sequence[Run], base: BaseOrder) -> MergedRuns:
    """Join runs by query and document; queries and documents in order of appearance."""
    if not runs or not all(isinstance(run, Column) for run in runs):
        raise DataError("give at least one run (a Run, as read_run reads it) to aggregate.")
    first, extra = _base_run(runs, base)
    columns = [*extra, *runs]
    turn = sorted(range(len(columns)), key=lambda a: a != first)  # the base run's queries lead
    union, found = _union([columns[a] for a in turn])
    rows = [found[turn.index(a)] for a in range(len(columns))]
    size, voting = len(union.docids), len(extra)
    ranks = [_ranks(column) for column in columns]
    places = [_spread(place, r, size) for (place, _), r in zip(ranks, rows, strict=True)]
    ties = [_spread(tie, r, size) for (_, tie), r in zip(ranks, rows, strict=True)]
    turns = np.min([p * len(runs) + a for a, p in enumerate(places[voting:])], axis=0)
    key = turns.astype(np.float64) + AFTER_BASE_RUN
    if first is not None:
        there = places[first] != ABSENT
        key[there] = places[first][there]
    return MergedRuns(union.queries, union.offsets, union.docids, key, ties[voting:])


def _base_run(runs: Sequence[Run], base: BaseOrder) -> tuple[int | None, list[Run]]:
    """The number of the base run among all, and a base run that does not vote, put before them."""
    if isinstance(base, Column):
        return 0, [base]
    if isinstance(base, str):
        if base != "turns":
            raise DataError(f"base must be a run, its number or 'turns'; got {base!r}.")
        return None, []
    number = 0 if base is None else base
    if not isinstance(number, (int, np.integer)) or not 0 <= number < len(runs):
        raise DataError(f"base must be a run, its number from 0 on or 'turns'; got {base!r}.")
    return int(number), []


def _union(columns: Sequence[Column]) -> tuple[Column, list[Ints]]:
    """All documents once, grouped by query; and for each column the rows of its documents there."""
    none = np.zeros(0, np.int64)
    union = Column(Ids.from_values([]), np.zeros(1, np.int64), Ids.from_values([]), np.zeros(0))
    owner = none
    rows: list[Ints] = []
    for column in columns:
        partner = match_queries(column.queries, union.queries)
        found = join_documents(column, union, partner)
        new_query = partner < 0
        partner[new_query] = len(union) + np.arange(int(new_query.sum()))
        new = np.flatnonzero(found < 0)
        found[new] = len(owner) + np.arange(len(new))
        owner = np.concatenate([owner, np.repeat(partner, np.diff(column.offsets))[new]])
        order = np.argsort(owner, kind="stable")
        moved = np.empty(len(order), np.int64)
        moved[order] = np.arange(len(order))
        rows = [moved[r] for r in [*rows, found]]
        owner = owner[order]
        queries = Ids.concatenate(
            union.queries, column.queries[np.flatnonzero(new_query)].compact()
        )
        docids = Ids.concatenate(union.docids, column.docids[new].compact())[order]
        counts = np.bincount(owner, minlength=len(queries))
        offsets = offsets_from_lengths(counts)
        union = Column(queries, offsets, docids, np.zeros(len(owner)))
    return union, rows


def _ranks(run: Column) -> tuple[Ints, Ints]:
    """Each document's place, equals as in the file; and the first place of its equals."""
    order, keys = sort_groups(run.values, run.offsets)
    lo = np.repeat(run.offsets[:-1], np.diff(run.offsets))
    at = np.arange(len(order))
    new = np.ones(len(order), bool)
    new[1:] = (keys[1:] != keys[:-1]) | (lo[1:] != lo[:-1])
    first = np.maximum.accumulate(np.where(new, at, 0))
    place, tie = np.empty_like(at), np.empty_like(at)
    place[order], tie[order] = at - lo, first - lo
    return place, tie


def _spread(values: Ints, rows: Ints, size: int) -> Ints:
    """Values of a run's documents at their rows in the pool, ABSENT elsewhere."""
    out = np.full(size, ABSENT, np.int64)
    out[rows] = values
    return out


Missing = Literal["last", "silent"]
MAX_CANDIDATES = 10_000  # candidates of a query; a table of all their pairs is 800 MB


@dataclass(frozen=True, eq=False)
class Ballots:
    """Candidates of every query in base order, and for each ranker the place of each of them.

    places     rankers x candidates: 0 is a ranker's best of the query, ABSENT is not in its list
    offsets    query q has the candidates offsets[q]:offsets[q + 1]
    documents  the rows of all documents in base order, candidates first
    ends       query q has the documents ends[q]:ends[q + 1]
    missing    "last": a ranker puts what it lists before what it does not; "silent": it says
               nothing about them.  Two documents that it does not list are equal to it.

    Documents beyond the depth are no candidates: they keep the base order, below.
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
            raise DataError(f"missing must be last or silent; got {self.missing!r}.")
        longest = int(np.diff(self.offsets).max(initial=0))
        if longest > MAX_CANDIDATES:
            raise DataError(
                f"a query has {longest} candidates, and {MAX_CANDIDATES} is the most; give a depth."
            )
        check_offsets(self.offsets, self.queries, self.positions.shape[1], "ballots")
        check_offsets(self.ends, self.queries, len(self.documents), "ballots")
        for name in (
            "positions",
            "offsets",
            "documents",
            "ends",
        ):  # the caller's own stay as they are
            view = getattr(self, name).view()
            view.setflags(write=False)
            object.__setattr__(self, name, view)

    # --- making them

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        offsets: Any,
        mu_scores: Any = None,
        *,
        depth: int | None = None,
        same_depth: bool = False,
        queries: Iterable[object] | None = None,
        docids: Iterable[object] | None = None,
        names: Sequence[str] = (),
    ) -> Ballots:
        """From several scores of the same documents, one row a ranker.

        Base order is that of `mu_scores`, or the order of the rows; the rankers' equal scores keep
        it.  `depth` makes the first so many of each query candidates; with `same_depth` no query
        has more candidates than the shortest has documents.
        """
        table = _score_table(scores)
        given = np.asarray(offsets)
        if given.ndim != 1 or not len(given) or given.dtype.kind not in "iu":
            raise DataError("offsets must be whole numbers in one dimension, and start with 0.")
        ends = given.astype(np.int64)
        named = (
            Ids.from_values(map(str, range(1, len(ends))))
            if queries is None
            else Ids.from_values(queries)
        )
        check_offsets(ends, named, table.shape[1], "scores")
        documents = np.arange(table.shape[1])
        if mu_scores is not None:
            base = _score_table([mu_scores], "mu_scores")
            if base.shape[1] != table.shape[1]:
                raise DataError(f"{base.shape[1]} mu_scores for {table.shape[1]} documents.")
            documents, _ = sort_groups(base[0], ends)
        ids = None if docids is None else Ids.from_values(docids)
        if ids is not None and len(ids) != table.shape[1]:
            raise DataError(f"{len(ids)} docids for {table.shape[1]} documents.")
        if names and len(names) != len(table):
            raise DataError(f"{len(names)} names for {len(table)} rankers.")
        heads, rows = truncate(ends, documents, depth, same_depth)
        places = np.array([_places(row[rows], heads) for row in table], np.int64)
        return cls(
            places.reshape(len(table), -1), heads, documents, ends, named, ids,
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
        """From several runs, joined by query and document; a run need not list every document.

        Base order is that of `base`: a run, which votes only if it is among `runs` too; the number
        of one of these; or "turns"; else the first.  What the base run does not list follows in
        turns: the first of each run, then the second of each, without repetition.  Equal scores
        keep base order, those of the base run the order of its file.
        """
        pool = merge_runs(runs, base)
        documents, _ = sort_groups(-pool.key, pool.offsets)
        heads, rows = truncate(pool.offsets, documents, depth, same_depth)
        places = np.empty((len(runs), len(rows)), np.int64)
        for a, ties in enumerate(pool.ties):
            key = ties[rows]
            places[a] = _places(-key.astype(np.float64), heads)
            places[a][key == ABSENT] = ABSENT
        names = tuple(run.name or f"ranker {a}" for a, run in enumerate(runs, 1))
        return cls(
            places, heads, documents, pool.offsets, pool.queries, pool.docids, names, missing
        )

    @classmethod
    def from_lists(cls, lists: Sequence[Mapping[str, Sequence[str]]], **how: Any) -> Ballots:
        """From one {query: [best document, second, ..]} a ranker; `how` as in `from_runs`."""
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
                raise DataError(f"list {a}: a document stands twice in a query.")
        return cls.from_runs(runs, **how)

    # --- looking at them

    def __len__(self) -> int:
        """The number of queries."""
        return len(self.offsets) - 1

    @property
    def n_rankers(self) -> int:
        return len(self.positions)

    @cached_property
    def lengths(self) -> Ints:
        """Candidates per query."""
        return np.diff(self.offsets)

    @property
    def longest(self) -> int:
        return int(self.lengths.max(initial=0))

    @property
    def vote_limit(self) -> int:
        """The place up to which kernels let documents lose votes."""
        return ABSENT + 1 if self.missing == "last" else ABSENT

    def __repr__(self) -> str:
        return (
            f"Ballots({self.n_rankers} rankers, {len(self)} queries, {int(self.offsets[-1])} "
            f"candidates of {len(self.documents)} documents)"
        )


def truncate(ends: Ints, documents: Ints, depth: int | None, same: bool) -> tuple[Ints, Ints]:
    """Offsets and rows of the first `depth` documents of every query."""
    lengths = np.diff(ends)
    whole = isinstance(depth, (int, np.integer)) and not isinstance(depth, bool)
    if depth is not None and (not whole or depth < 1):
        raise DataError(f"depth must be a whole number from 1 on, or None for all; got {depth!r}.")
    if same and (lengths > 0).any():
        shortest = int(lengths[lengths > 0].min())
        depth = shortest if depth is None else min(depth, shortest)
    if depth is None or depth >= len(documents):
        return ends, documents
    heads = offsets_from_lengths(np.minimum(lengths, depth))
    place = np.arange(len(documents)) - np.repeat(ends[:-1], lengths)
    return heads, documents[place < depth]


def _places(scores: Floats, offsets: Ints) -> Ints:
    """The place of every row in its query by score, equal ones as they stand."""
    order, _ = sort_groups(scores, offsets)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order)) - np.repeat(offsets[:-1], np.diff(offsets))
    return places


def _score_table(scores: Any, what: str = "scores") -> Floats:
    try:
        table: Array = np.asarray(scores, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{what} must be one row of numbers a ranker, all of one length ({error})."
        ) from error
    if table.ndim != 2 or not len(table):
        raise DataError(f"{what} must be rankers x documents, and have the shape {table.shape}.")
    if np.isnan(table).any():
        ranker, row = np.argwhere(np.isnan(table))[0].tolist()
        raise DataError(f"{what}: ranker {ranker + 1} gives document {row + 1} no number (NaN).")
    return np.ascontiguousarray(table)
