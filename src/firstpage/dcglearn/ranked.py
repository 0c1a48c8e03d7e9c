"""What systems show at each place, as shares of grades: all that DCG looks at.

Where scores tie, a place holds the mean of the tied documents, as `evaluate` has it; an unjudged
document and a place without a document have the worst grade.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.data.ids import Ids
from firstpage.dcglearn.reading import Scale, Wanted
from firstpage.errors import DataError, MeasureError
from firstpage.kernels.sorting import number_ties
from firstpage.measures.conventions import Convention
from firstpage.measures.inputs import DEPTH, make_lists
from firstpage.measures.learned import LearnedNDCG
from firstpage.measures.lists import Lists
from firstpage.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Ranked:
    """Systems on the same queries.  `rows` has, for each system, its lists' row of every query."""

    names: tuple[str, ...]
    queries: Ids
    lists: tuple[Lists, ...]
    rows: tuple[Ints, ...]
    how: Convention

    @classmethod
    def of(
        cls, systems: Mapping[str, Any], truth: Any, how: Convention, qid: Any = None,
        docid: Any = None, depth: int = DEPTH,
    ) -> Ranked:  # fmt: skip
        """Rank every system against one truth; all that `evaluate` takes will do.

        depth  how many documents per list are looked at for those without a judgment
        """
        if len(systems) < 2:
            raise DataError(f"there must be at least two systems; there is {len(systems)}.")
        lists = tuple(
            make_lists(s, truth, how, qid, docid, name=name, depth=depth)
            for name, s in systems.items()
        )
        shared = _shared(lists)
        rows = tuple(_rows(one, shared) for one in lists)
        return cls(tuple(systems), lists[0].queries[rows[0]], lists, rows, how)

    @cached_property
    def grades(self) -> tuple[int, ...]:
        """All labels that were given, upward."""
        found = np.unique(self.lists[0].pool)
        off = found[found != np.floor(found)]
        if len(off):
            raise MeasureError(
                f"gains are of grades, which are whole numbers; the data hold a label {off[0]:g}."
            )
        return tuple(int(g) for g in found)

    @cached_property
    def longest(self) -> int:
        return max(int(one.lengths[rows].max()) for one, rows in self._each())

    def _each(self) -> Iterable[tuple[Lists, Ints]]:
        return zip(self.lists, self.rows, strict=True)

    def scale(self, wanted: Wanted) -> Scale:
        """A measure on these data."""
        found = wanted.on(self.grades, self.longest, self.how)
        best = found.utility.grades[-1]
        pool = self.lists[0].pool
        if len(pool) and pool.max() > best:
            raise MeasureError(
                f"{found.text} has gains up to grade {best}, and the data hold a grade "
                f"{pool.max():g}; use a measure for all grades."
            )
        return found

    def reached(self, scale: Scale) -> Floats:
        """By system, query, place and step: the share that has at least this step's grade."""
        return np.stack(
            [
                _reached(one, scale.utility.grades, scale.places, scale.strict)[rows]
                for one, rows in self._each()
            ]
        )

    def counts(self, scale: Scale) -> Ints:
        """By query and step of the grades: how many judged documents have at least this grade."""
        one = self.lists[0]
        level = _levels(one.pool, scale.utility.grades)
        at_least = level[:, None] >= np.arange(1, len(scale.utility.grades))
        sums = np.vstack([np.zeros((1, at_least.shape[1]), np.int64), np.cumsum(at_least, axis=0)])
        found: Ints = (sums[one.pool_offsets[1:]] - sums[one.pool_offsets[:-1]])[self.rows[0]]
        return found

    def values(self, scale: Scale) -> Floats:
        """The measure, a row a system, a column a query."""
        worth = np.diff(scale.table, axis=1)
        got: Floats = np.einsum("sqjl,jl->sq", self.reached(scale), worth)
        if not scale.normalized:
            return got
        best = self._best(scale, worth)
        found: Floats = np.divide(got, best, out=np.zeros_like(got), where=best > 0)
        return found

    def _best(self, scale: Scale, worth: Floats) -> Floats:
        """The measure of each query's best order: that by grade, unless a later place is worth
        more."""
        counts = self.counts(scale)
        if (np.diff(worth, axis=0) <= 0).all():
            found: Floats = np.einsum("qjl,jl->q", ideal(counts, scale.places), worth)
            return found
        judged = np.diff(self.lists[0].pool_offsets)[self.rows[0]]
        each = -np.diff(np.column_stack([judged, counts, np.zeros_like(judged)]), axis=1)
        return scale.unit * LearnedNDCG(utility=scale.utility).ideal(each)

    def shown(self, system: int, query: int, places: int) -> tuple[int | None, ...]:
        """The grades of a list as they stand; None where a document is unjudged."""
        one, row = self.lists[system], int(self.rows[system][query])
        lo, hi = int(one.offsets[row]), int(one.offsets[row + 1])
        labels = one.labels[lo : min(hi, lo + places)]
        return tuple(None if np.isnan(g) else int(g) for g in labels)


def ideal(counts: Ints, places: int) -> Floats:
    """The same shares for the ideal order: places filled from the best grade down."""
    return (counts[:, None, :] >= np.arange(1, places + 1)[None, :, None]).astype(np.float64)


def _levels(labels: Floats, grades: Sequence[int]) -> Ints:
    """The number of each label's grade; the worst for what lies below, or is unjudged."""
    known = np.where(np.isnan(labels), -np.inf, labels)
    return np.maximum(np.searchsorted(grades, known, side="right") - 1, 0)


def _reached(lists: Lists, grades: Sequence[int], places: int, strict: bool) -> Floats:
    """By query, place and step, for one system."""
    steps = np.arange(1, len(grades))
    share = (_levels(lists.labels, grades)[:, None] >= steps).astype(np.float64)
    if lists.longest_tie > 1:
        share = _averaged(share, lists)
    lengths = lists.lengths
    query = np.repeat(np.arange(len(lists)), lengths)
    place = np.arange(len(share)) - np.repeat(lists.offsets[:-1], lengths)
    kept = place < places
    if strict:  # a list shorter than the cut-off counts nothing
        kept &= lengths[query] >= places
    out = np.zeros((len(lists), places, len(steps)))
    out[query[kept], place[kept]] = share[kept]
    return out


def _averaged(share: Floats, lists: Lists) -> Floats:
    """Documents with equal scores share what they have."""
    tie = np.empty(len(share), np.int64)
    number_ties(lists.block, lists.offsets, tie)
    starts = np.flatnonzero(np.diff(tie, prepend=-1))
    sizes = np.diff(starts, append=len(tie))
    means = np.add.reduceat(share, starts, axis=0) / sizes[:, None]
    found: Floats = np.repeat(means, sizes, axis=0)
    return found


def _shared(lists: Sequence[Lists]) -> list[str]:
    """Queries to compare on, in the first one's order."""
    common = set.intersection(*(set(one.queries) for one in lists))
    answered = [
        {q for q, size in zip(one.queries, one.lengths.tolist(), strict=True) if size}
        for one in lists
    ]
    if not any(all(q in some for some in answered) for q in common):
        raise DataError("the systems share no judged query; give rankings of the same queries.")
    return [q for q in lists[0].queries if q in common]


def _rows(one: Lists, shared: Sequence[str]) -> Ints:
    row = {query: number for number, query in enumerate(one.queries)}
    return np.array([row[query] for query in shared], np.int64)
