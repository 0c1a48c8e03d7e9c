"""Pages about labeling: what strategies find for their questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from firstpage.labeling.simulation.simulate import Simulation
from firstpage.labeling.statistics.profiles import AssessorProfile
from firstpage.labeling.statistics.study import Study
from firstpage.report.draw import bars, curves
from firstpage.report.page import figure, page, paragraph
from firstpage.table import Table

DRAWN = (
    ("agreement", "Mean agreement with the others on pairs that both were asked."),
    ("seconds", "Median seconds per judgment."),
)


def simulation_page(found: Sequence[tuple[int | None, Simulation]], table: Table) -> str:
    """The table, and the quality over the questions that were really asked."""
    k = found[0][1].k
    figures = []
    for key, name in (("recall", f"share of the top {k} found"), (f"kNDCG@{k}", f"kNDCG@{k}")):
        series: dict[str, list[tuple[float, float]]] = {}
        for _, result in found:
            values = result.to_dict()
            if key in values:
                series.setdefault(result.strategy, []).append((values["mean"], values[key]))
        if series:
            ordered = {strategy: sorted(points) for strategy, points in series.items()}
            drawing = curves(ordered, name, "questions a query", name)
            figures.append(figure(drawing, f"{name}, over the questions asked."))
    lead = "Mean questions a query, and how much of the true top they find."
    return page("Labeling strategies", lead, [("Quality", figures), ("Numbers", [table.html()])])


def study_page(title: str, study: Study, people: Sequence[AssessorProfile] = ()) -> str:
    """Effort and agreement in the tables of Niu et al. (2012), and a picture of the assessors."""
    sections = [(table.title, [replace(table, title="").html()]) for table in study.tables()]
    drawn = [_bars(people, *what) for what in DRAWN]
    if any(drawn):
        sections.insert(1, ("Assessors", drawn))
    if study.caution:
        sections.append(("A word of caution", [paragraph(study.caution)]))
    return page(
        title, "How long judging took, how far people agree, how steady they are.", sections
    )


def _bars(people: Sequence[AssessorProfile], name: str, caption: str) -> str:
    """One number of everybody, where it is known."""
    rows = [(p.assessor, float(getattr(p, name))) for p in people]
    known = [(who, value) for who, value in rows if isfinite(value)]
    return figure(bars(known, caption), caption) if known else ""
