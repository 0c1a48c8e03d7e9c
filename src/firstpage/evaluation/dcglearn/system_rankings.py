"""DCG measures with explicit gains and discounts, and the rankings of several systems.

A measure is named as `NDCG@10`, `DCG(gain=linear)@5`, or by a measure file.  Only DCG and NDCG have
gains and discounts; every other measure is an error.

Rankings are stored as the fraction of documents of at least each grade at each position, which is
all that DCG depends on.  Where scores tie, the tied documents share their positions, as in
`evaluate`; unjudged documents, unless a measure removes them (condensed=true), and empty positions
have the worst grade.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.core import Advice, Bools, DataError, Floats, Ints, MeasureError
from firstpage.core.kernels import number_ties
from firstpage.data import Ids
from firstpage.data.preferences import Utility
from firstpage.evaluation.measures.base import Convention, RankedLists
from firstpage.evaluation.measures.graded import DCG, NDCG, discounts
from firstpage.evaluation.measures.inputs import DEFAULT_DEPTH, make_lists
from firstpage.evaluation.measures.learned import LearnedDCG, LearnedNDCG
from firstpage.evaluation.measures.registry import measure

STEP_TOLERANCE = 1e-12  # of the largest step: smaller negative steps are rounding error


@dataclass(frozen=True, eq=False)
class BoundDCG:
    """A DCG or NDCG with explicit gains and discounts for the grades of the data.

    Attributes
    ----------
    text : str
        Name of the measure as the user wrote it.
    utility : Utility
        Gains and discounts.
    normalized : bool
        Whether values are divided by those of the ideal order, as in NDCG.
    unit : float
        Factor from the values of the utility to those of `evaluate`.
    strict : bool
        Whether lists shorter than the cutoff have the value 0, as some conventions define.
    condensed : bool
        Whether unjudged documents are removed from the lists first.
    fill_empty : bool
        Whether queries without relevant documents have the value 1, as some conventions define.
    """

    text: str
    utility: Utility
    normalized: bool = False
    unit: float = 1.0
    strict: bool = False
    condensed: bool = False
    fill_empty: bool = False

    @property
    def table(self) -> Floats:
        """Weight of a document, a row per position and a column per grade."""
        return self.unit * self.utility.table()

    @property
    def positions(self) -> int:
        return self.utility.n_positions


@dataclass(frozen=True, eq=False)
class DCGSpec:
    """A parsed DCG or NDCG, before it is bound to the grades of the data.

    `text` is its name as the user wrote it, `utility` that of a measure file.
    """

    text: str
    measure: DCG | NDCG
    utility: Utility | None = None

    @property
    def depth(self) -> int:
        """Number of documents of a list that the measure depends on."""
        positions = DEFAULT_DEPTH if self.utility is None else self.utility.n_positions
        return self.measure.cutoff or positions

    def bind(self, grades: Sequence[int], longest: int, convention: Convention) -> BoundDCG:
        """Return the measure for these grades; without a cutoff, as deep as the longest list."""
        normalized = isinstance(self.measure, NDCG)
        if self.utility is not None:
            utility = truncate(self.utility, self.measure.cutoff, self.text)
            bound = BoundDCG(self.text, utility, normalized)
        else:
            bound = self._bind_standard(grades, longest, convention, normalized)
        strict = convention.strict_cutoff and normalized and self.measure.cutoff is not None
        return replace(bound, strict=strict, condensed=self.measure.condensed)

    def _bind_standard(
        self, grades: Sequence[int], longest: int, convention: Convention, normalized: bool
    ) -> BoundDCG:
        gain = self.measure.gain if self.measure.gain is not None else convention.gain
        if isinstance(gain, str):
            levels = tuple(sorted({0, *(g for g in grades if g > 0)}))
            levels = levels if len(levels) > 1 else (0, 1)
            standard = Utility.from_dcg(gain, levels, 1)
            unit = float(standard.weights[0, -1])
        else:
            levels, unit = tuple(range(len(gain))), float(gain[-1] - gain[0])
            standard = Utility.from_gains(gain, [1.0])
            if gain[0] != 0:
                raise MeasureError(f"{self.text}: the gain of the worst grade must be 0.")
        discount = discounts(
            self.measure.discount or convention.discount, self.measure.cutoff or longest
        )
        utility = Utility.from_gains(standard.gains, discount, levels)
        return BoundDCG(
            self.text,
            utility,
            normalized,
            unit * float(discount[0]),
            fill_empty=normalized and convention.without_relevant == "one",
        )


def parse_dcg(text: str | Utility) -> DCGSpec:
    """Parse the name of a DCG or NDCG, before any data are read."""
    if isinstance(text, Utility):
        return DCGSpec("DCG", DCG(), text)
    is_file = text.strip().lower().endswith(".json")  # a measure file stands for its DCG
    parsed = measure(f'DCG(file="{text.strip()}")' if is_file else text)
    if isinstance(parsed, (LearnedDCG, LearnedNDCG)):
        kind = NDCG if isinstance(parsed, LearnedNDCG) else DCG
        form = parsed.source.form or parsed.utility.form
        plain = kind(cutoff=parsed.cutoff, condensed=parsed.condensed)
        return DCGSpec(text, plain, parsed.utility.with_form(form))
    if not isinstance(parsed, (DCG, NDCG)):
        raise MeasureError(
            f"{text!r}: only DCG and NDCG have gains and discounts; name one of them, such as "
            "NDCG@10, or a measure file, such as DCG(measure.json)@10."
        )
    return DCGSpec(text, parsed)


def truncate(utility: Utility, positions: int | None, text: str = "the measure") -> Utility:
    """Return the first positions of a utility; all of them if None."""
    if positions is None or positions == utility.n_positions:
        return utility
    if positions > utility.n_positions:
        raise MeasureError(
            f"{text}: the measure has discounts for {utility.n_positions} positions; use a cutoff "
            "of at "
            "most that."
        )
    return replace(
        utility, weights=utility.weights[:positions], discounts=utility.discounts[:positions]
    )


def measure_steps(dcg: BoundDCG, decreasing: bool) -> tuple[Floats, Floats, Floats]:
    """Return the steps of the discounts, of the gains and of the weights.

    A gain is the sum of the steps up to its grade, a discount the sum of the steps from its
    position on.  Without `decreasing` a discount is a step of its own.  The steps of the weights
    have a row per position and a column per step of the grades.
    """
    utility = dcg.utility
    gains = np.diff(utility.gains)
    discount_steps = (
        _decreases(utility.discounts[:, None])[:, 0] if decreasing else utility.discounts
    )
    weights = np.diff(utility.table(), axis=1)
    weights = _decreases(weights) if decreasing else weights
    if utility.form == "weights":
        _check_steps(weights, f"{dcg.text}: its weights", decreasing)
    else:
        _check_steps(gains, f"{dcg.text}: its gains", False)
        _check_steps(discount_steps, f"{dcg.text}: its discounts", decreasing)
    return _without_rounding(discount_steps), _without_rounding(gains), _without_rounding(weights)


def _without_rounding(steps: Floats) -> Floats:
    return np.where(steps > STEP_TOLERANCE * np.abs(steps).max(), steps, 0.0)


def _decreases(values: Floats) -> Floats:
    """Return the decrease from each position to the next; the last one keeps its value."""
    return values - np.vstack([values[1:], np.zeros((1, values.shape[1]))])


def _check_steps(steps: Floats, subject: str, decreasing: bool) -> None:
    if (steps < -STEP_TOLERANCE * np.abs(steps).max()).any():
        hint = " or increase with the position" if decreasing else ""
        raise MeasureError(
            f"{subject} are negative, or decrease with the grade{hint}.",
            Advice("Allow any discounts with {}.", "any_discounts") if decreasing else None,
        )
    if not steps.any():
        raise MeasureError(f"{subject} are all the same, so that all rankings are equally good.")


@dataclass(frozen=True, eq=False)
class SystemRankings:
    """Rankings of several systems on the queries that all of them have.

    `rows` has, per system, the row of each query in its lists.
    """

    names: tuple[str, ...]
    queries: Ids
    lists: tuple[RankedLists, ...]
    rows: tuple[Ints, ...]
    convention: Convention

    @classmethod
    def from_systems(
        cls,
        systems: Mapping[str, Any],
        truth: Any,
        convention: Convention,
        qid: Any = None,
        docid: Any = None,
        depth: int = DEFAULT_DEPTH,
    ) -> SystemRankings:
        """Rank every system against one truth; takes what `evaluate` takes.

        `depth` is the number of documents per list that are checked for missing judgments.
        """
        if len(systems) < 2:
            raise DataError(f"there must be at least two systems; there is {len(systems)}.")
        all_lists = tuple(
            make_lists(s, truth, convention, qid, docid, name=name, depth=depth)
            for name, s in systems.items()
        )
        shared = _shared_queries(all_lists)
        rows = tuple(_rows(lists, shared) for lists in all_lists)
        return cls(tuple(systems), all_lists[0].queries[rows[0]], all_lists, rows, convention)

    @cached_property
    def grades(self) -> tuple[int, ...]:
        """All grades of the judgments, in ascending order."""
        labels = np.unique(self.lists[0].pool)
        fractional = labels[labels != np.floor(labels)]
        if len(fractional):
            raise MeasureError(
                f"gains are defined for integer grades; the data have a label {fractional[0]:g}."
            )
        return tuple(int(g) for g in labels)

    @cached_property
    def longest(self) -> int:
        """Length of the longest list."""
        return max(int(lists.lengths[rows].max()) for lists, rows in self._per_system())

    def _per_system(self) -> Iterable[tuple[RankedLists, Ints]]:
        return zip(self.lists, self.rows, strict=True)

    def bind(self, spec: DCGSpec) -> BoundDCG:
        """Return a measure for the grades and the lengths of these rankings."""
        dcg = spec.bind(self.grades, self.longest, self.convention)
        best = dcg.utility.grades[-1]
        pool = self.lists[0].pool
        if len(pool) and pool.max() > best:
            raise MeasureError(
                f"{dcg.text} has gains up to grade {best}, and the data have a grade "
                f"{pool.max():g}; use a measure with gains for all grades."
            )
        missing = [g for g in self.grades if g not in dcg.utility.grades]
        missing = [g for g in missing if g > dcg.utility.grades[0]]  # smaller ones count as it
        if missing:
            raise MeasureError(
                f"{dcg.text} has gains of the grades {', '.join(map(str, dcg.utility.grades))}, "
                f"and the data have a grade {missing[0]}; use a measure with gains for all grades."
            )
        return dcg

    def reached(self, dcg: BoundDCG) -> Floats:
        """Return the fraction of documents of at least each grade, at each position.

        The axes are system, query, position and step of the grades.  Queries whose value is 1 for
        every ranking count nothing.
        """
        fractions = np.stack([_reached(lists, dcg)[rows] for lists, rows in self._per_system()])
        fractions[:, self._filled(dcg)] = 0.0
        return fractions

    def _filled(self, dcg: BoundDCG) -> Bools:
        """Return the queries that have the value 1 because no document of theirs is relevant."""
        if not dcg.fill_empty:
            return np.zeros(len(self.queries), bool)
        return self.lists[0].without_relevant(self.convention.rel)[self.rows[0]]

    def counts(self, dcg: BoundDCG) -> Ints:
        """Return the number of judged documents of at least each grade, a row per query."""
        lists = self.lists[0]
        level = _levels(lists.pool, dcg.utility.grades)
        at_least = level[:, None] >= np.arange(1, len(dcg.utility.grades))
        sums = np.vstack([np.zeros((1, at_least.shape[1]), np.int64), np.cumsum(at_least, axis=0)])
        counts: Ints = (sums[lists.pool_offsets[1:]] - sums[lists.pool_offsets[:-1]])[self.rows[0]]
        return counts

    def values(self, dcg: BoundDCG) -> Floats:
        """Return the measure, a row per system and a column per query."""
        weights = np.diff(dcg.table, axis=1)
        totals: Floats = np.einsum("sqjl,jl->sq", self.reached(dcg), weights)
        if not dcg.normalized:
            return totals
        best = self._ideal_values(dcg, weights)
        ratios: Floats = np.divide(totals, best, out=np.zeros_like(totals), where=best > 0)
        ratios[:, self._filled(dcg)] = 1.0
        return ratios

    def _ideal_values(self, dcg: BoundDCG, weights: Floats) -> Floats:
        """Return the measure of the best order of each query.

        That is the order by grade, unless the weights increase with the position somewhere.
        """
        counts = self.counts(dcg)
        if (np.diff(weights, axis=0) <= 0).all():
            by_grade: Floats = np.einsum("qjl,jl->q", ideal(counts, dcg.positions), weights)
            return by_grade
        judged = np.diff(self.lists[0].pool_offsets)[self.rows[0]]
        per_grade = -np.diff(np.column_stack([judged, counts, np.zeros_like(judged)]), axis=1)
        return dcg.unit * LearnedNDCG(utility=dcg.utility).ideal(per_grade)

    def grades_of(self, system: int, query: int, positions: int) -> tuple[int | None, ...]:
        """Return the first grades of a list in ranked order; None for an unjudged document."""
        lists, row = self.lists[system], int(self.rows[system][query])
        lo, hi = int(lists.offsets[row]), int(lists.offsets[row + 1])
        labels = lists.labels[lo : min(hi, lo + positions)]
        return tuple(None if np.isnan(g) else int(g) for g in labels)


def ideal(counts: Ints, positions: int) -> Floats:
    """Return the fractions of `SystemRankings.reached` for the order by descending grade."""
    return (counts[:, None, :] >= np.arange(1, positions + 1)[None, :, None]).astype(np.float64)


def _levels(labels: Floats, grades: Sequence[int]) -> Ints:
    """Return the level of each label; the lowest for smaller labels and unjudged documents."""
    known = np.where(np.isnan(labels), -np.inf, labels)
    return np.maximum(np.searchsorted(grades, known, side="right") - 1, 0)


def _reached(lists: RankedLists, dcg: BoundDCG) -> Floats:
    """Return the fractions of one system by query, position and step of the grades."""
    lists = lists.condensed if dcg.condensed else lists
    grades, positions = dcg.utility.grades, dcg.positions
    steps = np.arange(1, len(grades))
    fractions = (_levels(lists.labels, grades)[:, None] >= steps).astype(np.float64)
    if lists.longest_tie > 1:
        fractions = _average_ties(fractions, lists)
    lengths = lists.lengths
    query = np.repeat(np.arange(len(lists)), lengths)
    position = np.arange(len(fractions)) - np.repeat(lists.offsets[:-1], lengths)
    counted = position < positions
    if dcg.strict:  # a list shorter than the cutoff counts nothing
        counted &= lengths[query] >= positions
    out = np.zeros((len(lists), positions, len(steps)))
    out[query[counted], position[counted]] = fractions[counted]
    return out


def _average_ties(fractions: Floats, lists: RankedLists) -> Floats:
    """Return the fractions with those of tied documents averaged."""
    tie = np.empty(len(fractions), np.int64)
    number_ties(lists.tie_sizes, lists.offsets, tie)
    starts = np.flatnonzero(np.diff(tie, prepend=-1))
    sizes = np.diff(starts, append=len(tie))
    means = np.add.reduceat(fractions, starts, axis=0) / sizes[:, None]
    averaged: Floats = np.repeat(means, sizes, axis=0)
    return averaged


def _shared_queries(all_lists: Sequence[RankedLists]) -> list[str]:
    """Return the queries that all systems have, in the order of the first system."""
    common = set.intersection(*(set(lists.queries) for lists in all_lists))
    answered = [
        {q for q, size in zip(lists.queries, lists.lengths.tolist(), strict=True) if size}
        for lists in all_lists
    ]
    if not any(all(q in queries for queries in answered) for q in common):
        raise DataError("the systems share no judged query; pass rankings of the same queries.")
    return [q for q in all_lists[0].queries if q in common]


def _rows(lists: RankedLists, queries: Sequence[str]) -> Ints:
    row = {query: number for number, query in enumerate(lists.queries)}
    return np.array([row[query] for query in queries], np.int64)
