"""For leads: progress, effort, agreement, truth, learned measure, exports."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from firstpage.web.admission import AdmissionRoute
from firstpage.web.analysis import choosing, figures, measure, truth
from firstpage.web.exports import make
from firstpage.web.exports.notes import notes
from firstpage.web.security import Lead, analyst_of, store_of
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project

router = APIRouter(tags=["analysis"], prefix="/projects/{slug}", route_class=AdmissionRoute)
ExportName = Literal[
    "truth.letor", "truth.qrels", "truth.jsonl", "log.jsonl", "log.csv", "report.html",
    "assignment.json", "pool.jsonl", "measure.json", "preferences.jsonl",
    "pairs.csv",
]  # fmt: skip
ToolName = Literal["pairs", "grades", "lists"]
TABS = "An id contains a blank, so tabs separate the fields; trec_eval does not read such a file."
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@router.get("/progress")
def show_progress(request: Request, member: Lead) -> dict[str, Any]:
    """Return the progress of the project, by query and by assessor."""
    with store_of(request).read() as tx:
        return figures.progress(tx, member.project)


@router.get("/effort")
def show_effort(request: Request, member: Lead) -> dict[str, Any]:
    """Return the effort of judging, by tool, assessor and query."""
    effort: dict[str, Any] = analyst_of(request).compute(figures.effort, member.project)
    return effort


@router.get("/agreement")
def show_agreement(request: Request, member: Lead, symmetrize: bool = False) -> dict[str, Any]:
    """Return the agreement between assessors, and their consistency."""
    study: dict[str, Any] = analyst_of(request).compute(
        figures.agreement, member.project, symmetrize
    )
    return study


@router.get("/disagreements")
def show_disagreements(
    request: Request, member: Lead, max_pairs: Annotated[int, Query(ge=1, le=100)] = 5
) -> dict[str, Any]:
    """Return the queries on which assessors disagree, the lowest agreement first."""
    disagreements: dict[str, Any] = analyst_of(request).compute(
        figures.disagreements, member.project, max_pairs
    )
    return disagreements


@router.get("/consensus")
def show_consensus(request: Request, member: Lead, tool: ToolName | None = None) -> dict[str, Any]:
    """Return one truth per query with its confidence; `not_judged`: only skipped questions."""
    truths, not_judged = analyst_of(request).compute(truth.judged_queries, member.project, tool)
    return figures.nan_to_none(
        {"truths": [asdict(t) for t in truths], "not_judged": [asdict(q) for q in not_judged]}
    )


@router.get("/measure")
def show_measure(request: Request, member: Lead, intervals: bool = False) -> dict[str, Any]:
    """Return the measure learned from judgments of lists, its accuracy, and the stopping advice."""
    with store_of(request).read() as tx:
        learned = measure.learned_measure(tx, member.project)
    record: dict[str, Any] = {
        "judgments": learned.judgments, "pairs": learned.pairs, "reason": learned.reason,
        "choice": choosing.choice_report(member.project, learned), "measure": None,
    }  # fmt: skip
    if learned.learner is not None and learned.utility is not None:
        assert learned.advice is not None
        assert learned.comparison is not None
        record |= {
            "measure": learned.utility.to_dict(), "notes": learned.learner.notes_,
            "dcg_comparison": learned.comparison.to_dict(),
            "rank_one_fraction": learned.learner.rank_one_fraction_,
            "advice": learned.advice.to_dict(),
        }  # fmt: skip
    if intervals and learned.intervals is not None:
        record["intervals"] = learned.intervals.to_dict()
    return figures.nan_to_none(record)


@router.get("/export/{name}", response_class=Response)
def export(
    request: Request, member: Lead, name: ExportName, tool: ToolName | None = None
) -> Response:
    """Download an export; the header X-Firstpage-Note says what it omits.

    The truth is that of one `tool`, by default the first of the project.
    """
    text, remarks = analyst_of(request).compute(_export, member.project, name, tool)
    if name == "truth.qrels" and "\t" in text:
        remarks = [*remarks, TABS]
    headers = {"content-disposition": f'attachment; filename="{member.project.slug}-{name}"'}
    if remarks:
        headers["x-firstpage-note"] = " ".join(remarks).encode("ascii", "backslashreplace").decode()
    if name.endswith(".html"):
        headers["content-security-policy"] = REPORT_POLICY
    return Response(text.encode(), media_type=make.media_type(name), headers=headers)


def _export(tx: Tx, project: Project, name: str, tool: str | None) -> tuple[str, list[str]]:
    """Return the text of an export, and what it omits."""
    return "".join(make.export(tx, project, name, tool)), list(notes(tx, project, name, tool))
