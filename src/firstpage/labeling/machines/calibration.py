"""Calibration of machines against people: agreement, biases, worth, and where people are needed.

A machine is compared with people on the questions that both answered.  Its reference is how well
people agree with each other on the same questions: a machine that agrees with a person as often as
another person does can take that person's place.  The interval of this difference, which decides,
assumes only its range; all others are percentiles over resampled queries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats
from firstpage.evaluation.planning import BoundedSample
from firstpage.labeling.machines.biases import (
    Lengths,
    Orders,
    clustered_mean,
    length_bias,
    position_test,
    ratio_of_sums,
)
from firstpage.labeling.machines.calibration_result import (
    GradeRow,
    MachineCalibration,
    Need,
    QueryTrust,
    Trust,
)
from firstpage.labeling.statistics.consistency import self_consistency
from firstpage.labeling.statistics.intervals import Interval, bootstrap
from firstpage.labeling.statistics.records import Record, counted_records

Item = tuple[str, str, str]  # query and two documents, the first one by name first
DEFAULT_MARGIN = 0.05
LEVEL = 0.95  # of the interval that decides on trust
PRIOR_STRENGTH = (2.0, 200.0)  # bounds of the prior's number of answers


def calibrate(
    records: Iterable[Record],
    machines: Collection[str],
    *,
    orders: Mapping[str, Orders] | None = None,
    lengths: Lengths | None = None,
    shown: Mapping[str, Collection[str]] | None = None,
    margin: float = DEFAULT_MARGIN,
    rounds: int = 2000,
    seed: int = 0,
) -> list[MachineCalibration]:
    """Compare the judgments of machines with those of people.

    Parameters
    ----------
    records : iterable of Record
        The answers of people and machines.
    machines : collection of str
        The assessors that are machines.
    orders : dict of str to dict, optional
        By machine, the answers to both orders of each question: {(query, left, right): (answer,
        answer with the documents swapped)}, both as 1 (left better), 0 or -1.
    lengths : dict, optional
        The number of characters of each document: {(query, document): length}.
    shown : dict of str to collection of str, optional
        By machine, queries whose answers were shown to it as examples; they are left out.
    margin : float, default 0.05
        Largest difference between the agreement with a person and that of two people which is
        accepted.
    rounds : int, default 2000
        Number of bootstrap samples.
    seed : int, default 0
        Seed of the samples.

    Returns
    -------
    list of MachineCalibration
        One per machine and tool.

    Raises
    ------
    DataError
        If a machine has no answers, or nobody else has.

    References
    ----------
    Calderon, Reichart and Dror, The Alternative Annotator Test for LLM-as-a-Judge, ACL 2025
    (whether a model can take the place of a person).

    Examples
    --------
    >>> import firstpage as fp
    >>> def answer(query, who, outcome):
    ...     return fp.labeling.Record(query, who, "pairs", "a", "b", outcome=outcome)
    >>> records = [answer(f"q{n}", who, 1) for n in range(80) for who in ("ann", "bob", "robot")]
    >>> report = fp.labeling.calibrate(records, ["robot"])[0]
    >>> report.agreement.value, report.trust
    (1.0, 'trusted')
    """
    answers = list(records)
    names = {record.assessor for record in answers}
    for machine in machines:
        if machine not in names:
            raise DataError(f"there are no answers of {machine!r}.")
    if not names - set(machines):
        raise DataError("there are no answers of people, so machines cannot be compared with them.")
    calibrations = []
    for machine in machines:
        hidden = set((shown or {}).get(machine, ()))
        for tool in sorted({r.tool for r in answers if r.assessor == machine}):
            chosen = [r for r in answers if r.tool == tool and r.query not in hidden]
            comparison = _Comparison.of(chosen, machine, set(machines))
            calibrations.append(
                comparison.report(
                    tool,
                    (orders or {}).get(machine, {}),
                    lengths or {},
                    margin,
                    rounds,
                    seed,
                    len(hidden),
                )
            )
    return calibrations


@dataclass
class _Comparison:
    """Answers of one machine and of people to the same questions, with one tool."""

    machine: str
    own: list[Record]
    people: list[Record]
    relations: dict[Item, int] = field(default_factory=dict)  # of the machine
    human: dict[Item, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Sequence[Record], machine: str, machines: Collection[str]) -> _Comparison:
        """Return the comparison; grades count as relations of the documents of a query."""
        own = [r for r in records if r.assessor == machine]
        people = [r for r in records if r.assessor not in machines]
        comparison = cls(machine, own, people, _relations(own).get(machine, {}))
        for relations in _relations(people).values():
            for item, relation in relations.items():
                if item in comparison.relations:
                    comparison.human.setdefault(item, []).append(relation)
        return comparison

    def report(
        self,
        tool: str,
        orders: Orders,
        lengths: Lengths,
        margin: float,
        rounds: int,
        seed: int,
        left_out: int,
    ) -> MachineCalibration:
        """Return the calibration."""
        sums = self._sums()
        queries = list(dict.fromkeys(item[0] for item in self.human))

        def interval(statistic: Any) -> Interval:
            return bootstrap(statistic, len(queries), rounds, seed)

        def fraction(hits: str, total: str) -> Interval:
            return interval(lambda w: ratio_of_sums(w @ sums[hits], w @ sums[total]))

        gap = _gap(sums)
        return MachineCalibration(
            self.machine,
            tool,
            len(self.human),
            fraction("with_person", "persons"),
            fraction("two_people", "person_pairs"),
            gap,
            interval(lambda w: _worth(w, sums)),
            {side: fraction(f"{side}_hits", f"{side}_total") for side in ("left", "right")}
            if tool != "grades"
            else {},
            self._grade_rows(rounds, seed) if tool == "grades" else (),
            position_test(orders, rounds, seed) if orders else None,
            length_bias(self.relations, self.human, lengths, rounds, seed),
            self_consistency(self.own),
            self._query_trust(sums, queries, margin),
            _trust(gap, margin),
            margin,
            left_out,
        )

    def _sums(self) -> dict[str, Floats]:
        """Return counts per query of agreements and of their possible number."""
        index = {q: i for i, q in enumerate(dict.fromkeys(item[0] for item in self.human))}
        names = (
            "with_person", "persons", "two_people", "person_pairs", "shared_hits", "shared",
            "decided_hits", "decided", "decided_two", "decided_pairs",
            "left_hits", "left_total", "right_hits", "right_total",
        )  # fmt: skip
        sums = {name: np.zeros(len(index)) for name in names}
        sides = {_item(r): r for r in counted_records(self.own) if r.pair is not None}
        for item, answers in self.human.items():
            q, own = index[item[0]], self.relations[item]
            agreeing = sum(answer == own for answer in answers)
            sums["with_person"][q] += agreeing
            sums["persons"][q] += len(answers)
            _count_sides(sums, q, answers, own, sides.get(item))
            pairs = list(combinations(answers, 2))
            if pairs:
                same = sum(a == b for a, b in pairs) / len(pairs)
                sums["two_people"][q] += same
                sums["person_pairs"][q] += 1
                sums["shared_hits"][q] += agreeing / len(answers)
                sums["shared"][q] += 1
            decided = [answer for answer in answers if answer and own]
            sums["decided_hits"][q] += sum(answer == own for answer in decided)
            sums["decided"][q] += len(decided)
            both = [(a, b) for a, b in pairs if a and b]
            sums["decided_two"][q] += sum(a == b for a, b in both)
            sums["decided_pairs"][q] += len(both)
        return sums

    def _grade_rows(self, rounds: int, seed: int) -> tuple[GradeRow, ...]:
        """Return the machine's grades by the grade of each person."""
        own = {(r.query, r.left): r.grade for r in counted_records(self.own)}
        by_grade: dict[int, list[tuple[str, int]]] = {}
        for record in counted_records(self.people):
            grade = own.get((record.query, record.left))
            if grade is not None and record.grade is not None:
                by_grade.setdefault(record.grade, []).append((record.query, grade))
        rows = []
        for human_grade, answers in sorted(by_grade.items()):
            counts: dict[int, int] = {}
            for _, grade in answers:
                counts[grade] = counts.get(grade, 0) + 1
            bias = clustered_mean([(q, g - human_grade) for q, g in answers], rounds, seed)
            rows.append(GradeRow(human_grade, dict(sorted(counts.items())), bias))
        return tuple(rows)

    def _query_trust(
        self, sums: Mapping[str, Floats], queries: Sequence[str], margin: float
    ) -> tuple[QueryTrust, ...]:
        hits, totals = sums["with_person"], sums["persons"]
        mean, strength = _beta_prior(hits, totals)
        # Without two people per question there is no reference, and no query is flagged.
        reference = float(ratio_of_sums(sums["two_people"].sum(), sums["person_pairs"].sum()))
        limit = reference - margin
        rows = []
        for query, hit, total in zip(queries, hits.tolist(), totals.tolist(), strict=True):
            expected = (hit + mean * strength) / (total + strength)
            need: Need = "people" if expected < limit else "machine"
            rows.append(QueryTrust(query, int(total), hit / total, expected, need))
        checked = set(queries)
        others = dict.fromkeys(r.query for r in self.own if r.query not in checked)
        rows += [QueryTrust(query, 0, np.nan, mean, "not checked") for query in others]
        order = {"people": 0, "not checked": 1, "machine": 2}
        return tuple(sorted(rows, key=lambda row: (order[row.need], row.expected, row.query)))


def _item(record: Record) -> Item:
    pair = record.pair
    assert pair is not None
    return record.query, pair[0], pair[1]


def _relations(records: Iterable[Record]) -> dict[str, dict[Item, int]]:
    """Return the first answer of each assessor to each pair; grades give all pairs of a query."""
    answers: dict[str, dict[Item, int]] = {}
    grades: dict[tuple[str, str], dict[str, int]] = {}
    for record in counted_records(records):
        pair = record.pair
        if pair is not None:
            answers.setdefault(record.assessor, {}).setdefault(_item(record), pair[2])
        elif record.grade is not None:
            graded = grades.setdefault((record.assessor, record.query), {})
            graded.setdefault(record.left, record.grade)
    for (assessor, query), graded in grades.items():
        own = answers.setdefault(assessor, {})
        for a, b in combinations(sorted(graded), 2):
            own[query, a, b] = (graded[a] > graded[b]) - (graded[a] < graded[b])
    return answers


def _count_sides(
    sums: dict[str, Floats], q: int, answers: Sequence[int], own: int, shown: Record | None
) -> None:
    """Count agreement by the side on which the document stood that a person prefers."""
    if shown is None or shown.right is None:
        return
    swapped = shown.left > shown.right
    for answer in answers:
        if answer:
            side = "left" if (answer > 0) != swapped else "right"
            sums[f"{side}_total"][q] += 1
            sums[f"{side}_hits"][q] += answer == own


def _gap(sums: Mapping[str, Floats]) -> Interval:
    """Return how much more often the machine agrees with a person than another person does.

    The limits assume only that the difference of a query is between -1 and 1.  Percentiles of
    resampled queries trust a machine after two queries without a disagreement.
    """
    asked = sums["shared"] > 0
    weights = sums["shared"][asked]
    if not len(weights):
        return Interval(np.nan, np.nan, np.nan)
    difference = (sums["shared_hits"][asked] - sums["two_people"][asked]) / weights
    low, high = (
        sign * BoundedSample(sign * difference, weights, -1.0, 1.0).lower_limit((1 - LEVEL) / 2)
        for sign in (1, -1)
    )
    return Interval(float(np.average(difference, weights=weights)), low, high, LEVEL)


def _worth(w: Floats, sums: Mapping[str, Floats]) -> Floats:
    """Return the information of a machine judgment, divided by that of a person's judgment.

    Errors are independent given the better document.  Two people of accuracy a agree with
    probability a^2 + (1 - a)^2, a person and a machine of accuracy m with a m + (1 - a)(1 - m).
    The information of a judgment about the better document is 1 - H(accuracy) bits.
    """
    two = ratio_of_sums(w @ sums["decided_two"], w @ sums["decided_pairs"])
    mixed = ratio_of_sums(w @ sums["decided_hits"], w @ sums["decided"])
    with np.errstate(invalid="ignore", divide="ignore"):
        person = (1 + np.sqrt(2 * two - 1)) / 2
        machine = (mixed - (1 - person)) / (2 * person - 1)
        worth = np.asarray(_information(np.clip(machine, 0.5, 1)) / _information(person))
    return np.where(np.isfinite(worth), worth, np.nan)  # guessing is not a unit


def _information(accuracy: Floats) -> Floats:
    """Return 1 - H(accuracy), in bits."""
    p = np.clip(accuracy, 1e-12, 1 - 1e-12)
    return np.asarray(1 + p * np.log2(p) + (1 - p) * np.log2(1 - p))


def _beta_prior(hits: Floats, totals: Floats) -> tuple[float, float]:
    """Return mean and strength of the distribution of agreement over queries, by moments."""
    if not len(hits):
        return float("nan"), PRIOR_STRENGTH[0]
    mean = float(hits.sum() / totals.sum())
    fractions = hits / totals
    observed = float(((fractions - mean) ** 2 * totals).sum() / totals.sum())
    sampling = mean * (1 - mean) * len(hits) / totals.sum()
    between = observed - sampling
    if between <= 0:
        return mean, PRIOR_STRENGTH[1]
    strength = mean * (1 - mean) / between - 1
    return mean, float(np.clip(strength, *PRIOR_STRENGTH))


def _trust(gap: Interval, margin: float) -> Trust:
    if gap.low >= -margin:
        return "trusted"
    return "not trusted" if gap.high < -margin else "undecided"
