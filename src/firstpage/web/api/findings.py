"""For leads: progress, effort, agreement, truth, the measure, exports."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from firstpage.web.admission import AdmissionRoute
from firstpage.web.analysis import choosing, figures, measure, truth
from firstpage.web.exports import make
from firstpage.web.exports.notes import notes
from firstpage.web.security import Lead, store_of

router = APIRouter(tags=["findings"], prefix="/projects/{slug}", route_class=AdmissionRoute)
Name = Literal[
    "truth.letor", "truth.qrels", "truth.jsonl", "log.jsonl", "log.csv", "report.html",
    "assignment.json", "measure.json", "preferences.jsonl",
]  # fmt: skip
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@router.get("/progress")
def show_progress(request: Request, member: Lead) -> dict[str, Any]:
    """How far the project is, by query and by assessor."""
    with store_of(request).read() as tx:
        return figures.progress(tx, member.project)


@router.get("/effort")
def show_effort(request: Request, member: Lead) -> dict[str, Any]:
    """What judging cost."""
    with store_of(request).read() as tx:
        return figures.effort(tx, member.project)


@router.get("/agreement")
def show_agreement(request: Request, member: Lead, symmetrize: bool = False) -> dict[str, Any]:
    """Who agrees with whom, and with themselves."""
    with store_of(request).read() as tx:
        return figures.agreement(tx, member.project, symmetrize)


@router.get("/disagreements")
def show_disagreements(
    request: Request, member: Lead, most: Annotated[int, Query(ge=1, le=100)] = 5
) -> dict[str, Any]:
    """What is worth discussing, the worst first."""
    with store_of(request).read() as tx:
        return figures.disagreements(tx, member.project, most)


@router.get("/consensus")
def show_consensus(
    request: Request, member: Lead, tool: Literal["pairs", "grades", "lists"] | None = None
) -> dict[str, Any]:
    """One truth a query, with its confidence; `not_judged`: those of which all was skipped."""
    with store_of(request).read() as tx:
        found, without = truth.judged_queries(tx, member.project, tool)
    return figures.finite(
        {"truths": [asdict(t) for t in found], "not_judged": [asdict(q) for q in without]}
    )


@router.get("/measure")
def show_measure(request: Request, member: Lead, intervals: bool = False) -> dict[str, Any]:
    """The measure that the judgments of lists teach, how far to trust it, and whether to go on."""
    with store_of(request).read() as tx:
        found = measure.learned(tx, member.project)
    told: dict[str, Any] = {
        "judgments": found.judgments, "pairs": found.pairs, "why": found.why,
        "choice": choosing.told(member.project, found), "measure": None,
    }  # fmt: skip
    if found.learner is not None and found.utility is not None:
        assert found.advice is not None
        assert found.comparison is not None
        told |= {
            "measure": found.utility.to_dict(), "notes": found.learner.notes_,
            "against_dcg": found.comparison.to_dict(),
            "rank_one_share": found.learner.rank_one_fraction_,
            "advice": found.advice.to_dict(),
        }  # fmt: skip
    if intervals and found.intervals is not None:
        told["intervals"] = found.intervals.to_dict()
    return figures.finite(told)


@router.get("/export/{name}", response_class=Response)
def export(request: Request, member: Lead, name: Name) -> Response:
    """A file to keep; the header X-Firstpage-Note says what it leaves out, or should be known."""
    with store_of(request).read() as tx:
        text = "".join(make.export(tx, member.project, name))
        remarks = list(notes(tx, member.project, name))
    headers = {"content-disposition": f'attachment; filename="{member.project.slug}-{name}"'}
    if remarks:
        headers["x-firstpage-note"] = " ".join(remarks).encode("ascii", "backslashreplace").decode()
    if name.endswith(".html"):
        headers["content-security-policy"] = REPORT_POLICY
    return Response(text.encode(), media_type=make.media_type(name), headers=headers)
