"""The documents of several runs, pooled: every document of every query once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from firstpage.data.formats.trec import Column, Run
from firstpage.data.groups import offsets_from_lengths, ranked
from firstpage.data.ids import Ids
from firstpage.data.joins import join_documents, partners
from firstpage.errors import DataError
from firstpage.kernels.voting.votes import ABSENT
from firstpage.types import Floats, Ints

BaseOrder: TypeAlias = Run | int | Literal["turns"] | None
FAR = float(1 << 40)  # beyond all places of a base run


@dataclass(frozen=True, eq=False)
class Pool:
    """Documents by query; `key` rises along base order.

    `ties[a]` has for each document the first place of its equals in run a, or ABSENT.
    """

    queries: Ids
    offsets: Ints
    docids: Ids
    key: Floats
    ties: list[Ints]


def pooled(runs: Sequence[Run], base: BaseOrder) -> Pool:
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
    key = turns.astype(np.float64) + FAR
    if first is not None:
        there = places[first] != ABSENT
        key[there] = places[first][there]
    return Pool(union.queries, union.offsets, union.docids, key, ties[voting:])


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
    union = Column(Ids.of([]), np.zeros(1, np.int64), Ids.of([]), np.zeros(0))
    owner = none
    rows: list[Ints] = []
    for column in columns:
        partner = partners(column.queries, union.queries)
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
        queries = Ids.chained(union.queries, column.queries[np.flatnonzero(new_query)].compact())
        docids = Ids.chained(union.docids, column.docids[new].compact())[order]
        counts = np.bincount(owner, minlength=len(queries))
        offsets = offsets_from_lengths(counts)
        union = Column(queries, offsets, docids, np.zeros(len(owner)))
    return union, rows


def _ranks(run: Column) -> tuple[Ints, Ints]:
    """Each document's place, equals as in the file; and the first place of its equals."""
    order, keys = ranked(run.values, run.offsets)
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
