"""A labeling study in the tables of Niu et al. 2012, section 4.1, for your own data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from firstpage.core import Table
from firstpage.labeling.statistics.agreement import (
    SIGNS,
    STATISTICS,
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
from firstpage.labeling.statistics.intervals import Interval, format_p, format_value
from firstpage.labeling.statistics.kappa import fleiss_kappa, krippendorff_alpha, relation_ratings
from firstpage.labeling.statistics.records import Record, Results

METHODS = {"pairs": "top-k labeling", "grades": "graded", "lists": "lists"}


class BootstrapOptions(TypedDict):
    """Options of the bootstrap over queries."""

    rounds: int
    seed: int


@dataclass(frozen=True, eq=False)
class Study:
    """Effort (Table 1), agreement (Tables 2 and 3), tests and consistency of a labeling study.

    Shared pairs are pairs that two assessors both answered. Derived orders are the final orders;
    they relate all pairs of documents, most of which nobody was asked about.

    Attributes
    ----------
    effort : mapping of str to Effort
        Effort per tool.
    shared : mapping of str to Agreement
        Agreement on shared pairs, per tool.
    estimates : mapping of str to mapping of str to Interval
        Overall agreement, agreement without ties and kappa on shared pairs, per tool, with
        intervals over queries.
    derived : mapping of str to Agreement
        Agreement of derived orders, per tool.
    fleiss, alpha : mapping of str to Interval
        Fleiss' kappa and Krippendorff's ordinal alpha of derived orders, per tool.
    tests : mapping of str to ChiSquared
        Tests of pairs against grades on derived orders; empty without both tools.
    differences : mapping of str to Interval
        Differences of pairs and grades, with intervals over queries; empty without both tools.
    repeats : SelfConsistency
        Equal answers to repeated questions.
    bias : PositionBias
        Preference for a side.
    triads : Triads
        Circular triads.

    Examples
    --------
    >>> import firstpage as fp
    >>> from firstpage.labeling.statistics.records import Record
    >>> records = [
    ...     Record("q", "ada", "pairs", left, right, 1) for left, right in ("ab", "bc", "ca")
    ... ]
    >>> result = fp.labeling.study(records, {}, rounds=10)
    >>> result.triads.circular, result.triads.complete
    (1, 1)
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
        """A caution about the overall agreement of top-k results; empty without them."""
        top = self.derived.get("pairs")
        return caution(top, self.derived.get("grades")) if top and top.total else ""

    def to_dict(self) -> dict[str, Any]:
        """Return all statistics for JSON, agreement on shared pairs first."""
        record: dict[str, Any] = {
            "shared_pairs": {
                tool: {
                    **table.to_dict(),
                    "intervals": {n: i.to_dict() for n, i in self.estimates[tool].items()},
                }
                for tool, table in self.shared.items()
            },
            "derived_orders": {tool: table.to_dict() for tool, table in self.derived.items()},
        }
        for key in ("fleiss", "alpha", "tests", "differences", "effort"):
            record[key] = {name: value.to_dict() for name, value in getattr(self, key).items()}
        record |= {
            "repeats": self.repeats.to_dict(),
            "position_bias": self.bias.to_dict(),
            "triads": self.triads.to_dict(),
        }
        return {**record, "caution": self.caution}

    def tables(self) -> list[Table]:
        """Return the tables: effort, shared pairs, derived orders, consistency.

        Returns
        -------
        list of Table
            Tables for a terminal or a page; the last one is about consistency.
        """
        tables = [_effort_table(self.effort)] if self.effort else []
        if self.shared or self.derived:
            tables.append(_shared_table(self))
        tables += [_agreement_table(tool, table) for tool, table in self.derived.items()]
        if self.derived:
            tables.append(summary_table(self))
        return [*tables, _consistency_table(self)]

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

    __repr__ = __str__


def study(
    records: Sequence[Record],
    results: Results,
    *,
    symmetrize: bool = False,
    rounds: int = 2000,
    seed: int = 0,
) -> Study:
    """Compute all statistics of a labeling study.

    Parameters
    ----------
    records : sequence of Record
        The judgments; may be empty.
    results : mapping of (query, assessor, tool) to mapping of document to label
        The final labels; may be empty.
    symmetrize : bool, default False
        Whether the tables of derived orders count every pair in both orientations and both
        orders of the assessors; overall agreement does not change.
    rounds : int, default 2000
        Number of bootstrap samples over queries.
    seed : int, default 0
        Seed of the bootstrap.

    Returns
    -------
    Study
        The statistics; printing it prints the tables.

    References
    ----------
    S. Niu, J. Guo, Y. Lan and X. Cheng (2012). Top-k Learning to Rank: Labeling, Ranking and
    Evaluation. SIGIR, section 4.1, Tables 1 to 3.

    Examples
    --------
    >>> import firstpage as fp
    >>> from firstpage.labeling.statistics.records import Record
    >>> records = [
    ...     Record("q", assessor, "pairs", "a", "b", 1, active=5.0) for assessor in ("ada", "ben")
    ... ]
    >>> result = fp.labeling.study(records, {}, rounds=10)
    >>> result.shared["pairs"].overall, result.effort["pairs"].seconds.mean
    (1.0, 5.0)
    """
    used = [tool for tool in METHODS if any(t == tool for _, _, t in results)]
    overlaps = {tool: result_overlaps(results, tool) for tool in used}
    derived = {tool: total(rows) for tool, rows in overlaps.items()}
    if symmetrize:
        derived = {tool: table.symmetrized() for tool, table in derived.items()}
    ratings = {tool: relation_ratings(results, tool) for tool in used}
    effort = effort_by(records, "tool")
    bootstrap: BootstrapOptions = {"rounds": rounds, "seed": seed}
    both = "pairs" in used and "grades" in used
    shared = _shared_pairs(records)
    return Study(
        effort={tool: effort[tool] for tool in METHODS if tool in effort},
        shared={tool: total(rows) for tool, rows in shared.items()},
        estimates={
            tool: {name: estimate(by_query(rows), name, **bootstrap) for name in STATISTICS}
            for tool, rows in shared.items()
        },
        derived=derived,
        fleiss={t: fleiss_kappa(r, **bootstrap) for t, r in ratings.items()},
        alpha={t: krippendorff_alpha(r, "ordinal", **bootstrap) for t, r in ratings.items()},
        tests=compare_methods(derived["pairs"], derived["grades"]) if both else {},
        differences=_differences(overlaps, bootstrap) if both else {},
        repeats=self_consistency(records),
        bias=position_bias(records),
        triads=triads(records),
    )


def _shared_pairs(records: Sequence[Record]) -> dict[str, list[Overlap]]:
    """Return the overlaps of raw answers per tool that asks for pairs and was used."""
    by_tool = {tool: [r for r in records if r.tool == tool] for tool in METHODS}
    return {
        tool: pair_overlaps(rows)
        for tool, rows in by_tool.items()
        if any(r.pair is not None for r in rows)
    }


def _differences(
    overlaps: Mapping[str, list[Overlap]], bootstrap: BootstrapOptions
) -> dict[str, Interval]:
    tables = by_query(overlaps["pairs"]), by_query(overlaps["grades"])
    return {name: contrast(*tables, name, **bootstrap) for name in STATISTICS}


def _effort_table(effort: Mapping[str, Effort]) -> Table:
    head = [
        "Method", "s/judgment", "median", "sd", "min/query", "judgments/query", "judgments",
        "paused min", "away min",
    ]  # fmt: skip
    rows = [
        [
            METHODS[tool],
            format_value(e.seconds.mean, 2),
            format_value(e.seconds.median, 2),
            format_value(e.seconds.sd, 2),
            format_value(e.minutes.mean, 2),
            format_value(e.per_query.mean, 2),
            str(e.judgments),
            format_value(e.paused / 60, 1),
            format_value(e.away / 60, 1),
        ]
        for tool, e in effort.items()
    ]
    note = adjusted_note(sum(e.adjusted for e in effort.values()))
    return Table(head, rows, "Effort", note)


def adjusted_note(count: int) -> str:
    """Return a sentence about judgments that are in no time; empty if there are none."""
    if not count:
        return ""
    return (
        f"{count} judgments are not in these times, since their reported times were adjusted "
        "(adjusted_times in the log)."
    )


def _shared_table(study: Study) -> Table:
    head = ["", *(METHODS[tool] for tool in study.shared)]
    names = {"overall": "same answer", "without_ties": "without ties", "kappa": "Cohen's kappa"}
    rows = [["pairs answered by two", *(f"{a.total:.0f}" for a in study.shared.values())]]
    rows += [
        [text, *(str(study.estimates[tool][name]) for tool in study.shared)]
        for name, text in names.items()
    ]
    unshared = [METHODS[tool] for tool, table in study.shared.items() if not table.total]
    note = "pairs that two assessors both answered; intervals are over queries"
    if not study.shared:
        note = "no pairs were asked: only derived orders can be compared"
    elif unshared:
        note += f"; no pair of {' and '.join(unshared)} was answered by two"
    return Table(head, rows if study.shared else [], "Agreement on shared pairs", note)


def _agreement_table(tool: str, agreement: Agreement) -> Table:
    note = (
        f"{agreement.total:.0f} pairs of documents, by the assessors' final orders; rows: one "
        "assessor, columns: the other"
    )
    title = f"Agreement of derived orders, {METHODS[tool]}"
    return Table(["", *SIGNS], agreement.rows(), title, note)


def summary_table(study: Study) -> Table:
    head = ["", *(METHODS[tool] for tool in study.derived), "difference", "test"]
    names = {
        "overall": "overall", "without_ties": "without ties", "chance": "by chance",
        "kappa": "Cohen's kappa", "weighted_kappa": "weighted kappa",
    }  # fmt: skip
    # Chance agreement must not depend on document names; overall agreement stays the same.
    symmetrized = [table.symmetrized() for table in study.derived.values()]
    rows = [
        [
            text,
            *(format_value(getattr(table, name)) for table in symmetrized),
            str(study.differences.get(name, "")),
            str(study.tests.get(name, "")),
        ]
        for name, text in names.items()
    ]
    rows.append(["Fleiss' kappa", *map(str, study.fleiss.values()), "", ""])
    rows.append(["Krippendorff's alpha (ordinal)", *map(str, study.alpha.values()), "", ""])
    note = study.caution
    if study.tests:
        note += (
            " The test assumes independent pairs, and pairs of one query are not independent;"
            " intervals are over queries."
        )
    return Table(head, rows, "Agreement of derived orders, all", note.strip())


def _consistency_table(study: Study) -> Table:
    repeats, bias = study.repeats, study.bias
    rows = [
        [
            "same answer to a repeat, same sides",
            *_cells(repeats.same_sides.total, repeats.same_sides.value),
        ],
        ["same answer to a repeat, swapped", *_cells(repeats.swapped.total, repeats.swapped.value)],
        ["left chosen", *_cells(bias.fraction_left.total, bias.fraction_left.value)],
        ["circular triads", *_cells(study.triads.complete, study.triads.fraction)],
    ]
    note = f"left against right: {format_p(bias.p)}" if bias.fraction_left.total else ""
    return Table(["", "number", "fraction"], rows, "Consistency", note)


def _cells(number: int, value: float) -> list[str]:
    return [str(number), format_value(value)]
