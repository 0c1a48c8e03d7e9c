"""A labelling study in the tables of Niu et al. 2012, section 4.1, for one's own data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from firstpage.labeling.statistics.agreement import (
    SIGNS,
    Agreement,
    ChiSquared,
    caution,
    compare_methods,
)
from firstpage.labeling.statistics.consistency import (
    PositionBias,
    SelfConsistency,
    Triads,
    position_bias,
    self_consistency,
    triads,
)
from firstpage.labeling.statistics.contrast import FIGURES, contrast
from firstpage.labeling.statistics.effort import Effort, effort_by
from firstpage.labeling.statistics.intervals import Interval, shown
from firstpage.labeling.statistics.kappa import fleiss_kappa, krippendorff_alpha, relation_ratings
from firstpage.labeling.statistics.overlaps import (
    Overlap,
    by_query,
    pair_overlaps,
    result_overlaps,
    total,
)
from firstpage.labeling.statistics.records import Record, Results

METHODS = {"pairs": "top-k labelling", "grades": "graded", "lists": "lists"}
Rows = list[list[str]]


class Drawn(TypedDict):
    """How a bootstrap draws."""

    rounds: int
    seed: int


@dataclass(frozen=True)
class StudyTable:
    """A title, a head and rows of text; `note` stands below."""

    title: str
    head: Sequence[str]
    rows: Rows
    note: str = ""

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]
        lines = [
            "  ".join(
                f"{cell:<{w}}" if c == 0 else f"{cell:>{w}}"
                for c, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in [self.head, *self.rows]
        ]
        rule = "  ".join("─" * w for w in widths)
        notes = [self.note] if self.note else []
        return "\n".join([self.title, lines[0], rule, *lines[1:], *notes])


@dataclass(frozen=True, eq=False)
class Study:
    """Effort (Table 1) and agreement (Tables 2 and 3) by tool, the tests, and consistency.

    `agreement` is that of final results; `asked` that of pairs which two people were both
    asked.  `tests` compare pairs with grades, `differences` say by how much they differ, with
    intervals over queries; both are empty without both tools.
    """

    effort: Mapping[str, Effort]
    agreement: Mapping[str, Agreement]
    fleiss: Mapping[str, Interval]
    alpha: Mapping[str, Interval]
    tests: Mapping[str, ChiSquared]
    differences: Mapping[str, Interval]
    asked: Agreement
    repeats: SelfConsistency
    bias: PositionBias
    triads: Triads

    @property
    def caution(self) -> str:
        """What to keep in mind with overall agreement; empty without top-k results."""
        top = self.agreement.get("pairs")
        return caution(top, self.agreement.get("grades")) if top and top.total else ""

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        parts = ("effort", "agreement", "fleiss", "alpha", "tests", "differences")
        found: dict[str, Any] = {
            part: {name: value.to_dict() for name, value in getattr(self, part).items()}
            for part in parts
        }
        found |= {name: getattr(self, name).to_dict() for name in ("asked", "repeats", "bias")}
        return {**found, "triads": self.triads.to_dict(), "caution": self.caution}

    def tables(self) -> list[StudyTable]:
        """All of it as tables of text, in the order of the paper."""
        found = [_effort_table(self.effort)] if self.effort else []
        found += [_agreement_table(t, a) for t, a in self.agreement.items()]
        if self.agreement:
            found.append(_summary_table(self))
        return [*found, _consistency_table(self)]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables()))

    __repr__ = __str__


def study(
    records: Sequence[Record], results: Results, *,
    symmetrise: bool = False, rounds: int = 2000, seed: int = 0,
) -> Study:  # fmt: skip
    """All tables of a study from its judgments and final results; either may be empty.

    `symmetrise` counts every pair in both orientations and orders of assessors; overall
    figures stay.  `rounds` and `seed` are those of the bootstrap over queries.
    """
    used = [tool for tool in METHODS if any(t == tool for _, _, t in results)]
    overlaps = {tool: result_overlaps(results, tool) for tool in used}
    agreement = {tool: total(found) for tool, found in overlaps.items()}
    if symmetrise:
        agreement = {tool: table.symmetrised() for tool, table in agreement.items()}
    ratings = {tool: relation_ratings(results, tool) for tool in used}
    effort = effort_by(records, "tool")
    drawn: Drawn = {"rounds": rounds, "seed": seed}
    both = "pairs" in used and "grades" in used
    return Study(
        effort={tool: effort[tool] for tool in METHODS if tool in effort},
        agreement=agreement,
        fleiss={t: fleiss_kappa(r, **drawn) for t, r in ratings.items()},
        alpha={t: krippendorff_alpha(r, "ordinal", **drawn) for t, r in ratings.items()},
        tests=compare_methods(agreement["pairs"], agreement["grades"]) if both else {},
        differences=_differences(overlaps, drawn) if both else {},
        asked=total(pair_overlaps(records)),
        repeats=self_consistency(records),
        bias=position_bias(records),
        triads=triads(records),
    )


def _differences(overlaps: Mapping[str, list[Overlap]], drawn: Drawn) -> dict[str, Interval]:
    tables = by_query(overlaps["pairs"]), by_query(overlaps["grades"])
    return {figure: contrast(*tables, figure, **drawn) for figure in FIGURES}


def _effort_table(effort: Mapping[str, Effort]) -> StudyTable:
    head = [
        "Method", "s/judgment", "median", "sd", "min/query", "judgments/query", "judgments",
        "paused min", "away min",
    ]  # fmt: skip
    rows = [
        [
            METHODS[tool], shown(e.seconds.mean, 2), shown(e.seconds.median, 2),
            shown(e.seconds.sd, 2), shown(e.minutes.mean, 2), shown(e.per_query.mean, 2),
            str(e.judgments), shown(e.paused / 60, 1), shown(e.away / 60, 1),
        ]
        for tool, e in effort.items()
    ]  # fmt: skip
    return StudyTable("Effort", head, rows)


def _agreement_table(tool: str, agreement: Agreement) -> StudyTable:
    note = f"{agreement.total:.0f} pairs; rows: what one assessor said, columns: the other"
    return StudyTable(f"Agreement, {METHODS[tool]}", ["", *SIGNS], agreement.rows(), note)


def _summary_table(found: Study) -> StudyTable:
    head = ["", *(METHODS[tool] for tool in found.agreement), "difference", "test"]
    names = {
        "overall": "overall", "without_ties": "without ties", "chance": "by chance",
        "kappa": "Cohen's kappa", "weighted_kappa": "weighted kappa",
    }  # fmt: skip
    # chance must not depend on what documents are called; overall figures stay the same
    both_ways = [table.symmetrised() for table in found.agreement.values()]
    rows = [
        [
            text,
            *(shown(getattr(a, name)) for a in both_ways),
            str(found.differences.get(name, "")),
            str(found.tests.get(name, "")),
        ]
        for name, text in names.items()
    ]
    rows.append(["Fleiss' kappa", *map(str, found.fleiss.values()), "", ""])
    rows.append(["Krippendorff's alpha", *map(str, found.alpha.values()), "", ""])
    note = found.caution
    if found.tests:
        note += (
            " The test takes pairs as independent, and those of one query are not;"
            " intervals are over queries."
        )
    return StudyTable("Agreement, all", head, rows, note.strip())


def _consistency_table(found: Study) -> StudyTable:
    repeats, bias, asked = found.repeats, found.bias, found.asked
    rows = [
        ["same pair asked of two", f"{asked.total:.0f}", shown(asked.overall)],
        [
            "same answer to a repeat, same sides",
            *_share(repeats.same_sides.total, repeats.same_sides.value),
        ],
        ["same answer to a repeat, swapped", *_share(repeats.swapped.total, repeats.swapped.value)],
        ["left chosen", *_share(bias.share.total, bias.share.value)],
        ["circular triads", *_share(found.triads.complete, found.triads.share)],
    ]
    note = f"left against right: p = {bias.p:.3f}" if bias.share.total else ""
    return StudyTable("Consistency", ["", "number", "share"], rows, note)


def _share(number: int, value: float) -> list[str]:
    return [str(number), shown(value)]
