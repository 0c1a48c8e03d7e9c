"""A labeling study in the tables of Niu et al. 2012, section 4.1, for one's own data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from firstpage.labeling.statistics.agreement import (
    FIGURES,
    SIGNS,
    Agreement,
    ChiSquared,
    Overlap,
    by_query,
    caution,
    compare_methods,
    contrast,
    estimate,
    pair_overlaps,
    result_overlaps,
    total,
)
from firstpage.labeling.statistics.consistency import (
    PositionBias,
    SelfConsistency,
    Triads,
    position_bias,
    self_consistency,
    triads,
)
from firstpage.labeling.statistics.effort import Effort, effort_by
from firstpage.labeling.statistics.intervals import Interval, shown
from firstpage.labeling.statistics.kappa import fleiss_kappa, krippendorff_alpha, relation_ratings
from firstpage.labeling.statistics.records import Record, Results
from firstpage.table import Table

METHODS = {"pairs": "top-k labeling", "grades": "graded", "lists": "lists"}


class Drawn(TypedDict):
    """How a bootstrap draws."""

    rounds: int
    seed: int


@dataclass(frozen=True, eq=False)
class Study:
    """Effort (Table 1) and agreement (Tables 2 and 3) by tool, the tests, and consistency.

    `shared` is the agreement on pairs that two people were both asked, `estimates` its figures
    with intervals over queries.  `derived` is that of all pairs of documents by the orders that
    people ended with: most of these pairs nobody was asked.  `fleiss` and `alpha` are of derived
    orders; `tests` compare pairs with grades, `differences` say by how much they differ, with
    intervals over queries; both are empty without both tools.
    """

    effort: Mapping[str, Effort]
    shared: Mapping[str, Agreement]
    estimates: Mapping[str, Mapping[str, Interval]]
    derived: Mapping[str, Agreement]
    fleiss: Mapping[str, Interval]
    alpha: Mapping[str, Interval]
    tests: Mapping[str, ChiSquared]
    differences: Mapping[str, Interval]
    repeats: SelfConsistency
    bias: PositionBias
    triads: Triads

    @property
    def caution(self) -> str:
        """What to keep in mind with overall agreement; empty without top-k results."""
        top = self.derived.get("pairs")
        return caution(top, self.derived.get("grades")) if top and top.total else ""

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints: agreement on shared pairs first, then that of derived orders."""
        found: dict[str, Any] = {
            "shared_pairs": {
                tool: {
                    **table.to_dict(),
                    "intervals": {n: i.to_dict() for n, i in self.estimates[tool].items()},
                }
                for tool, table in self.shared.items()
            },
            "derived_orders": {tool: table.to_dict() for tool, table in self.derived.items()},
        }
        for part in ("fleiss", "alpha", "tests", "differences", "effort"):
            found[part] = {name: value.to_dict() for name, value in getattr(self, part).items()}
        found |= {name: getattr(self, name).to_dict() for name in ("repeats", "bias", "triads")}
        return {**found, "caution": self.caution}

    def tables(self) -> list[Table]:
        """All of it as tables of text: effort, shared pairs, derived orders, consistency."""
        found = [_effort_table(self.effort)] if self.effort else []
        if self.shared or self.derived:
            found.append(_shared_table(self))
        found += [_agreement_table(t, a) for t, a in self.derived.items()]
        if self.derived:
            found.append(_summary_table(self))
        return [*found, _consistency_table(self)]

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

    __repr__ = __str__


def study(
    records: Sequence[Record], results: Results, *,
    symmetrize: bool = False, rounds: int = 2000, seed: int = 0,
) -> Study:  # fmt: skip
    """All tables of a study from its judgments and final results; either may be empty.

    `symmetrize` counts every pair of derived orders in both orientations and orders of
    assessors; overall figures stay.  `rounds` and `seed` are those of the bootstrap over queries.
    """
    used = [tool for tool in METHODS if any(t == tool for _, _, t in results)]
    overlaps = {tool: result_overlaps(results, tool) for tool in used}
    derived = {tool: total(found) for tool, found in overlaps.items()}
    if symmetrize:
        derived = {tool: table.symmetrized() for tool, table in derived.items()}
    ratings = {tool: relation_ratings(results, tool) for tool in used}
    effort = effort_by(records, "tool")
    drawn: Drawn = {"rounds": rounds, "seed": seed}
    both = "pairs" in used and "grades" in used
    asked = _asked(records)
    return Study(
        effort={tool: effort[tool] for tool in METHODS if tool in effort},
        shared={tool: total(found) for tool, found in asked.items()},
        estimates={
            tool: {name: estimate(by_query(found), name, **drawn) for name in FIGURES}
            for tool, found in asked.items()
        },
        derived=derived,
        fleiss={t: fleiss_kappa(r, **drawn) for t, r in ratings.items()},
        alpha={t: krippendorff_alpha(r, "ordinal", **drawn) for t, r in ratings.items()},
        tests=compare_methods(derived["pairs"], derived["grades"]) if both else {},
        differences=_differences(overlaps, drawn) if both else {},
        repeats=self_consistency(records),
        bias=position_bias(records),
        triads=triads(records),
    )


def _asked(records: Sequence[Record]) -> dict[str, list[Overlap]]:
    """Return, for each tool that asks for pairs and was used, where two answered the same pair."""
    rows = {tool: [r for r in records if r.tool == tool] for tool in METHODS}
    return {
        tool: pair_overlaps(found)
        for tool, found in rows.items()
        if any(r.pair is not None for r in found)
    }


def _differences(overlaps: Mapping[str, list[Overlap]], drawn: Drawn) -> dict[str, Interval]:
    tables = by_query(overlaps["pairs"]), by_query(overlaps["grades"])
    return {figure: contrast(*tables, figure, **drawn) for figure in FIGURES}


def _effort_table(effort: Mapping[str, Effort]) -> Table:
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
    note = adjusted_note(sum(e.adjusted for e in effort.values()))
    return Table(head, rows, "Effort", note)


def adjusted_note(count: int) -> str:
    """Return how many judgments are in no time, as a sentence; empty where all are."""
    if not count:
        return ""
    return (
        f"{count} judgments are in none of these times, since what was reported had to be adjusted "
        "(adjusted_times in the log)."
    )


def _shared_table(found: Study) -> Table:
    head = ["", *(METHODS[tool] for tool in found.shared)]
    names = {"overall": "same answer", "without_ties": "without ties", "kappa": "Cohen's kappa"}
    rows = [["pairs answered by two", *(f"{a.total:.0f}" for a in found.shared.values())]]
    rows += [
        [text, *(str(found.estimates[tool][name]) for tool in found.shared)]
        for name, text in names.items()
    ]
    lonely = [METHODS[tool] for tool, table in found.shared.items() if not table.total]
    note = "pairs that two people were both asked; intervals are over queries"
    if not found.shared:
        note = "nobody was asked for pairs: only derived orders can be compared"
    elif lonely:
        note += f"; no pair of {' and '.join(lonely)} was answered by two"
    return Table(head, rows if found.shared else [], "Agreement on shared pairs", note)


def _agreement_table(tool: str, agreement: Agreement) -> Table:
    note = (
        f"{agreement.total:.0f} pairs of documents by the orders that people ended with; rows: one "
        "assessor, columns: the other"
    )
    title = f"Agreement of derived orders, {METHODS[tool]}"
    return Table(["", *SIGNS], agreement.rows(), title, note)


def _summary_table(found: Study) -> Table:
    head = ["", *(METHODS[tool] for tool in found.derived), "difference", "test"]
    names = {
        "overall": "overall", "without_ties": "without ties", "chance": "by chance",
        "kappa": "Cohen's kappa", "weighted_kappa": "weighted kappa",
    }  # fmt: skip
    # chance must not depend on what documents are called; overall figures stay the same
    both_ways = [table.symmetrized() for table in found.derived.values()]
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
    return Table(head, rows, "Agreement of derived orders, all", note.strip())


def _consistency_table(found: Study) -> Table:
    repeats, bias = found.repeats, found.bias
    rows = [
        [
            "same answer to a repeat, same sides",
            *_share(repeats.same_sides.total, repeats.same_sides.value),
        ],
        ["same answer to a repeat, swapped", *_share(repeats.swapped.total, repeats.swapped.value)],
        ["left chosen", *_share(bias.share.total, bias.share.value)],
        ["circular triads", *_share(found.triads.complete, found.triads.share)],
    ]
    note = f"left against right: p = {bias.p:.3f}" if bias.share.total else ""
    return Table(["", "number", "share"], rows, "Consistency", note)


def _share(number: int, value: float) -> list[str]:
    return [str(number), shown(value)]
