"""Drill-down: one line an assessor, one line a query, and the pairs most disagreed upon."""

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
    each_assessor,
    position_bias,
    self_consistency,
    triads,
)
from firstpage.labeling.statistics.intervals import Proportion, defined
from firstpage.labeling.statistics.records import Labels, Record, Results, judged
from firstpage.labeling.statistics.relations import common, label_values

MODERATE = 0.4  # kappa below it is "fair" at best (Landis and Koch 1977)


@dataclass(frozen=True, eq=False)
class AssessorProfile:
    """One person: how they agree with the others, how consistent and how fast they are.

    `agreement` is the mean over partners of the overall agreement on pairs that both were asked,
    `shared` all of these pairs in one table (this person in the rows); `derived` that of the
    orders that people ended with.  `ties` is the fraction of ties among the answers.  NaN where
    nothing is known.
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
        """Cohen's kappa with the others on shared pairs, whatever documents are called."""
        return self.shared.symmetrized().kappa

    def to_dict(self) -> dict[str, Any]:
        return {
            "assessor": self.assessor,
            "judgments": self.judgments,
            "partners": self.partners,
            "agreement": defined(self.agreement),
            "shared_pairs": _figures(self.shared),
            "derived_orders": _figures(self.derived),
            "ties": defined(self.ties),
            "position": self.bias.to_dict(),
            "gold": self.gold.to_dict(),
            "repeats": self.repeats.to_dict(),
            "triads": self.triads.to_dict(),
            "median_seconds": defined(self.seconds),
        }


def _figures(table: Agreement) -> dict[str, float | None]:
    """Return how many pairs, and how far two agree on them."""
    return {
        "pairs": table.total,
        "overall": defined(table.overall),
        "without_ties": defined(table.without_ties),
        "kappa": defined(table.symmetrized().kappa),
    }


@dataclass(frozen=True)
class Disputed:
    """Two documents, how many put the first above, tied, below, and how far apart labels were."""

    first: str
    second: str
    above: int
    tied: int
    below: int
    apart: float

    @property
    def opposed(self) -> int:
        """The couples of assessors who said the opposite of each other."""
        return self.above * self.below


@dataclass(frozen=True, eq=False)
class QueryProfile:
    """One query: its agreement, and the pairs that people ordered in opposite ways.

    `agreement` and `disputed` are of the orders that people ended with, where there are such
    results; else, as `shared` always is, of pairs that two were both asked.
    """

    query: str
    assessors: int
    agreement: Agreement
    disputed: tuple[Disputed, ...]
    shared: Agreement = field(default_factory=Agreement.empty)
    below: float = MODERATE

    @property
    def kappa(self) -> float:
        """Cohen's kappa, whatever documents are called."""
        return self.agreement.symmetrized().kappa

    @property
    def worth_discussing(self) -> bool:
        """Kappa is below .4 (or as asked), and somebody said the opposite of somebody."""
        return self.kappa < self.below and self.agreement.strict[1] > 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "assessors": self.assessors,
            "shared_pairs": _figures(self.shared),
            "agreement": defined(self.agreement.overall),
            "without_ties": defined(self.agreement.without_ties),
            "kappa": defined(self.kappa),
            "worth_discussing": self.worth_discussing,
            "disputed": [vars(pair) for pair in self.disputed],
        }


def assessor_profiles(
    records: Sequence[Record], results: Results | None = None
) -> list[AssessorProfile]:
    """Everyone who has records or results, by name."""
    shared = by_assessor(pair_overlaps(records))
    derived = by_assessor(result_overlaps(results or {}))
    rows = each_assessor(records, list)
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
    below: float = MODERATE,
) -> list[QueryProfile]:
    """Every query that two people judged, the least agreed first; `most` disputed pairs each."""
    asked = pair_overlaps(records)
    overlaps = result_overlaps(results) if results else asked
    shared = by_query(asked)
    disputed = _disputed_results(results) if results else _disputed_answers(records)
    people: dict[str, set[str]] = {}
    for overlap in overlaps:
        people.setdefault(overlap.query, set()).update((overlap.first, overlap.second))
    found = [
        QueryProfile(
            query,
            len(people[query]),
            table,
            _worst(disputed.get(query, []), max_pairs),
            shared.get(query, Agreement.empty()),
            below,
        )
        for query, table in by_query(overlaps).items()
    ]
    return sorted(found, key=lambda q: (_nan_last(q.kappa), q.query))


def gold_accuracy(records: Iterable[Record]) -> Proportion:
    """Gold questions answered as expected; those without an expected answer do not count."""
    asked = [r for r in records if r.kind == "gold" and r.expected is not None]
    right = [r for r in asked if r.expected == (r.grade if r.outcome is None else r.outcome)]
    return Proportion(len(right), len(asked))


def _profile(
    name: str, rows: list[Record], shared: Mapping[str, Agreement], derived: Mapping[str, Agreement]
) -> AssessorProfile:
    fractions = [table.overall for table in shared.values() if table.total]
    counted = list(judged(rows))
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


def _disputed_results(results: Results) -> dict[str, list[Disputed]]:
    people: dict[tuple[str, str], list[Labels]] = {}
    for (query, _, tool), labels in results.items():
        people.setdefault((query, tool), []).append(labels)
    found: dict[str, list[Disputed]] = {}
    for (query, _), labeled in people.items():
        docs = common(*labeled)
        labels_ = np.stack([label_values(one, docs) for one in labeled])
        first, second = np.triu_indices(len(docs), 1)
        gaps = labels_[:, first] - labels_[:, second]
        above, below = (gaps > 0).sum(axis=0), (gaps < 0).sum(axis=0)
        for p in np.flatnonzero(above * below):
            tied = len(labeled) - int(above[p] + below[p])
            apart = float(gaps[:, p].max() - gaps[:, p].min())
            pair = docs[first[p]], docs[second[p]]
            found.setdefault(query, []).append(
                Disputed(*pair, int(above[p]), tied, int(below[p]), apart)
            )
    return found


def _disputed_answers(records: Sequence[Record]) -> dict[str, list[Disputed]]:
    found: dict[str, list[Disputed]] = {}
    for (query, a, b), answers in pair_answers(records).items():
        said = list(answers.values())
        if 1 in said and -1 in said:
            pair = Disputed(a, b, said.count(1), said.count(0), said.count(-1), 2.0)
            found.setdefault(query, []).append(pair)
    return found


def _worst(pairs: list[Disputed], most: int) -> tuple[Disputed, ...]:
    order = sorted(pairs, key=lambda d: (-d.opposed, -d.apart, d.first, d.second))
    return tuple(order[:most])


def _median(seconds: list[float]) -> float:
    return median(seconds) if seconds else math.nan


def _nan_last(value: float) -> float:
    return math.inf if math.isnan(value) else value
