"""How far two measures agree on which of two rankings is better (Zhou et al. 2013, section 3).

Two DCGs that order the grades alike may still order rankings differently; this counts how often
they do, on the rankings at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.ranked import Ranked, Scale, wanted
from firstpage.errors import DataError
from firstpage.measures.compare import TIE
from firstpage.measures.measure import Convention
from firstpage.measures.measure import convention as named_convention
from firstpage.types import Floats, Ints

BINS, WORST = 10, 5


@dataclass(frozen=True)
class Bin:
    """Pairs whose difference by the first measure, without its sign, lies from low to high."""

    low: float
    high: float
    pairs: int
    agree: int
    oppose: int
    one_ties: int

    @property
    def rate(self) -> float:
        """The share that agrees; NaN where there is no pair."""
        return self.agree / self.pairs if self.pairs else float("nan")


@dataclass(frozen=True)
class Agreement:
    """Pairs of rankings under two measures.

    agree      both say the same of which is better, or both see a tie (`both_tie` of them)
    oppose     they say the opposite
    one_ties   one sees a tie and the other a difference
    """

    pairs: int
    agree: int
    both_tie: int
    oppose: int
    one_ties: int
    bins: tuple[Bin, ...]

    @property
    def rate(self) -> float:
        return self.agree / self.pairs

    def to_dict(self) -> dict[str, Any]:
        bins = [{**vars(b), "rate": b.rate if b.pairs else None} for b in self.bins]
        return {**vars(self), "rate": self.rate, "bins": bins}


def agreement(first: Floats, second: Floats, bins: int = BINS) -> Agreement:
    """Of differences of the same pairs under two measures, by the size of the first's."""
    one, two = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if one.shape != two.shape or one.ndim != 1 or not len(one):
        raise DataError("give the differences of the same pairs under both measures, one or more.")
    if bins < 1:
        raise DataError(f"bins must be at least 1; got {bins}.")
    a, b = signs(one), signs(two)
    edges = np.linspace(0.0, max(float(np.abs(one).max()), TIE), bins + 1)
    at = np.clip(np.searchsorted(edges, np.abs(one), side="right") - 1, 0, bins - 1)
    kinds = {"agree": a == b, "oppose": a * b < 0, "one_ties": (a == 0) != (b == 0)}
    by_bin = {k: np.bincount(at[hit], minlength=bins).tolist() for k, hit in kinds.items()}
    sizes = np.bincount(at, minlength=bins).tolist()
    found = tuple(
        Bin(float(edges[i]), float(edges[i + 1]), sizes[i], **{k: by_bin[k][i] for k in kinds})
        for i in range(bins)
    )
    totals = {k: int(hit.sum()) for k, hit in kinds.items()}
    return Agreement(len(one), bins=found, both_tie=int(((a == 0) & (b == 0)).sum()), **totals)


def signs(differences: Floats) -> Ints:
    """-1, 0 or 1; what is zero but for rounding is a tie."""
    close = TIE * max(1.0, float(np.abs(differences).max(initial=0.0)))
    return np.where(np.abs(differences) <= close, 0, np.sign(differences)).astype(np.int64)


def list_agreement(a: Any, b: Any, first: Utility, second: Utility, bins: int = BINS) -> Agreement:
    """Of pairs of grade lists: row i of `a` (n x K grades) against row i of `b`, by two DCGs."""
    one, two = (list_values(a, u) - list_values(b, u) for u in (first, second))
    return agreement(one, two, bins)


def list_values(grades: Any, utility: Utility) -> Floats:
    """The DCG of every row of n x K grades; places beyond the utility's count nothing."""
    lists = np.asarray(grades)
    if lists.ndim != 2 or lists.shape[1] < utility.n_positions:
        raise DataError(
            f"grade lists must be rows of at least {utility.n_positions} grades, as many as the "
            f"measure has places; the shape is {lists.shape}."
        )
    places = np.arange(utility.n_positions)
    lists = lists[:, places]
    off = ~np.isin(lists, utility.grades)
    if off.any():
        raise DataError(f"the measure has no gain for the grade {lists[off][0]}.")
    found: Floats = utility.table()[places, np.searchsorted(utility.grades, lists)].sum(axis=1)
    return found


@dataclass(frozen=True)
class Disagreement:
    """A query on which two measures see two systems in opposite order."""

    query: str
    a: str
    b: str
    first: float
    second: float
    grades_a: tuple[int | None, ...]
    grades_b: tuple[int | None, ...]


@dataclass(frozen=True)
class SystemPair:
    """Two systems whose means two measures order differently."""

    a: str
    b: str
    first: float
    second: float


@dataclass(frozen=True)
class Coherence:
    """Two measures on the same systems: pair by pair, and on average.

    means     by measure's number (0, 1) and system
    orders    the systems from the best to the worst, by each measure
    differing pairs of systems of which the two say different things
    """

    texts: tuple[str, str]
    systems: tuple[str, ...]
    queries: int
    agreement: Agreement
    worst: tuple[Disagreement, ...]
    means: tuple[dict[str, float], dict[str, float]]
    orders: tuple[tuple[str, ...], tuple[str, ...]]
    differing: tuple[SystemPair, ...]

    def __repr__(self) -> str:
        return (
            f"Coherence({self.texts[0]} and {self.texts[1]}: {self.queries} queries, "
            f"{len(self.systems)} systems, agree on {self.agreement.rate:.1%} of "
            f"{self.agreement.pairs} pairs of lists)"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "measures": list(self.texts), "queries": self.queries,
            "agreement": self.agreement.to_dict(), "means": list(self.means),
            "orders": [list(o) for o in self.orders],
            "differing": [dict(vars(d)) for d in self.differing],
            "worst": [dict(vars(d)) for d in self.worst],
        }  # fmt: skip


def coherence(
    systems: Mapping[str, Any], truth: Any, first: str | Utility, second: str | Utility, *,
    qid: Any = None, docid: Any = None, bins: int = BINS, worst: int = WORST,
    convention: str | Convention = "default",
) -> Coherence:  # fmt: skip
    """Compare two measures on all pairs of systems, query by query.

    `systems` and `truth` are what `compare` takes; measures are DCG or NDCG, or measure files.
    """
    asked = wanted(first), wanted(second)
    depth = max(w.depth for w in asked)
    ranked = Ranked.of(systems, truth, named_convention(convention), qid, docid, depth)
    one, two = (ranked.scale(w) for w in asked)
    return coherence_of(ranked, one, two, bins, worst)


def coherence_of(
    ranked: Ranked, one: Scale, two: Scale, bins: int = BINS, worst: int = WORST
) -> Coherence:
    """The same of rankings that are read already."""
    values = ranked.values(one), ranked.values(two)
    pairs = list(combinations(range(len(ranked.names)), 2))
    gaps = [np.stack([v[i] - v[j] for i, j in pairs]) for v in values]
    means = [v.mean(axis=1) for v in values]
    return Coherence(
        (one.text, two.text), ranked.names, len(ranked.queries),
        agreement(gaps[0].ravel(), gaps[1].ravel(), bins),
        _worst(ranked, pairs, gaps, max(one.places, two.places), worst),
        (_named(ranked, means[0]), _named(ranked, means[1])),
        (_order(ranked, means[0]), _order(ranked, means[1])),
        _differing(ranked, pairs, means),
    )  # fmt: skip


def _named(ranked: Ranked, means: Floats) -> dict[str, float]:
    return dict(zip(ranked.names, means.tolist(), strict=True))


def _order(ranked: Ranked, means: Floats) -> tuple[str, ...]:
    return tuple(ranked.names[i] for i in np.argsort(-means, kind="stable"))


def _worst(
    ranked: Ranked, pairs: list[tuple[int, int]], gaps: list[Floats], places: int, count: int
) -> tuple[Disagreement, ...]:
    """Where both measures are surest of the opposite: the product of both differences."""
    against = (signs(gaps[0].ravel()) * signs(gaps[1].ravel())).reshape(gaps[0].shape) < 0
    size = np.where(against, np.abs(gaps[0] * gaps[1]), 0.0)
    found = []
    for flat in np.argsort(-size, axis=None, kind="stable")[:count]:
        p, q = (int(n) for n in np.unravel_index(flat, size.shape))
        if not against[p, q]:
            break
        i, j = pairs[p]
        found.append(
            Disagreement(
                ranked.queries[q], ranked.names[i], ranked.names[j],
                float(gaps[0][p, q]), float(gaps[1][p, q]),
                ranked.shown(i, q, places), ranked.shown(j, q, places),
            )
        )  # fmt: skip
    return tuple(found)


def _differing(
    ranked: Ranked, pairs: list[tuple[int, int]], means: list[Floats]
) -> tuple[SystemPair, ...]:
    one, two = (np.array([m[i] - m[j] for i, j in pairs]) for m in means)
    return tuple(
        SystemPair(ranked.names[i], ranked.names[j], float(one[p]), float(two[p]))
        for p, (i, j) in enumerate(pairs)
        if signs(one)[p] != signs(two)[p]
    )
