"""HTML pages about labeling: simulated strategies, and studies of assessors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from firstpage.core import Table, bars, curves
from firstpage.interop.report import figure, page, paragraph
from firstpage.labeling.simulation.simulate import Simulation
from firstpage.labeling.statistics.profiles import AssessorProfile
from firstpage.labeling.statistics.study import Study

ASSESSOR_FIGURES = (
    ("agreement", "Mean agreement with other assessors on pairs that both judged."),
    ("seconds", "Median seconds per judgment."),
)


def simulation_page(results: Sequence[tuple[int | None, Simulation]], table: Table) -> str:
    """Return a page on simulated labeling strategies."""
    k = results[0][1].k
    figures = []
    for key, name in (("recall", f"recall of the top {k}"), (f"kNDCG@{k}", f"kNDCG@{k}")):
        series: dict[str, list[tuple[float, float]]] = {}
        for _, result in results:
            values = result.to_dict()
            if key in values:
                series.setdefault(result.strategy, []).append(
                    (values["mean_questions"], values[key])
                )
        if series:
            ordered = {strategy: sorted(points) for strategy, points in series.items()}
            drawing = curves(ordered, name, "questions per query", name)
            figures.append(figure(drawing, f"{name}, by the number of questions per query."))
    lead = "Mean number of questions per query, and how much of the true top they find."
    return page("Labeling strategies", lead, [("Quality", figures), ("Numbers", [table.html()])])


def study_page(title: str, study: Study, assessors: Sequence[AssessorProfile] = ()) -> str:
    """Return a page on judging effort and agreement, with the tables of Niu et al. (2012)."""
    sections = [(table.title, [replace(table, title="").html()]) for table in study.tables()]
    figures = [_assessor_figure(assessors, *drawn) for drawn in ASSESSOR_FIGURES]
    if any(figures):
        sections.insert(1, ("Assessors", figures))
    if study.caution:
        sections.append(("Caution", [paragraph(study.caution)]))
    lead = "Judging time, agreement between assessors, and consistency of their judgments."
    return page(title, lead, sections)


def _assessor_figure(assessors: Sequence[AssessorProfile], field: str, caption: str) -> str:
    """Return a bar per assessor for whom the value is known, or an empty string."""
    values = [(profile.assessor, float(getattr(profile, field))) for profile in assessors]
    known = [(assessor, value) for assessor, value in values if isfinite(value)]
    return figure(bars(known, caption), caption) if known else ""
