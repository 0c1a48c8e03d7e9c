"""How two assessors' preferences agree: the 3 x 3 table of Niu et al. 2012, Tables 2 and 3.

`contrast` and `estimate` have intervals over queries: pairs of one query are not independent, so a
test that takes them as independent finds too much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from firstpage.errors import DataError
from firstpage.labeling.statistics.intervals import Interval, bootstrap, defined, ratio
from firstpage.labeling.statistics.records import Labels, Record, Results, judged
from firstpage.labeling.statistics.relations import common, relations
from firstpage.types import Floats, Ints

SIGNS = ("A≻B", "A∼B", "A≺B")
LINEAR = 1 - np.abs(np.subtract.outer(np.arange(3), np.arange(3))) / 2


@dataclass(frozen=True, eq=False)
class Agreement:
    """Counts of document pairs: rows what one assessor said (≻, ∼, ≺), columns the other.

    A share of nothing is NaN, and so is kappa where chance alone would agree on everything.
    Chance and kappa depend on which document of a pair is called A (where names go from best
    to worst, everybody says ≻); `symmetrized` frees them of it.
    """

    counts: Floats

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts, np.float64)
        if counts.shape != (3, 3) or not (counts >= 0).all():
            raise DataError("an agreement table must have 3 x 3 counts from 0 on.")
        counts = counts.copy()
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    @classmethod
    def empty(cls) -> Agreement:
        """The table of no pairs at all."""
        return cls(np.zeros((3, 3)))

    @classmethod
    def from_labels(
        cls, first: Labels, second: Labels, documents: Sequence[str] | None = None
    ) -> Agreement:
        """Over all pairs of documents that both labeled; A is the earlier one in `documents`.

        Without `documents` those in common, by name.
        """
        order = common(first, second) if documents is None else documents
        return cls.from_relations(relations(first, order), relations(second, order))

    @classmethod
    def from_relations(cls, first: Ints, second: Ints) -> Agreement:
        """From the relations (+1, 0, -1) that two assessors gave to the same pairs."""
        cells = 3 * (1 - np.asarray(first)) + (1 - np.asarray(second))
        return cls(np.bincount(cells, minlength=9).reshape(3, 3).astype(np.float64))

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(self.counts + other.counts)

    def symmetrized(self) -> Agreement:
        """Every pair in both orientations and both orders of the assessors, a quarter each.

        Overall figures and the number of pairs stay; the names of documents no longer matter.
        """
        flipped = self.counts[::-1, ::-1]
        return Agreement((self.counts + self.counts.T + flipped + flipped.T) / 4)

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    @property
    def agreed(self) -> float:
        return float(np.trace(self.counts))

    @property
    def overall(self) -> float:
        """The share of pairs on which both said the same."""
        return ratio(self.agreed, self.total)

    @property
    def strict(self) -> tuple[float, float]:
        """(agreed, opposed) among the pairs on which neither said tie."""
        c = self.counts
        return float(c[0, 0] + c[2, 2]), float(c[0, 2] + c[2, 0])

    @property
    def without_ties(self) -> float:
        """The agreed share of the pairs on which neither said tie."""
        agreed, opposed = self.strict
        return ratio(agreed, agreed + opposed)

    @property
    def ties(self) -> tuple[float, float]:
        """The share of ties in the rows and in the columns."""
        rows, columns = float(self.counts[1].sum()), float(self.counts[:, 1].sum())
        return ratio(rows, self.total), ratio(columns, self.total)

    @property
    def table(self) -> Floats:
        """Row-normalized: what the other says, given what one said; NaN rows where nothing was."""
        sums = self.counts.sum(axis=1, keepdims=True)
        empty = np.full((3, 3), np.nan)
        found: Floats = np.divide(self.counts, sums, out=empty, where=sums > 0)
        return found

    @property
    def chance(self) -> float:
        """The agreement expected of two who answer as often, but independently (Cohen 1960)."""
        return float((self._expected() * np.eye(3)).sum()) if self.total else math.nan

    @property
    def kappa(self) -> float:
        """Cohen's kappa: (overall - chance) / (1 - chance)."""
        return self._kappa(np.eye(3))

    @property
    def weighted_kappa(self) -> float:
        """Cohen's kappa with linear weights: a tie is half as wrong as the opposite (1968)."""
        return self._kappa(LINEAR)

    def _expected(self) -> Floats:
        found: Floats = np.outer(self.counts.sum(axis=1), self.counts.sum(axis=0)) / self.total**2
        return found

    def _kappa(self, weights: Floats) -> float:
        if not self.total:
            return math.nan
        lost = float(((1 - weights) * self.counts).sum()) / self.total
        expected = float(((1 - weights) * self._expected()).sum())
        return 1 - lost / expected if expected > 0 else math.nan

    def rows(self) -> list[list[str]]:
        """The row-normalized table as text, a dash where a row is empty."""
        return [
            [sign, *("–" if math.isnan(x) else f"{x:.4f}" for x in row)]
            for sign, row in zip(SIGNS, self.table, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints; chance and kappas also of the symmetrized table."""
        both = self.symmetrized()
        return {
            "pairs": self.total,
            "counts": self.counts.tolist(),
            "table": [[defined(x) for x in row] for row in self.table.tolist()],
            "overall": defined(self.overall),
            "without_ties": defined(self.without_ties),
            "ties": [defined(x) for x in self.ties],
            "chance": defined(self.chance),
            "kappa": defined(self.kappa),
            "weighted_kappa": defined(self.weighted_kappa),
            "symmetrized": {
                name: defined(getattr(both, name)) for name in ("chance", "kappa", "weighted_kappa")
            },
        }


@dataclass(frozen=True)
class ChiSquared:
    """Pearson's test with one degree of freedom, without Yates's correction."""

    statistic: float
    p: float

    def to_dict(self) -> dict[str, float | None]:
        return {"statistic": defined(self.statistic), "p": defined(self.p), "df": 1}

    def __str__(self) -> str:
        if math.isnan(self.statistic):
            return "no test: one of the methods has no pairs, or all pairs went the same way"
        p = "p < .001" if self.p < 0.001 else f"p = {self.p:.3f}"
        return f"χ² = {self.statistic:.1f}, df = 1, {p}"


def chi_squared(a: float, b: float, c: float, d: float) -> ChiSquared:
    """N(ad - bc)^2 / ((a+b)(c+d)(a+c)(b+d)): methods that agreed a, c times and disagreed b, d."""
    under = (a + b) * (c + d) * (a + c) * (b + d)
    if under == 0:
        return ChiSquared(math.nan, math.nan)
    statistic = (a + b + c + d) * (a * d - b * c) ** 2 / under
    return ChiSquared(statistic, math.erfc(math.sqrt(statistic / 2)))


def compare_methods(one: Agreement, other: Agreement) -> dict[str, ChiSquared]:
    """Do two methods agree equally often?  "overall", and "without_ties".

    The test takes pairs as independent.  Those of one query are not, so p is too small.
    """
    return {
        "overall": chi_squared(
            one.agreed, one.total - one.agreed, other.agreed, other.total - other.agreed
        ),
        "without_ties": chi_squared(*one.strict, *other.strict),
    }


def caution(top: Agreement, other: Agreement | None = None) -> str:
    """The line to print beside the overall agreement of top-k results."""
    chance = top.symmetrized().chance
    text = (
        "Caution: overall agreement favors top-k, because all pairs outside the top are ties by "
        f"force: {top.ties[0]:.1%} of pairs, and {chance:.3f} would agree by chance"
    )
    if other is not None and other.total:
        text += f" (against {other.symmetrized().chance:.3f})"
    return text + ". Compare kappa, and agreement without ties."


Pair = tuple[str, str, str]  # query and two documents, by name


@dataclass(frozen=True, eq=False)
class Overlap:
    """What `first` (rows) and `second` (columns) said about one query."""

    query: str
    first: str
    second: str
    agreement: Agreement


def result_overlaps(results: Results, tool: str | None = None) -> list[Overlap]:
    """From final results: all document pairs of every query that two people judged by one tool."""
    people: dict[tuple[str, str], dict[str, Labels]] = {}
    for (query, assessor, used), labels in results.items():
        if tool in (None, used):
            people.setdefault((query, used), {})[assessor] = labels
    return [
        Overlap(query, a, b, Agreement.from_labels(labeled[a], labeled[b]))
        for (query, _), labeled in people.items()
        for a, b in combinations(sorted(labeled), 2)
    ]


def pair_overlaps(records: Iterable[Record]) -> list[Overlap]:
    """From raw answers: the document pairs that two people were both asked.

    Who answered a pair several times counts with the last answer; A is the document whose
    name comes first.
    """
    cells: dict[tuple[str, str, str], np.ndarray] = {}
    for (query, _, _), answers in pair_answers(records).items():
        people = sorted(answers)
        for a, b in combinations(people, 2):
            counts = cells.get((query, a, b))
            if counts is None:
                counts = cells[query, a, b] = np.zeros((3, 3))
            counts[1 - answers[a], 1 - answers[b]] += 1
    return [Overlap(*key, Agreement(counts)) for key, counts in cells.items()]


def pair_answers(records: Iterable[Record]) -> dict[Pair, dict[str, int]]:
    """What each person said about each pair of documents: the relation of the first by name."""
    found: dict[Pair, dict[str, int]] = {}
    for record in judged(records):
        if (pair := record.pair) is not None:
            a, b, outcome = pair
            found.setdefault((record.query, a, b), {})[record.assessor] = outcome
    return found


def total(overlaps: Iterable[Overlap]) -> Agreement:
    """All pairs of all queries and couples in one table."""
    counts = [overlap.agreement.counts for overlap in overlaps]
    return Agreement(np.sum(counts, axis=0)) if counts else Agreement.empty()


def by_query(overlaps: Iterable[Overlap]) -> dict[str, Agreement]:
    """One table a query."""
    parts: dict[str, list[Overlap]] = {}
    for overlap in overlaps:
        parts.setdefault(overlap.query, []).append(overlap)
    return {query: total(found) for query, found in parts.items()}


def by_assessor(overlaps: Iterable[Overlap]) -> dict[str, dict[str, Agreement]]:
    """Each assessor (rows) with each of the others (columns)."""
    counts: dict[str, dict[str, np.ndarray]] = {}
    for o in overlaps:
        for one, other, table in (
            (o.first, o.second, o.agreement.counts),
            (o.second, o.first, o.agreement.counts.T),
        ):
            partners = counts.setdefault(one, {})
            partners[other] = partners.get(other, 0) + table
    return {
        one: {other: Agreement(table) for other, table in partners.items()}
        for one, partners in counts.items()
    }


def contrast(
    one: Mapping[str, Agreement], other: Mapping[str, Agreement], figure: str = "overall", *,
    rounds: int = 2000, seed: int = 0, level: float = 0.95,
) -> Interval:  # fmt: skip
    """The figure of `one` less that of `other` (tables by query), and its bootstrap interval.

    `figure` is overall, without_ties or kappa, the latter of symmetrized tables.  A query that
    only one method has counts for that method; NaN where a method has no pairs.
    """
    if figure not in FIGURES:
        raise DataError(f"figure must be one of {', '.join(FIGURES)}; got {figure!r}.")
    queries = sorted({*one, *other})
    none = Agreement.empty()
    first, second = (
        np.array([method.get(q, none).symmetrized().counts for q in queries]).reshape(-1, 3, 3)
        for method in (one, other)
    )

    def statistic(weights: Floats) -> Floats:
        return FIGURES[figure](np.tensordot(weights, first, 1)) - FIGURES[figure](
            np.tensordot(weights, second, 1)
        )

    return bootstrap(statistic, len(queries), rounds, seed, level)


def estimate(
    tables: Mapping[str, Agreement], figure: str = "overall", *,
    rounds: int = 2000, seed: int = 0, level: float = 0.95,
) -> Interval:  # fmt: skip
    """Return a figure of all tables (by query) together, with its bootstrap interval."""
    counts = np.array([table.symmetrized().counts for table in tables.values()]).reshape(-1, 3, 3)

    def statistic(weights: Floats) -> Floats:
        return FIGURES[figure](np.tensordot(weights, counts, 1))

    return bootstrap(statistic, len(tables), rounds, seed, level)


def _overall(counts: Floats) -> Floats:
    return _share(np.trace(counts, axis1=1, axis2=2), counts.sum(axis=(1, 2)))


def _without_ties(counts: Floats) -> Floats:
    agreed = counts[:, 0, 0] + counts[:, 2, 2]
    return _share(agreed, agreed + counts[:, 0, 2] + counts[:, 2, 0])


def _kappa(counts: Floats) -> Floats:
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    chance = _share((rows * columns).sum(axis=1), counts.sum(axis=(1, 2)) ** 2)
    return _share(_overall(counts) - chance, 1 - chance)


def _share(over: Floats, under: Floats) -> Floats:
    empty = np.full(over.shape, np.nan)
    found: Floats = np.divide(over, under, out=empty, where=under > 0)
    return found


FIGURES: Mapping[str, Callable[[Floats], Floats]] = {
    "overall": _overall,
    "without_ties": _without_ties,
    "kappa": _kappa,
}
