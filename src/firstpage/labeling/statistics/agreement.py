"""Agreement of two assessors' preferences: the 3 x 3 tables of Niu et al. 2012, Tables 2 and 3.

`estimate` and `contrast` have bootstrap intervals over queries: pairs of one query are not
independent, and a test that treats them as independent rejects too often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats, Ints
from firstpage.labeling.statistics.intervals import (
    Interval,
    bootstrap,
    format_p,
    nan_to_none,
    ratio,
)
from firstpage.labeling.statistics.records import Labels, Record, Results, counted_records
from firstpage.labeling.statistics.relations import common_documents, relations

SIGNS = ("A≻B", "A∼B", "A≺B")
LINEAR_WEIGHTS = 1 - np.abs(np.subtract.outer(np.arange(3), np.arange(3))) / 2


@dataclass(frozen=True, eq=False)
class Agreement:
    """A 3 x 3 table of document pairs: rows are one assessor's answers, columns the other's.

    A fraction of no pairs is NaN, and so is kappa where the expected agreement is 1. The chance
    agreement and kappa depend on which document of a pair is called A; `symmetrized` removes
    this dependence.

    Parameters
    ----------
    counts : array of shape (3, 3)
        Numbers of pairs; rows and columns are A better, tie, B better.

    Raises
    ------
    DataError
        If `counts` is not a 3 x 3 table of numbers of at least 0.

    References
    ----------
    J. Cohen (1960). A Coefficient of Agreement for Nominal Scales. Educational and Psychological
    Measurement 20(1).

    J. Cohen (1968). Weighted Kappa. Psychological Bulletin 70(4).

    Examples
    --------
    >>> from firstpage.labeling.statistics.agreement import Agreement
    >>> table = Agreement.from_labels({"a": 2, "b": 1, "c": 0}, {"a": 2, "b": 0, "c": 0})
    >>> table.total, round(table.overall, 3), table.without_ties
    (3.0, 0.667, 1.0)
    """

    counts: Floats

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts, np.float64)
        if counts.shape != (3, 3) or not (counts >= 0).all():
            raise DataError("an agreement table must have 3 x 3 counts of at least 0.")
        counts = counts.copy()
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    @classmethod
    def empty(cls) -> Agreement:
        """Return the table without pairs."""
        return cls(np.zeros((3, 3)))

    @classmethod
    def from_labels(
        cls, first: Labels, second: Labels, documents: Sequence[str] | None = None
    ) -> Agreement:
        """Return the table of all pairs of documents that both assessors labeled.

        Parameters
        ----------
        first, second : mapping of str to float
            The labels of the two assessors.
        documents : sequence of str, optional
            The documents; A is the earlier one of a pair. By default the common documents,
            sorted by name.

        Returns
        -------
        Agreement
            The table.
        """
        order = common_documents(first, second) if documents is None else documents
        return cls.from_relations(relations(first, order), relations(second, order))

    @classmethod
    def from_relations(cls, first: Ints, second: Ints) -> Agreement:
        """Return the table of the relations that two assessors gave to the same pairs.

        Parameters
        ----------
        first, second : array of int
            1 (A better), 0 (tie) or -1 (B better) per pair.

        Returns
        -------
        Agreement
            The table.
        """
        cells = 3 * (1 - np.asarray(first)) + (1 - np.asarray(second))
        return cls(np.bincount(cells, minlength=9).reshape(3, 3).astype(np.float64))

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(self.counts + other.counts)

    def symmetrized(self) -> Agreement:
        """Return the mean table over both orientations of pairs and both orders of assessors.

        Overall agreement and the number of pairs stay; the names of documents no longer matter.
        """
        flipped = self.counts[::-1, ::-1]
        return Agreement((self.counts + self.counts.T + flipped + flipped.T) / 4)

    @property
    def total(self) -> float:
        """The number of pairs."""
        return float(self.counts.sum())

    @property
    def agreed(self) -> float:
        """The number of pairs with equal answers."""
        return float(np.trace(self.counts))

    @property
    def overall(self) -> float:
        """The fraction of pairs with equal answers."""
        return ratio(self.agreed, self.total)

    @property
    def strict(self) -> tuple[float, float]:
        """(agreed, opposed): numbers of pairs that neither assessor called a tie."""
        c = self.counts
        return float(c[0, 0] + c[2, 2]), float(c[0, 2] + c[2, 0])

    @property
    def without_ties(self) -> float:
        """The fraction of equal answers among the pairs that neither assessor called a tie."""
        agreed, opposed = self.strict
        return ratio(agreed, agreed + opposed)

    @property
    def ties(self) -> tuple[float, float]:
        """The fraction of ties in the rows and in the columns."""
        rows, columns = float(self.counts[1].sum()), float(self.counts[:, 1].sum())
        return ratio(rows, self.total), ratio(columns, self.total)

    @property
    def table(self) -> Floats:
        """The table with normalized rows; NaN in rows without pairs."""
        sums = self.counts.sum(axis=1, keepdims=True)
        empty = np.full((3, 3), np.nan)
        normalized: Floats = np.divide(self.counts, sums, out=empty, where=sums > 0)
        return normalized

    @property
    def chance(self) -> float:
        """The agreement expected by chance, given how often each answer occurs (Cohen 1960)."""
        return float((self._expected() * np.eye(3)).sum()) if self.total else math.nan

    @property
    def kappa(self) -> float:
        """Cohen's kappa: (overall - chance) / (1 - chance)."""
        return self._kappa(np.eye(3))

    @property
    def weighted_kappa(self) -> float:
        """Cohen's kappa with linear weights: a tie is half as wrong as the opposite (1968)."""
        return self._kappa(LINEAR_WEIGHTS)

    def _expected(self) -> Floats:
        """Return the cell probabilities of independent answers."""
        cells: Floats = np.outer(self.counts.sum(axis=1), self.counts.sum(axis=0)) / self.total**2
        return cells

    def _kappa(self, weights: Floats) -> float:
        if not self.total:
            return math.nan
        observed = float(((1 - weights) * self.counts).sum()) / self.total
        expected = float(((1 - weights) * self._expected()).sum())
        return 1 - observed / expected if expected > 0 else math.nan

    def rows(self) -> list[list[str]]:
        """Return the normalized table as text; a dash where a row has no pairs."""
        return [
            [sign, *("–" if math.isnan(x) else f"{x:.4f}" for x in row)]
            for sign, row in zip(SIGNS, self.table, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all statistics for JSON; chance and kappas also of the symmetrized table."""
        symmetrized = self.symmetrized()
        return {
            "pairs": self.total,
            "counts": self.counts.tolist(),
            "table": [[nan_to_none(x) for x in row] for row in self.table.tolist()],
            "overall": nan_to_none(self.overall),
            "without_ties": nan_to_none(self.without_ties),
            "ties": [nan_to_none(x) for x in self.ties],
            "chance": nan_to_none(self.chance),
            "kappa": nan_to_none(self.kappa),
            "weighted_kappa": nan_to_none(self.weighted_kappa),
            "symmetrized": {
                name: nan_to_none(getattr(symmetrized, name))
                for name in ("chance", "kappa", "weighted_kappa")
            },
        }


@dataclass(frozen=True)
class ChiSquared:
    """The result of Pearson's chi-squared test of a 2 x 2 table, without Yates' correction.

    Attributes
    ----------
    statistic : float
        The test statistic, with one degree of freedom; NaN if there is no test.
    p : float
        The p-value.

    Examples
    --------
    >>> from firstpage.labeling.statistics.agreement import chi_squared
    >>> round(chi_squared(90, 10, 70, 30).statistic, 3)
    12.5
    """

    statistic: float
    p: float

    def to_dict(self) -> dict[str, float | None]:
        """Return the result for JSON."""
        return {"statistic": nan_to_none(self.statistic), "p": nan_to_none(self.p), "df": 1}

    def __str__(self) -> str:
        if math.isnan(self.statistic):
            return "no test: a method has no pairs, or all pairs have the same result"
        return f"χ² = {self.statistic:.1f}, df = 1, {format_p(self.p)}"


def chi_squared(a: float, b: float, c: float, d: float) -> ChiSquared:
    """Return Pearson's test whether two methods agree equally often.

    The statistic is N (ad - bc)^2 / ((a+b)(c+d)(a+c)(b+d)).

    Parameters
    ----------
    a, b : float
        Numbers of pairs on which the first method's assessors agreed and disagreed.
    c, d : float
        The same of the second method.

    Returns
    -------
    ChiSquared
        Statistic and p-value.

    Examples
    --------
    >>> from firstpage.labeling.statistics.agreement import chi_squared
    >>> print(chi_squared(90, 10, 70, 30))
    χ² = 12.5, df = 1, p < .001
    """
    denominator = (a + b) * (c + d) * (a + c) * (b + d)
    if denominator == 0:
        return ChiSquared(math.nan, math.nan)
    statistic = (a + b + c + d) * (a * d - b * c) ** 2 / denominator
    return ChiSquared(statistic, math.erfc(math.sqrt(statistic / 2)))


def compare_methods(first: Agreement, second: Agreement) -> dict[str, ChiSquared]:
    """Test whether two labeling methods agree equally often.

    The test assumes independent pairs. Pairs of one query are not independent, so the p-value is
    too small; `contrast` gives an interval over queries.

    Parameters
    ----------
    first, second : Agreement
        The tables of the two methods.

    Returns
    -------
    dict of str to ChiSquared
        The tests of "overall" agreement and of agreement "without_ties".

    Examples
    --------
    >>> from firstpage.labeling.statistics.agreement import Agreement, compare_methods
    >>> first = Agreement([[45, 0, 5], [0, 0, 0], [5, 0, 45]])
    >>> second = Agreement([[35, 0, 15], [0, 0, 0], [15, 0, 35]])
    >>> print(compare_methods(first, second)["overall"])
    χ² = 12.5, df = 1, p < .001
    """
    return {
        "overall": chi_squared(
            first.agreed, first.total - first.agreed, second.agreed, second.total - second.agreed
        ),
        "without_ties": chi_squared(*first.strict, *second.strict),
    }


def caution(top: Agreement, graded: Agreement | None = None) -> str:
    """Return the caution to print beside the overall agreement of top-k results."""
    chance = top.symmetrized().chance
    text = (
        "Caution: overall agreement favors top-k labeling, because all pairs outside the top k are "
        f"forced ties: {top.ties[0]:.1%} of pairs; the agreement expected by chance is {chance:.3f}"
    )
    if graded is not None and graded.total:
        text += f" (graded: {graded.symmetrized().chance:.3f})"
    return text + ". Compare kappa, and agreement without ties."


Pair = tuple[str, str, str]  # query and two documents, by name


@dataclass(frozen=True, eq=False)
class Overlap:
    """The agreement of assessors `first` (rows) and `second` (columns) on one query."""

    query: str
    first: str
    second: str
    agreement: Agreement


def result_overlaps(results: Results, tool: str | None = None) -> list[Overlap]:
    """Return the overlaps of final results: all document pairs of queries judged by two people.

    Both must have used the same tool; with `tool`, this one.
    """
    by_query: dict[tuple[str, str], dict[str, Labels]] = {}
    for (query, assessor, used), labels in results.items():
        if tool in (None, used):
            by_query.setdefault((query, used), {})[assessor] = labels
    return [
        Overlap(query, a, b, Agreement.from_labels(labels[a], labels[b]))
        for (query, _), labels in by_query.items()
        for a, b in combinations(sorted(labels), 2)
    ]


def pair_overlaps(records: Iterable[Record]) -> list[Overlap]:
    """Return the overlaps of raw answers: the document pairs that two people both answered.

    Of several answers to a pair the last one counts; A is the document whose name comes first.
    """
    tables: dict[tuple[str, str, str], np.ndarray] = {}
    for (query, _, _), answers in pair_answers(records).items():
        for a, b in combinations(sorted(answers), 2):
            counts = tables.get((query, a, b))
            if counts is None:
                counts = tables[query, a, b] = np.zeros((3, 3))
            counts[1 - answers[a], 1 - answers[b]] += 1
    return [Overlap(*key, Agreement(counts)) for key, counts in tables.items()]


def pair_answers(records: Iterable[Record]) -> dict[Pair, dict[str, int]]:
    """Return the relation per pair of documents (sorted by name) and assessor."""
    answers: dict[Pair, dict[str, int]] = {}
    for record in counted_records(records):
        if (pair := record.pair) is not None:
            a, b, outcome = pair
            answers.setdefault((record.query, a, b), {})[record.assessor] = outcome
    return answers


def total(overlaps: Iterable[Overlap]) -> Agreement:
    """Return the table of all pairs of all queries and pairs of assessors."""
    counts = [overlap.agreement.counts for overlap in overlaps]
    return Agreement(np.sum(counts, axis=0)) if counts else Agreement.empty()


def by_query(overlaps: Iterable[Overlap]) -> dict[str, Agreement]:
    """Return a table per query."""
    groups: dict[str, list[Overlap]] = {}
    for overlap in overlaps:
        groups.setdefault(overlap.query, []).append(overlap)
    return {query: total(group) for query, group in groups.items()}


def by_assessor(overlaps: Iterable[Overlap]) -> dict[str, dict[str, Agreement]]:
    """Return a table per assessor (rows) and partner (columns)."""
    counts: dict[str, dict[str, np.ndarray]] = {}
    for o in overlaps:
        for assessor, partner, table in (
            (o.first, o.second, o.agreement.counts),
            (o.second, o.first, o.agreement.counts.T),
        ):
            partners = counts.setdefault(assessor, {})
            partners[partner] = partners.get(partner, 0) + table
    return {
        assessor: {partner: Agreement(table) for partner, table in partners.items()}
        for assessor, partners in counts.items()
    }


def contrast(
    first: Mapping[str, Agreement],
    second: Mapping[str, Agreement],
    statistic: str = "overall",
    *,
    rounds: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the difference of an agreement statistic between two methods, with its interval."""
    if statistic not in STATISTICS:
        raise DataError(f"statistic must be one of {', '.join(STATISTICS)}; got {statistic!r}.")
    queries = sorted({*first, *second})
    empty = Agreement.empty()
    counts, other_counts = (
        np.array([method.get(q, empty).symmetrized().counts for q in queries]).reshape(-1, 3, 3)
        for method in (first, second)
    )
    compute = STATISTICS[statistic]

    def difference(weights: Floats) -> Floats:
        return compute(np.tensordot(weights, counts, 1)) - compute(
            np.tensordot(weights, other_counts, 1)
        )

    return bootstrap(difference, len(queries), rounds, seed, level)


def estimate(
    tables: Mapping[str, Agreement],
    statistic: str = "overall",
    *,
    rounds: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return an agreement statistic of all tables (by query) with its bootstrap interval."""
    counts = np.array([table.symmetrized().counts for table in tables.values()]).reshape(-1, 3, 3)

    def compute(weights: Floats) -> Floats:
        return STATISTICS[statistic](np.tensordot(weights, counts, 1))

    return bootstrap(compute, len(tables), rounds, seed, level)


def _overall(counts: Floats) -> Floats:
    return _fraction(np.trace(counts, axis1=1, axis2=2), counts.sum(axis=(1, 2)))


def _without_ties(counts: Floats) -> Floats:
    agreed = counts[:, 0, 0] + counts[:, 2, 2]
    return _fraction(agreed, agreed + counts[:, 0, 2] + counts[:, 2, 0])


def _kappa(counts: Floats) -> Floats:
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    chance = _fraction((rows * columns).sum(axis=1), counts.sum(axis=(1, 2)) ** 2)
    return _fraction(_overall(counts) - chance, 1 - chance)


def _fraction(numerator: Floats, denominator: Floats) -> Floats:
    """Return numerator / denominator; NaN where the denominator is not positive."""
    empty = np.full(numerator.shape, np.nan)
    fraction: Floats = np.divide(numerator, denominator, out=empty, where=denominator > 0)
    return fraction


STATISTICS: Mapping[str, Callable[[Floats], Floats]] = {
    "overall": _overall,
    "without_ties": _without_ties,
    "kappa": _kappa,
}
