"""Where two people judged the same: their agreement by query and couple, summed as one likes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from firstpage.labeling.statistics.agreement import Agreement
from firstpage.labeling.statistics.records import Labels, Record, Results, judged

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
        Overlap(query, a, b, Agreement.of(labelled[a], labelled[b]))
        for (query, _), labelled in people.items()
        for a, b in combinations(sorted(labelled), 2)
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
    return Agreement(np.sum(counts, axis=0)) if counts else Agreement.none()


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
