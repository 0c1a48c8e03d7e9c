"""Results of a calibration: sentences, tables and JSON of one machine against people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from firstpage.core import Table
from firstpage.labeling.machines.biases import PositionBiasTest
from firstpage.labeling.statistics.consistency import SelfConsistency
from firstpage.labeling.statistics.intervals import (
    Interval,
    format_p,
    format_value,
    nan_to_none,
)

Trust = Literal["trusted", "not trusted", "undecided"]
Need = Literal["machine", "people", "not checked"]
SIGNIFICANCE = 0.05  # below which a preference for a position is named


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
