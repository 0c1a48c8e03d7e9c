"""For leads: progress, effort, answers, disputes, agreement, truth, measure, exports."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs
from starlette.requests import Request
from starlette.responses import Response

from firstpage.labeling.app.admission import LEAD, api_routes
from firstpage.labeling.app.analysis import adjudication, answers, choosing, figures, measure, truth
from firstpage.labeling.app.analysis.answers import AnswerFilter
from firstpage.labeling.app.analysis.machines import machine_report
from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.exports import make
from firstpage.labeling.app.exports.export_notes import notes
from firstpage.labeling.app.security import analyst_of, store_of
from firstpage.labeling.app.store import Member, Project, Tx
from firstpage.labeling.app.store import adjudication as verdicts
from firstpage.labeling.machines.calibration import DEFAULT_MARGIN
from firstpage.labeling.session.events import LeadVerdict

routes = api_routes("analysis", "/projects/{slug}", admit=LEAD)
ExportName = Literal[
    "truth.letor", "truth.qrels", "truth.jsonl", "log.jsonl", "log.csv", "report.html",
    "assignment.json", "pool.jsonl", "measure.json", "preferences.jsonl", "pairs.csv", "quepid.csv",
]  # fmt: skip
Part = Annotated[str, Meta(max_length=200)]
Margin = Annotated[float, Meta(ge=0, le=1)]
PairCount = Annotated[int, Meta(ge=1, le=100)]
TABS = "An id contains a blank, so tabs separate the fields; trec_eval does not read such a file."
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@routes.get("/progress")
def show_progress(request: Request, member: Member) -> dict[str, Any]:
    """Return the progress of the project, by query and by assessor."""
    with store_of(request).read() as tx:
        return figures.progress(tx, member.project)


@routes.get("/effort")
def show_effort(request: Request, member: Member) -> dict[str, Any]:
    """Return the effort of judging, by tool, assessor and query."""
    return analyst_of(request).compute(figures.effort, member.project)


@routes.get("/agreement")
def show_agreement(request: Request, member: Member, symmetrize: bool = False) -> dict[str, Any]:
    """Return the agreement between assessors, and their consistency."""
    return analyst_of(request).compute(figures.agreement, member.project, symmetrize)


@routes.get("/disagreements")
def show_disagreements(
    request: Request, member: Member, max_pairs: PairCount = 5
) -> dict[str, Any]:
    """Return the queries on which assessors disagree, the lowest agreement first."""
    return analyst_of(request).compute(figures.disagreements, member.project, max_pairs)


class AnswerQuery(Struct, kw_only=True):
    """The parameters of a list of answers."""

    query: Part = ""
    assessor: Part = ""
    document: Part = ""
    disagreement: bool = False
    speed: answers.Speed = ""
    unexpected: bool = False
    skipped: bool = False
    comment: bool = False
    order: answers.Order = "newest"
    page: Annotated[int, Meta(ge=1, le=100_000)] = 1

    def filter(self) -> AnswerFilter:
        """Return the filter that they describe."""
        texts = {name: getattr(self, name).strip() for name in ("query", "assessor", "document")}
        return AnswerFilter(**{**structs.asdict(self), **texts})


@routes.get("/answers")
def show_answers(request: Request, member: Member, query: AnswerQuery) -> dict[str, Any]:
    """Return the current answers of all assessors that pass a filter, 50 per page.

    `probability` is that of the answer given all answers; `first_answer` what was revised.
    """
    return analyst_of(request).compute(answers.answers, member.project, query.filter())


@routes.get("/machines")
def show_machines(
    request: Request, member: Member, margin: Margin = DEFAULT_MARGIN
) -> dict[str, Any]:
    """Return how machines judge in comparison with people; `reason` says why there is nothing.

    A machine is trusted if it agrees with a person at most `margin` less often than people do.
    """
    return analyst_of(request).compute(machine_report, member.project, margin)


@routes.get("/questions")
def show_questions(request: Request, member: Member) -> dict[str, Any]:
    """Return how many pairs were asked, implied and pruned, and how probes were answered."""
    return analyst_of(request).compute(figures.questions, member.project)


@routes.get("/disputes")
def show_disputes(
    request: Request,
    member: Member,
    query: Part | None = None,
    limit: bodies.Limit = adjudication.MAX_DISPUTES,
) -> dict[str, Any]:
    """Return disputed pairs and documents, and the verdicts so far.

    The `value` of a dispute is the expected change of the top k of the truth if it is settled.
    """
    return analyst_of(request).compute(adjudication.queue, member.project, query, limit)


@routes.post("/verdicts", status=204)
def decide(request: Request, member: Member, body: bodies.VerdictBody) -> None:
    """Settle a dispute: a verdict on two documents of a query, or on one, with its reason."""
    verdict = LeadVerdict(body.left, body.right, body.outcome, tuple(body.bad))
    what = body.query, body.tool or member.project.tool, verdict, body.reason, body.key
    with store_of(request).write() as tx:
        verdicts.decide(tx, member.project, *what, member.person)


@routes.post("/verdicts/withdraw", status=204)
def withdraw(request: Request, member: Member, body: bodies.WithdrawBody) -> None:
    """Take back a verdict: that with the number `index` of the list of disputes."""
    with store_of(request).write() as tx:
        tool = body.tool or member.project.tool
        verdicts.withdraw(tx, member.project, body.query, tool, body.index, body.key, member.person)


@routes.get("/consensus")
def show_consensus(
    request: Request, member: Member, tool: bodies.ToolName | None = None, partial: bool = False
) -> dict[str, Any]:
    """Return one truth per query with its confidence; `not_judged`: only skipped questions.

    With `partial`, queries that nobody has finished have the truth of the answers so far.
    """
    truths, not_judged = analyst_of(request).compute(
        truth.judged_queries, member.project, tool, partial
    )
    return figures.nan_to_none(
        {"truths": [asdict(t) for t in truths], "not_judged": [asdict(q) for q in not_judged]}
    )


@routes.get("/measure")
def show_measure(request: Request, member: Member, intervals: bool = False) -> dict[str, Any]:
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
            "measure": learned.utility.to_dict(),
            "notes": learned.learner.notes_,
            "dcg_comparison": learned.comparison.to_dict(),
            "rank_one_fraction": learned.learner.rank_one_fraction_,
            "advice": learned.advice.to_dict(),
        }
    if intervals and learned.intervals is not None:
        record["intervals"] = learned.intervals.to_dict()
    return figures.nan_to_none(record)


@routes.get("/export/{name}")
def export(
    request: Request,
    member: Member,
    name: ExportName,
    tool: bodies.ToolName | None = None,
    partial: bool = False,
) -> Response:
    """Download an export; the header X-Firstpage-Note says what it omits.

    The truth is that of one `tool`, by default the first of the project; with `partial` it
    contains unfinished queries.
    """
    text, remarks = analyst_of(request).compute(_export, member.project, name, tool, partial)
    if name == "truth.qrels" and "\t" in text:
        remarks = [*remarks, TABS]
    headers = {"content-disposition": f'attachment; filename="{member.project.slug}-{name}"'}
    if remarks:
        headers["x-firstpage-note"] = " ".join(remarks).encode("ascii", "backslashreplace").decode()
    if name.endswith(".html"):
        headers["content-security-policy"] = REPORT_POLICY
    return Response(text.encode(), media_type=make.media_type(name), headers=headers)


def _export(
    tx: Tx, project: Project, name: str, tool: str | None, partial: bool
) -> tuple[str, list[str]]:
    """Return the text of an export, and what it omits."""
    text = "".join(make.export(tx, project, name, tool, partial))
    return text, list(notes(tx, project, name, tool, partial))
