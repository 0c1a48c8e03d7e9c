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
from typing import Any, Literal

import numpy as np

from firstpage.core import DataError, Floats, Table
from firstpage.evaluation.planning import BoundedSample
from firstpage.labeling.machines.biases import (
    Lengths,
    Orders,
    PositionBiasTest,
    clustered_mean,
    length_bias,
    position_test,
    ratio_of_sums,
)
from firstpage.labeling.statistics.consistency import SelfConsistency, self_consistency
from firstpage.labeling.statistics.intervals import (
    Interval,
    bootstrap,
    format_p,
    format_value,
    nan_to_none,
)
from firstpage.labeling.statistics.records import Record, counted_records

Trust = Literal["trusted", "not trusted", "undecided"]
Need = Literal["machine", "people", "not checked"]
Item = tuple[str, str, str]  # query and two documents, the first one by name first
DEFAULT_MARGIN = 0.05
LEVEL = 0.95  # of the interval that decides on trust
SIGNIFICANCE = 0.05  # below which a preference for a position is named
PRIOR_STRENGTH = (2.0, 200.0)  # bounds of the prior's number of answers


@dataclass(frozen=True)
class QueryTrust:
    """How a machine does on one query.

    `agreement` is the fraction of `answers` of people with which it agrees, `expected` that
    fraction drawn toward the mean of all queries as far as few answers require.
    """

    query: str
    answers: int
    agreement: float
    expected: float
    need: Need

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {**vars(self), "agreement": nan_to_none(self.agreement)}


@dataclass(frozen=True)
class GradeRow:
    """The machine's grades of the documents to which people give one grade."""

    grade: int
    counts: dict[int, int]  # of the machine's grades
    bias: Interval  # mean of the machine's grade minus this grade


@dataclass(frozen=True, eq=False)
class MachineCalibration:
    """One machine against people.

    Attributes
    ----------
    machine, tool : str
        Name of the machine, and the tool.
    questions : int
        Number of questions that the machine and at least one person answered.
    agreement : Interval
        How often the machine agrees with a person.
    reference : Interval
        How often two people agree, on the questions that the machine answered too.
    gap : Interval
        Agreement minus reference, on questions with at least two people. Its limits are valid for
        few queries and rare disagreements too.
    worth : Interval
        Information of one machine judgment in judgments of a person.
    positions : dict of str to Interval
        Agreement where people prefer the left document, and where they prefer the right one.
    grades : tuple of GradeRow
        The machine's grades by the people's grade; empty for pairs.
    position : PositionBiasTest or None
        Test of a preference for the document that is shown first; None without both orders.
    length : Interval
        Preference for longer documents beyond that of people; 0 is none.
    repeats : SelfConsistency
        Hidden repeats of its own questions.
    queries : tuple of QueryTrust
        Every query that the machine judged, those that need people first.
    trust : {"trusted", "not trusted", "undecided"}
        Whether the machine can take a person's place within the margin.
    margin : float
        Largest difference between agreement and reference that is accepted.
    left_out : int
        Number of queries that are left out since their answers were shown to the machine.
    people_needed : tuple of str
        The queries on which the machine is expected to disagree too often.
    reason : str
        One sentence: why the machine is trusted or not.

    Examples
    --------
    >>> import firstpage as fp
    >>> def answer(query, who, outcome):
    ...     return fp.labeling.Record(query, who, "pairs", "a", "b", outcome=outcome)
    >>> records = [answer(f"q{n}", who, 1) for n in range(20) for who in ("ann", "bob", "robot")]
    >>> fp.labeling.calibrate(records, ["robot"])[0].questions
    20
    """

    machine: str
    tool: str
    questions: int
    agreement: Interval
    reference: Interval
    gap: Interval
    worth: Interval
    positions: Mapping[str, Interval]
    grades: tuple[GradeRow, ...]
    position: PositionBiasTest | None
    length: Interval
    repeats: SelfConsistency
    queries: tuple[QueryTrust, ...]
    trust: Trust
    margin: float
    left_out: int = 0

    @property
    def people_needed(self) -> tuple[str, ...]:
        """The queries on which the machine is expected to disagree too often."""
        return tuple(row.query for row in self.queries if row.need == "people")

    @property
    def reason(self) -> str:
        """One sentence: why the machine is trusted or not."""
        if np.isnan(self.gap.value):
            return "No question was answered by the machine and at least two people."
        if self.trust == "trusted":
            return f"It agrees with a person at most {self.margin:g} less often than people do."
        if self.trust == "not trusted":
            return f"It agrees with a person more than {self.margin:g} less often than people do."
        return (
            f"The interval of the difference, {self.gap}, includes -{self.margin:g}; let people "
            "judge more of the queries that the machine judged."
        )

    def summary(self, name: str | None = None) -> str:
        """Return in plain sentences how the machine compares with people.

        Parameters
        ----------
        name : str, optional
            Name of the machine in the sentences; by default `machine`.

        Returns
        -------
        str
            Its agreement with people against that of two people, and a preference for a position.
        """
        sentences = [_agreement_sentence(name or self.machine, self)]
        test = self.position
        if test is not None and test.p < SIGNIFICANCE:
            side = "first" if test.first > test.second else "second"
            sentences.append(
                f"It prefers the document that is shown {side}: in both orders of {test.first} "
                f"pairs the first one was better, in {test.second} the second one "
                f"({format_p(test.p)})."
            )
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return the calibration for JSON.

        Returns
        -------
        dict
            The content of `firstpage label calibrate --json`.
        """
        return {
            "machine": self.machine,
            "tool": self.tool,
            "questions": self.questions,
            "trust": self.trust,
            "reason": self.reason,
            "summary": self.summary(),
            "margin": self.margin,
            "left_out": self.left_out,
            **{
                name: getattr(self, name).to_dict()
                for name in ("agreement", "reference", "gap", "worth", "length")
            },
            "positions": {side: interval.to_dict() for side, interval in self.positions.items()},
            "grades": [
                {"grade": row.grade, "counts": row.counts, "bias": row.bias.to_dict()}
                for row in self.grades
            ],
            "position": None if self.position is None else self.position.to_dict(),
            "repeats": self.repeats.to_dict(),
            "queries": [row.to_dict() for row in self.queries],
            "people_needed": list(self.people_needed),
        }

    def tables(self, query_names: Mapping[str, str] | None = None) -> list[Table]:
        """Return the calibration as tables.

        Parameters
        ----------
        query_names : dict of str to str, optional
            What is shown in place of a query's id.

        Returns
        -------
        list of Table
            Agreement and biases; the grades, where documents were graded; and the queries on
            which people are needed.
        """
        rows = [
            ["agreement with a person", str(self.agreement)],
            ["agreement of two people", str(self.reference)],
            ["difference", str(self.gap)],
            ["worth in human judgments", str(self.worth)],
            *[[f"agreement if people prefer {side}", str(i)] for side, i in self.positions.items()],
            ["preference for longer documents", str(self.length)],
        ]
        if self.position is not None:
            rows += self.position.rows()
        rows.append(["repeats with the same answer", _repeats(self.repeats)])
        title = f"{self.machine}, {self.tool}: {self.trust}. {self.reason}"
        tables = [Table([f"{self.questions} questions", "95 % interval"], rows, title)]
        if self.grades:
            tables.append(_grade_table(self.grades))
        listed = [row for row in self.queries if row.need == "people"][:20]
        if listed:
            names = query_names or {}
            cells = [
                [
                    names.get(r.query, r.query),
                    str(r.answers),
                    format_value(r.agreement),
                    f"{r.expected:.3f}",
                ]
                for r in listed
            ]
            count = len(self.people_needed)
            head = ["query", "answers", "agreement", "expected"]
            tables.append(Table(head, cells, f"{count} queries on which people are needed"))
        return tables

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

    __repr__ = __str__


def _agreement_sentence(name: str, calibration: MachineCalibration) -> str:
    """Return how often a machine agrees with people, against two people, in a sentence."""
    agreement, reference, gap = calibration.agreement, calibration.reference, calibration.gap
    if np.isnan(agreement.value):
        return f"{name} and people have answered no question in common."
    if np.isnan(gap.value):
        return f"{name} agrees with people in {agreement.value:.0%} of their answers."
    shares = f"{reference.value + gap.value:.2f} against {reference.value:.2f}"
    interval = f"95 % interval of the difference {gap.low:+.2f} to {gap.high:+.2f}"
    if gap.high < 0 or gap.low > 0:
        often = "less" if gap.high < 0 else "more"
        return (
            f"{name} agrees with people {often} often than people do with each other: {shares} "
            f"({interval})."
        )
    if min(gap.low, -gap.high) < -calibration.margin:
        return (
            f"It is not known whether {name} agrees with people as often as people do with each "
            f"other: {shares} ({interval})."
        )
    return (
        f"{name} agrees with people about as often as people do with each other: {shares} "
        f"({interval})."
    )


def _repeats(repeats: SelfConsistency) -> str:
    overall = repeats.overall
    if not overall.total:
        return "no repeats"
    low, high = overall.interval
    return f"{overall.value:.3f} [{low:.3f}, {high:.3f}], {overall.hits} of {overall.total}"


def _grade_table(rows: Sequence[GradeRow]) -> Table:
    columns = sorted({grade for row in rows for grade in row.counts} | {r.grade for r in rows})
    cells = [
        [str(row.grade), *(str(row.counts.get(grade, 0)) for grade in columns), str(row.bias)]
        for row in rows
    ]
    head = ["people", *(f"machine {grade}" for grade in columns), "machine - people"]
    return Table(head, cells, "grades")


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
