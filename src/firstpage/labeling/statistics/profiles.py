"""Profiles: a row per assessor, a row per query, and the most disputed pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

import numpy as np

from firstpage.labeling.statistics.agreement import (
    Agreement,
    by_assessor,
    by_query,
    pair_answers,
    pair_overlaps,
    result_overlaps,
)
from firstpage.labeling.statistics.consistency import (
    PositionBias,
    SelfConsistency,
    Triads,
    per_assessor,
    position_bias,
    self_consistency,
    triads,
)
from firstpage.labeling.statistics.intervals import Proportion, nan_to_none
from firstpage.labeling.statistics.records import Labels, Record, Results, counted_records
from firstpage.labeling.statistics.relations import common_documents, label_values

MODERATE_KAPPA = 0.4  # smaller values are "fair" at best (Landis and Koch 1977)


@dataclass(frozen=True, eq=False)
class AssessorProfile:
    """An assessor's agreement with the others, consistency and speed.

    Attributes
    ----------
    assessor : str
        The assessor.
    judgments : int
        Number of judgments that count.
    partners : int
        Number of other assessors with whom pairs are shared.
    agreement : float
        Mean over partners of the overall agreement on shared pairs.
    shared : Agreement
        The table of all shared pairs, this assessor in the rows.
    derived : Agreement
        The same for all pairs by the final orders.
    ties : float
        Fraction of ties among the answers.
    bias : PositionBias
        Preference for a side.
    gold : Proportion
        Correct answers to gold questions.
    repeats : SelfConsistency
        Equal answers to repeated questions.
    triads : Triads
        Circular triads.
    seconds : float
        Median of the active seconds per judgment; NaN if unknown.
    """

    assessor: str
    judgments: int
    partners: int
    agreement: float
    shared: Agreement
    derived: Agreement
    ties: float
    bias: PositionBias
    gold: Proportion
    repeats: SelfConsistency
    triads: Triads
    seconds: float

    @property
    def kappa(self) -> float:
        """Cohen's kappa with the others on shared pairs, independent of document names."""
        return self.shared.symmetrized().kappa

    def to_dict(self) -> dict[str, Any]:
        """Return the profile for JSON."""
        return {
            "assessor": self.assessor,
            "judgments": self.judgments,
            "partners": self.partners,
            "agreement": nan_to_none(self.agreement),
            "shared_pairs": _summary(self.shared),
            "derived_orders": _summary(self.derived),
            "ties": nan_to_none(self.ties),
            "position_bias": self.bias.to_dict(),
            "gold": self.gold.to_dict(),
            "repeats": self.repeats.to_dict(),
            "triads": self.triads.to_dict(),
            "median_seconds": nan_to_none(self.seconds),
        }


def _summary(table: Agreement) -> dict[str, float | None]:
    """Return the number of pairs and the agreement on them."""
    return {
        "pairs": table.total,
        "overall": nan_to_none(table.overall),
        "without_ties": nan_to_none(table.without_ties),
        "kappa": nan_to_none(table.symmetrized().kappa),
    }


@dataclass(frozen=True)
class DisputedPair:
    """A pair of documents that assessors ordered in opposite ways.

    `above`, `tied` and `below` count those who put the first document above, level with and below
    the second; `label_range` is the range of their label differences.
    """

    first: str
    second: str
    above: int
    tied: int
    below: int
    label_range: float

    @property
    def opposed(self) -> int:
        """The number of pairs of assessors with opposite answers."""
        return self.above * self.below


@dataclass(frozen=True, eq=False)
class QueryProfile:
    """The agreement on a query, and the pairs that assessors ordered in opposite ways.

    Attributes
    ----------
    query : str
        The query.
    assessors : int
        Number of assessors.
    agreement : Agreement
        Agreement of the final orders, where there are results; else that of shared pairs.
    disputed : tuple of DisputedPair
        The most disputed pairs, from the same source.
    shared : Agreement
        Agreement on the pairs that two assessors both answered.
    below : float
        The kappa below which the query is worth discussing.
    """

    query: str
    assessors: int
    agreement: Agreement
    disputed: tuple[DisputedPair, ...]
    shared: Agreement = field(default_factory=Agreement.empty)
    below: float = MODERATE_KAPPA

    @property
    def kappa(self) -> float:
        """Cohen's kappa, independent of document names."""
        return self.agreement.symmetrized().kappa

    @property
    def worth_discussing(self) -> bool:
        """Whether kappa is less than `below` and two assessors gave opposite answers."""
        return self.kappa < self.below and self.agreement.strict[1] > 0

    def to_dict(self) -> dict[str, Any]:
        """Return the profile for JSON."""
        return {
            "query": self.query,
            "assessors": self.assessors,
            "shared_pairs": _summary(self.shared),
            "agreement": nan_to_none(self.agreement.overall),
            "without_ties": nan_to_none(self.agreement.without_ties),
            "kappa": nan_to_none(self.kappa),
            "worth_discussing": self.worth_discussing,
            "disputed": [vars(pair) for pair in self.disputed],
        }


def assessor_profiles(
    records: Sequence[Record], results: Results | None = None
) -> list[AssessorProfile]:
    """Return the profile of every assessor with records or results, sorted by name."""
    shared = by_assessor(pair_overlaps(records))
    derived = by_assessor(result_overlaps(results or {}))
    rows = per_assessor(records, list)
    names = {*rows, *(assessor for _, assessor, _ in results or ())}
    return [
        _profile(name, rows.get(name, []), shared.get(name, {}), derived.get(name, {}))
        for name in sorted(names)
    ]


def query_profiles(
    records: Sequence[Record],
    results: Results | None = None,
    *,
    max_pairs: int = 5,
    below: float = MODERATE_KAPPA,
) -> list[QueryProfile]:
    """Return the profile of every query that two assessors judged, lowest kappa first.

    Each has at most `max_pairs` disputed pairs.
    """
    answered = pair_overlaps(records)
    overlaps = result_overlaps(results) if results else answered
    shared = by_query(answered)
    disputed = _disputed_results(results) if results else _disputed_answers(records)
    assessors: dict[str, set[str]] = {}
    for overlap in overlaps:
        assessors.setdefault(overlap.query, set()).update((overlap.first, overlap.second))
    profiles = [
        QueryProfile(
            query,
            len(assessors[query]),
            table,
            _most_disputed(disputed.get(query, []), max_pairs),
            shared.get(query, Agreement.empty()),
            below,
        )
        for query, table in by_query(overlaps).items()
    ]
    return sorted(profiles, key=lambda q: (_nan_last(q.kappa), q.query))


def gold_accuracy(records: Iterable[Record]) -> Proportion:
    """Return the proportion of correct answers to gold questions with a known answer."""
    gold_questions = [r for r in records if r.kind == "gold" and r.expected is not None]
    correct = [
        r for r in gold_questions if r.expected == (r.grade if r.outcome is None else r.outcome)
    ]
    return Proportion(len(correct), len(gold_questions))


def _profile(
    name: str, rows: list[Record], shared: Mapping[str, Agreement], derived: Mapping[str, Agreement]
) -> AssessorProfile:
    fractions = [table.overall for table in shared.values() if table.total]
    counted = list(counted_records(rows))
    bias = position_bias(rows)
    return AssessorProfile(
        assessor=name,
        judgments=len(counted),
        partners=len(fractions),
        agreement=fmean(fractions) if fractions else math.nan,
        shared=sum(shared.values(), Agreement.empty()),
        derived=sum(derived.values(), Agreement.empty()),
        ties=Proportion(bias.ties, bias.ties + bias.left + bias.right).value,
        bias=bias,
        gold=gold_accuracy(rows),
        repeats=self_consistency(rows),
        triads=triads(rows),
        seconds=_median([r.active for r in counted if r.active > 0 and not r.adjusted]),
    )


def _disputed_results(results: Results) -> dict[str, list[DisputedPair]]:
    by_query: dict[tuple[str, str], list[Labels]] = {}
    for (query, _, tool), labels in results.items():
        by_query.setdefault((query, tool), []).append(labels)
    disputed: dict[str, list[DisputedPair]] = {}
    for (query, _), group in by_query.items():
        docs = common_documents(*group)
        values = np.stack([label_values(labels, docs) for labels in group])
        first, second = np.triu_indices(len(docs), 1)
        differences = values[:, first] - values[:, second]
        above, below = (differences > 0).sum(axis=0), (differences < 0).sum(axis=0)
        for p in np.flatnonzero(above * below):
            tied = len(group) - int(above[p] + below[p])
            label_range = float(differences[:, p].max() - differences[:, p].min())
            pair = docs[first[p]], docs[second[p]]
            disputed.setdefault(query, []).append(
                DisputedPair(*pair, int(above[p]), tied, int(below[p]), label_range)
            )
    return disputed


def _disputed_answers(records: Sequence[Record]) -> dict[str, list[DisputedPair]]:
    disputed: dict[str, list[DisputedPair]] = {}
    for (query, a, b), answers in pair_answers(records).items():
        outcomes = list(answers.values())
        if 1 in outcomes and -1 in outcomes:
            above, tied, below = (outcomes.count(sign) for sign in (1, 0, -1))
            disputed.setdefault(query, []).append(DisputedPair(a, b, above, tied, below, 2.0))
    return disputed


def _most_disputed(pairs: list[DisputedPair], max_pairs: int) -> tuple[DisputedPair, ...]:
    order = sorted(pairs, key=lambda d: (-d.opposed, -d.label_range, d.first, d.second))
    return tuple(order[:max_pairs])


def _median(seconds: list[float]) -> float:
    return median(seconds) if seconds else math.nan


def _nan_last(value: float) -> float:
    """Return a sort key that puts NaN last."""
    return math.inf if math.isnan(value) else value
