"""How often two measures agree on which of two rankings is better (Zhou et al. 2013, section 3).

Two DCGs that order the grades in the same way may still order rankings differently.  The functions
here count how often they do on given rankings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats, Ints
from firstpage.data.preferences import Utility
from firstpage.evaluation.comparison.comparison import TIE_TOLERANCE
from firstpage.evaluation.dcglearn.system_rankings import BoundDCG, SystemRankings, parse_dcg
from firstpage.evaluation.measures.base import Convention

BINS, MAX_DISAGREEMENTS = 10, 5


@dataclass(frozen=True)
class AgreementBin:
    """Pairs whose absolute difference by the first measure lies between two bounds.

    `one_ties` counts the pairs on which one measure alone sees a tie.
    """

    low: float
    high: float
    pairs: int
    agree: int
    oppose: int
    one_ties: int

    @property
    def rate(self) -> float:
        """Fraction of pairs on which the measures agree; NaN where there is no pair."""
        return self.agree / self.pairs if self.pairs else float("nan")


@dataclass(frozen=True)
class MeasureAgreement:
    """Agreement of two measures on pairs of rankings.

    Attributes
    ----------
    pairs : int
        Number of pairs.
    agree : int
        Pairs on which both prefer the same ranking, or both see a tie.
    both_tie : int
        Pairs on which both see a tie.
    oppose : int
        Pairs on which they prefer different rankings.
    one_ties : int
        Pairs on which one alone sees a tie.
    bins : tuple of AgreementBin
        The same by the absolute difference of the first measure.
    """

    pairs: int
    agree: int
    both_tie: int
    oppose: int
    one_ties: int
    bins: tuple[AgreementBin, ...]

    @property
    def rate(self) -> float:
        """Fraction of pairs on which the measures agree."""
        return self.agree / self.pairs

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        bins = [{**vars(b), "rate": b.rate if b.pairs else None} for b in self.bins]
        return {**vars(self), "rate": self.rate, "bins": bins}


def measure_agreement(first: Floats, second: Floats, bins: int = BINS) -> MeasureAgreement:
    """Return the agreement of two measures from their differences on the same pairs."""
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise DataError(
            "first and second must be the differences of the same pairs under both measures, at "
            "least one pair."
        )
    if bins < 1:
        raise DataError(f"bins must be at least 1; got {bins}.")
    a, b = signs(first), signs(second)
    edges = np.linspace(0.0, max(float(np.abs(first).max()), TIE_TOLERANCE), bins + 1)
    number = np.clip(np.searchsorted(edges, np.abs(first), side="right") - 1, 0, bins - 1)
    kinds = {"agree": a == b, "oppose": a * b < 0, "one_ties": (a == 0) != (b == 0)}
    by_bin = {k: np.bincount(number[flags], minlength=bins).tolist() for k, flags in kinds.items()}
    sizes = np.bincount(number, minlength=bins).tolist()
    agreement_bins = tuple(
        AgreementBin(
            float(edges[i]), float(edges[i + 1]), sizes[i], **{k: by_bin[k][i] for k in kinds}
        )
        for i in range(bins)
    )
    totals = {k: int(flags.sum()) for k, flags in kinds.items()}
    both_tie = int(((a == 0) & (b == 0)).sum())
    return MeasureAgreement(len(first), bins=agreement_bins, both_tie=both_tie, **totals)


def signs(differences: Floats) -> Ints:
    """Return -1, 0 or 1 per difference; differences within rounding error are ties."""
    tolerance = TIE_TOLERANCE * max(1.0, float(np.abs(differences).max(initial=0.0)))
    return np.where(np.abs(differences) <= tolerance, 0, np.sign(differences)).astype(np.int64)


def list_agreement(
    a: Any, b: Any, first: Utility, second: Utility, bins: int = BINS
) -> MeasureAgreement:
    """Return the agreement of two DCGs on lists of grades.

    Row i of `a` (n x K grades) is compared with row i of `b`.
    """
    by_first, by_second = (list_values(a, u) - list_values(b, u) for u in (first, second))
    return measure_agreement(by_first, by_second, bins)


def list_values(grades: Any, utility: Utility) -> Floats:
    """Return the DCG of every row of n x K grades; positions beyond the utility count nothing."""
    lists = np.asarray(grades)
    if lists.ndim != 2 or lists.shape[1] < utility.n_positions:
        raise DataError(
            f"grade lists must be rows of at least {utility.n_positions} grades, one per position "
            "of "
            f"the measure; the shape is {lists.shape}."
        )
    positions = np.arange(utility.n_positions)
    lists = lists[:, positions]
    unknown = ~np.isin(lists, utility.grades)
    if unknown.any():
        raise DataError(f"the measure has no gain for the grade {lists[unknown][0]}.")
    levels = np.searchsorted(utility.grades, lists)
    values: Floats = utility.table()[positions, levels].sum(axis=1)
    return values


@dataclass(frozen=True)
class Disagreement:
    """A query on which two measures order two systems oppositely.

    Attributes
    ----------
    query, a, b : str
        The query and the two systems.
    first, second : float
        Value of a minus that of b, by the first and by the second measure.
    grades_a, grades_b : tuple of int or None
        Grades of the two lists in ranked order; None for an unjudged document.
    """

    query: str
    a: str
    b: str
    first: float
    second: float
    grades_a: tuple[int | None, ...]
    grades_b: tuple[int | None, ...]


@dataclass(frozen=True)
class SystemPair:
    """Two systems whose means two measures order differently.

    Attributes
    ----------
    a, b : str
        The systems.
    first, second : float
        Mean of a minus that of b, by the first and by the second measure.
    """

    a: str
    b: str
    first: float
    second: float


@dataclass(frozen=True)
class Coherence:
    """Agreement of two measures on the same systems, pair by pair and on average.

    Attributes
    ----------
    measures : tuple of str
        Names of the two measures.
    systems : tuple of str
        Names of the systems.
    queries : int
        Number of queries.
    agreement : MeasureAgreement
        Agreement on all pairs of lists.
    worst_disagreements : tuple of Disagreement
        Pairs of lists with the largest opposite differences.
    means : tuple of dict
        Mean per system, by the first and by the second measure.
    orders : tuple of tuple of str
        Systems from the best to the worst, by the first and by the second measure.
    differing_pairs : tuple of SystemPair
        Pairs of systems whose means the measures order differently.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = {"q": {"a": 2, "b": 1, "c": 0}}
    >>> runs = {"x": {"q": {"a": 2.0, "c": 1.0}}, "y": {"q": {"b": 2.0, "a": 1.0}}}
    >>> fp.dcglearn.coherence(runs, qrels, "DCG@1", "DCG@2")
    Coherence(DCG@1 and DCG@2: 1 queries, 2 systems, agree on 100.0% of 1 pairs of lists)
    """

    measures: tuple[str, str]
    systems: tuple[str, ...]
    queries: int
    agreement: MeasureAgreement
    worst_disagreements: tuple[Disagreement, ...]
    means: tuple[dict[str, float], dict[str, float]]
    orders: tuple[tuple[str, ...], tuple[str, ...]]
    differing_pairs: tuple[SystemPair, ...]

    def __repr__(self) -> str:
        return (
            f"Coherence({self.measures[0]} and {self.measures[1]}: {self.queries} queries, "
            f"{len(self.systems)} systems, agree on {self.agreement.rate:.1%} of "
            f"{self.agreement.pairs} pairs of lists)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields for JSON.

        Returns
        -------
        dict
            Plain values by name.
        """
        return {
            "measures": list(self.measures),
            "queries": self.queries,
            "agreement": self.agreement.to_dict(),
            "means": list(self.means),
            "orders": [list(o) for o in self.orders],
            "differing_pairs": [dict(vars(d)) for d in self.differing_pairs],
            "worst_disagreements": [dict(vars(d)) for d in self.worst_disagreements],
        }


def coherence(
    systems: Mapping[str, Any],
    truth: Any,
    first: str | Utility,
    second: str | Utility,
    *,
    qid: Any = None,
    docid: Any = None,
    bins: int = BINS,
    max_disagreements: int = MAX_DISAGREEMENTS,
    convention: str | Convention = "default",
) -> Coherence:
    """Compare two measures on all pairs of systems, query by query.

    Parameters
    ----------
    systems : mapping of str to scores or run
        Rankings by name of the system, as `compare` takes them; at least two.
    truth : Dataset, Qrels or array
        Judgments, as `compare` takes them.
    first, second : str or Utility
        The measures: DCG or NDCG such as "NDCG@10", a measure file, or a Utility.
    qid : array, optional
        Query of each document, where `truth` is an array.
    docid : array, optional
        Name of each document.
    bins : int, default 10
        Number of bins of the absolute difference of the first measure.
    max_disagreements : int, default 5
        Number of worst disagreements to list.
    convention : str or Convention, default "default"
        Convention of the measures.

    Returns
    -------
    Coherence
        Agreement on pairs of lists, and the means and orders of the systems.

    Raises
    ------
    MeasureError
        If a measure is not a DCG or NDCG, or has no gain for a grade of the data.
    DataError
        If there are fewer than two systems, or they share no judged query.

    References
    ----------
    .. [1] Zhou et al. 2013 (see `DCGLearn`), section 3.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = {"q": {"a": 2, "b": 1, "c": 0, "d": 1}}
    >>> runs = {
    ...     "top": {"q": {"a": 3.0, "c": 2.0, "b": 1.0}},
    ...     "wide": {"q": {"b": 3.0, "d": 2.0, "c": 1.0}},
    ... }
    >>> measures = "DCG(gain=[0, 1, 9])@2", "DCG(gain=[0, 1, 1.1])@2"
    >>> result = fp.dcglearn.coherence(runs, qrels, *measures)
    >>> result.orders
    (('top', 'wide'), ('wide', 'top'))
    >>> result.agreement.oppose
    1
    """
    specs = parse_dcg(first), parse_dcg(second)
    depth = max(spec.depth for spec in specs)
    rankings = SystemRankings.from_systems(
        systems, truth, Convention(convention), qid, docid, depth
    )
    first_dcg, second_dcg = (rankings.bind(spec) for spec in specs)
    return coherence_of_rankings(rankings, first_dcg, second_dcg, bins, max_disagreements)


def coherence_of_rankings(
    rankings: SystemRankings,
    first: BoundDCG,
    second: BoundDCG,
    bins: int = BINS,
    max_disagreements: int = MAX_DISAGREEMENTS,
) -> Coherence:
    """Compare two measures on rankings that have been read already."""
    values = rankings.values(first), rankings.values(second)
    pairs = list(combinations(range(len(rankings.names)), 2))
    gaps = [np.stack([v[i] - v[j] for i, j in pairs]) for v in values]
    means = [v.mean(axis=1) for v in values]
    return Coherence(
        (first.text, second.text),
        rankings.names,
        len(rankings.queries),
        measure_agreement(gaps[0].ravel(), gaps[1].ravel(), bins),
        _worst_disagreements(
            rankings, pairs, gaps, max(first.positions, second.positions), max_disagreements
        ),
        (_by_name(rankings, means[0]), _by_name(rankings, means[1])),
        (_order(rankings, means[0]), _order(rankings, means[1])),
        _differing_pairs(rankings, pairs, means),
    )


def _by_name(rankings: SystemRankings, means: Floats) -> dict[str, float]:
    return dict(zip(rankings.names, means.tolist(), strict=True))


def _order(rankings: SystemRankings, means: Floats) -> tuple[str, ...]:
    return tuple(rankings.names[i] for i in np.argsort(-means, kind="stable"))


def _worst_disagreements(
    rankings: SystemRankings,
    pairs: list[tuple[int, int]],
    gaps: list[Floats],
    positions: int,
    count: int,
) -> tuple[Disagreement, ...]:
    """Return the opposite pairs with the largest product of both differences."""
    opposite = (signs(gaps[0].ravel()) * signs(gaps[1].ravel())).reshape(gaps[0].shape) < 0
    size = np.where(opposite, np.abs(gaps[0] * gaps[1]), 0.0)
    disagreements = []
    for flat in np.argsort(-size, axis=None, kind="stable")[:count]:
        p, q = (int(n) for n in np.unravel_index(flat, size.shape))
        if not opposite[p, q]:
            break
        i, j = pairs[p]
        disagreements.append(
            Disagreement(
                rankings.queries[q],
                rankings.names[i],
                rankings.names[j],
                float(gaps[0][p, q]),
                float(gaps[1][p, q]),
                rankings.grades_of(i, q, positions),
                rankings.grades_of(j, q, positions),
            )
        )
    return tuple(disagreements)


def _differing_pairs(
    rankings: SystemRankings, pairs: list[tuple[int, int]], means: list[Floats]
) -> tuple[SystemPair, ...]:
    first, second = (np.array([m[i] - m[j] for i, j in pairs]) for m in means)
    return tuple(
        SystemPair(rankings.names[i], rankings.names[j], float(first[p]), float(second[p]))
        for p, (i, j) in enumerate(pairs)
        if signs(first)[p] != signs(second)[p]
    )
