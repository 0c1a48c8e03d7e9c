"""Measures with gains and discounts from their texts, and what systems show at each place.

A text is `NDCG@10`, `DCG(gain=linear)@5`, or a file: only DCG and NDCG have gains and discounts;
every other measure is refused.

What is shown at a place are shares of grades, which is all that DCG looks at.  Where scores tie, a
place holds the mean of the tied documents, as `evaluate` has it; an unjudged document and a place
without a document have the worst grade.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.data.ids import Ids
from firstpage.data.preferences.utility import Utility
from firstpage.errors import DataError, MeasureError
from firstpage.kernels.sorting import number_ties
from firstpage.measures.graded import DCG, NDCG, discounts
from firstpage.measures.inputs import DEFAULT_DEPTH, make_lists
from firstpage.measures.learned import LearnedDCG, LearnedNDCG
from firstpage.measures.measure import Convention, RankedLists
from firstpage.measures.registry import measure
from firstpage.types import Floats, Ints

CLOSE = 1e-12  # steps below zero by less than this, of the greatest, are zero


@dataclass(frozen=True, eq=False)
class Scale:
    """Gains and discounts under the name they were asked for by.

    normalized  divided by the ideal order's value, as NDCG is
    unit        what the utility's own numbers are to be multiplied by, so that values are those
                that `evaluate` gives
    strict      where a convention asks for it, lists shorter than the places are worth nothing
    """

    text: str
    utility: Utility
    normalized: bool = False
    unit: float = 1.0
    strict: bool = False

    @property
    def table(self) -> Floats:
        """What a document is worth: a row a place, a column a grade."""
        return self.unit * self.utility.table()

    @property
    def places(self) -> int:
        return self.utility.n_positions


@dataclass(frozen=True, eq=False)
class Wanted:
    """A measure's text, read; what it is on given grades, `on` tells."""

    text: str
    asked: DCG | NDCG
    utility: Utility | None = None

    @property
    def depth(self) -> int:
        """How many documents of a list the measure looks at."""
        places = DEFAULT_DEPTH if self.utility is None else self.utility.n_positions
        return self.asked.cutoff or places

    def on(self, grades: Sequence[int], longest: int, how: Convention) -> Scale:
        """With gains for these grades; without a cut-off, as deep as the longest list."""
        normalized = isinstance(self.asked, NDCG)
        if self.utility is not None:
            found = Scale(self.text, cut(self.utility, self.asked.cutoff, self.text), normalized)
        else:
            found = self._usual(grades, longest, how, normalized)
        strict = how.strict_cutoff and normalized and self.asked.cutoff is not None
        return replace(found, strict=strict)

    def _usual(
        self, grades: Sequence[int], longest: int, how: Convention, normalized: bool
    ) -> Scale:
        asked = self.asked
        gain = asked.gain if asked.gain is not None else how.gain
        if isinstance(gain, str):
            kept = tuple(sorted({0, *(g for g in grades if g > 0)}))
            kept = kept if len(kept) > 1 else (0, 1)
            shape = Utility.from_dcg(gain, kept, 1)
            unit = float(shape.weights[0, -1])
        else:
            kept, unit = tuple(range(len(gain))), float(gain[-1] - gain[0])
            shape = Utility.from_gains(gain, [1.0])
            if gain[0] != 0:
                raise MeasureError(f"{self.text}: the gain of the worst grade must be 0.")
        fall = discounts(asked.discount or how.discount, asked.cutoff or longest)
        utility = Utility.from_gains(shape.gains, fall, kept)
        return Scale(self.text, utility, normalized, unit * float(fall[0]))


def wanted(text: str | Utility) -> Wanted:
    """Read a measure's text, or refuse it, before any data are read."""
    if isinstance(text, Utility):
        return Wanted("DCG", DCG(), text)
    bare = text.strip().lower().endswith(".json")  # a measure file is its DCG
    found = measure(f'DCG(file="{text.strip()}")' if bare else text)
    if isinstance(found, (LearnedDCG, LearnedNDCG)):
        kind = NDCG if isinstance(found, LearnedNDCG) else DCG
        form = found.source.form or found.utility.form
        return Wanted(text, kind(cutoff=found.cutoff), found.utility.with_form(form))
    if not isinstance(found, (DCG, NDCG)):
        raise MeasureError(
            f"{text!r}: only DCG and NDCG have gains and discounts; give one of them, such as "
            "NDCG@10, or a measure file, such as DCG(measure.json)@10."
        )
    return Wanted(text, found)


def cut(utility: Utility, places: int | None, text: str = "the measure") -> Utility:
    """The first places of a utility; all of them if None."""
    if places is None or places == utility.n_positions:
        return utility
    if places > utility.n_positions:
        raise MeasureError(
            f"{text}: has discounts for {utility.n_positions} places; ask for no more than these."
        )
    return replace(utility, weights=utility.weights[:places], discounts=utility.discounts[:places])


def steps_of(scale: Scale, falling: bool) -> tuple[Floats, Floats, Floats]:
    """Steps of the discounts, of the gains, and of the weights (a row a place, a column a step).

    A gain is the sum of the steps up to its grade, a discount the sum of the steps from its place
    on.  Without `falling` a discount is a step of its own.
    """
    utility = scale.utility
    gains = np.diff(utility.gains)
    down = _falls(utility.discounts[:, None])[:, 0] if falling else utility.discounts
    weights = np.diff(utility.table(), axis=1)
    weights = _falls(weights) if falling else weights
    if utility.form == "weights":
        _refuse(weights, f"{scale.text}: its weights", falling)
    else:
        _refuse(gains, f"{scale.text}: its gains", False)
        _refuse(down, f"{scale.text}: its discounts", falling)
    return _cleared(down), _cleared(gains), _cleared(weights)


def _cleared(steps: Floats) -> Floats:
    return np.where(steps > CLOSE * np.abs(steps).max(), steps, 0.0)


def _falls(values: Floats) -> Floats:
    """How much less each place has than the one before it is left with: the last keeps all."""
    return values - np.vstack([values[1:], np.zeros((1, values.shape[1]))])


def _refuse(steps: Floats, what: str, falling: bool) -> None:
    if (steps < -CLOSE * np.abs(steps).max()).any():
        hint = " or rise with the place: let discounts be any (--any-discounts)" if falling else ""
        raise MeasureError(f"{what} are negative, or fall with the grade{hint}.")
    if not steps.any():
        raise MeasureError(f"{what} are all the same, so nothing is better than anything.")


@dataclass(frozen=True, eq=False)
class Ranked:
    """Systems on the same queries.  `rows` has, for each system, its lists' row of every query."""

    names: tuple[str, ...]
    queries: Ids
    lists: tuple[RankedLists, ...]
    rows: tuple[Ints, ...]
    how: Convention

    @classmethod
    def of(
        cls, systems: Mapping[str, Any], truth: Any, how: Convention, qid: Any = None,
        docid: Any = None, depth: int = DEFAULT_DEPTH,
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

    def _each(self) -> Iterable[tuple[RankedLists, Ints]]:
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


def _reached(lists: RankedLists, grades: Sequence[int], places: int, strict: bool) -> Floats:
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


def _averaged(share: Floats, lists: RankedLists) -> Floats:
    """Documents with equal scores share what they have."""
    tie = np.empty(len(share), np.int64)
    number_ties(lists.block, lists.offsets, tie)
    starts = np.flatnonzero(np.diff(tie, prepend=-1))
    sizes = np.diff(starts, append=len(tie))
    means = np.add.reduceat(share, starts, axis=0) / sizes[:, None]
    found: Floats = np.repeat(means, sizes, axis=0)
    return found


def _shared(lists: Sequence[RankedLists]) -> list[str]:
    """Queries to compare on, in the first one's order."""
    common = set.intersection(*(set(one.queries) for one in lists))
    answered = [
        {q for q, size in zip(one.queries, one.lengths.tolist(), strict=True) if size}
        for one in lists
    ]
    if not any(all(q in some for some in answered) for q in common):
        raise DataError("the systems share no judged query; give rankings of the same queries.")
    return [q for q in lists[0].queries if q in common]


def _rows(one: RankedLists, shared: Sequence[str]) -> Ints:
    row = {query: number for number, query in enumerate(one.queries)}
    return np.array([row[query] for query in shared], np.int64)
