"""For leads: how far, at what cost, how well agreed; the truth, the report, the log of changes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

from firstpage.report import draw
from firstpage.report.measure import utility_figures
from firstpage.web.analysis import figures, truth
from firstpage.web.analysis.choosing import told
from firstpage.web.analysis.measure import learned
from firstpage.web.api.bodies import Before
from firstpage.web.exports.make import log_rows
from firstpage.web.exports.notes import truth_notes
from firstpage.web.pages.rendering import PageRoute, render, sentence
from firstpage.web.security import Lead, store_of
from firstpage.web.store import audit, texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project

router = APIRouter(route_class=PageRoute, include_in_schema=False)

METHODS = {"pairs": "side by side", "grades": "five grades", "lists": "two lists"}
EXPORTS = [
    ("truth.letor", "Top-k truth, LETOR", "for training rankers; add your features"),
    ("truth.qrels", "Top-k truth, qrels", "for evaluation"),
    ("truth.jsonl", "Top-k truth, JSON lines", "with ties, bad documents and confidence"),
    ("log.jsonl", "Raw log, JSON lines", "every event with its times"),
    ("log.csv", "Raw log, table", "for spreadsheets"),
    ("report.html", "Study report", "one page that needs nothing but itself"),
    ("assignment.json", "Assignment", "who judges what"),
]
OF_LISTS = [
    (
        "measure.json",
        "Learned measure",
        "gains and discounts; the page Measure says whether it is better than DCG",
    ),
    ("preferences.jsonl", "Preferences", "which list is better, with the items’ grades"),
]

MAX_COMMENTS = 500  # on one page; the log has all


@router.get("/p/{slug}/dashboard")
def dashboard(request: Request, member: Lead) -> Response:
    with store_of(request).read() as tx:
        far = figures.progress(tx, member.project)
        cost = figures.effort(tx, member.project)
    return render(
        request, "lead/dashboard.html", member=member, progress=far, effort=cost,
        methods=METHODS, curves=_learning(cost), exports=_exports(member.project),
    )  # fmt: skip


@router.get("/p/{slug}/live")
def live(request: Request, member: Lead) -> Response:
    """The part of the dashboard that changes while people work."""
    with store_of(request).read() as tx:
        far = figures.progress(tx, member.project)
    return render(request, "lead/progress.html", member=member, progress=far)


@router.get("/p/{slug}/agreement")
def agreement(request: Request, member: Lead, symmetrize: bool = False) -> Response:
    with store_of(request).read() as tx:
        found = figures.agreement(tx, member.project, symmetrize)
        disputes = figures.disagreements(tx, member.project, most=5)["queries"]
        names = _titles(tx, member.project, [q["query"] for q in disputes])
    return render(
        request, "lead/agreement.html", member=member, found=found, methods=METHODS,
        disputes=disputes, titles=names, symmetrize=symmetrize,
        biases=_biases(found["assessors"]),
    )  # fmt: skip


@router.get("/p/{slug}/truth")
def truths(request: Request, member: Lead, tool: str | None = None) -> Response:
    """One truth a query, with how sure it is."""
    wanted = tool if tool in member.project.tools else None
    with store_of(request).read() as tx:
        found, without = truth.judged_queries(tx, member.project, wanted)
        remarks = list(truth_notes(tx, member.project, found, without, wanted))
        names = _titles(tx, member.project, [t.query for t in found])
    return render(
        request, "lead/truth.html", member=member, truths=found, titles=names,
        exports=_exports(member.project), methods=METHODS, tool=wanted or member.project.tool,
        remarks=remarks if found or without else [], not_judged=without,
    )  # fmt: skip


@router.get("/p/{slug}/report")
def report(request: Request, member: Lead) -> Response:
    """The paper's tables for this project."""
    with store_of(request).read() as tx:
        study, _ = figures.studied(tx, member.project)
    return render(request, "lead/report.html", member=member, tables=study.tables())


@router.get("/p/{slug}/audit")
def changes(request: Request, member: Lead, before: Before = None) -> Response:
    with store_of(request).read() as tx:
        rows = audit.changes(tx, member.project.id, 100, before)
    older = rows[-1]["id"] if len(rows) == 100 else None
    return render(request, "lead/audit.html", member=member, rows=rows, older=older)


@router.get("/p/{slug}/comments")
def comments(request: Request, member: Lead) -> Response:
    """What assessors wrote beside their answers, newest first."""
    with store_of(request).read() as tx:
        rows = [row for row in log_rows(tx, member.project) if row["comment"]]
        names = _titles(tx, member.project, [row["query"] for row in rows])
    rows.sort(key=lambda row: str(row["at"]), reverse=True)
    return render(
        request, "lead/comments.html", member=member, rows=rows[:MAX_COMMENTS], titles=names,
        count=len(rows),
    )  # fmt: skip


def _exports(project: Project) -> list[tuple[str, str, str]]:
    return EXPORTS + (OF_LISTS if "lists" in project.tools else [])


def _learning(cost: dict[str, Any]) -> list[tuple[str, Markup]]:
    """Do people get faster?  Median seconds a judgment, by how many came before."""
    found = []
    for tool, blocks in cost["learning"].items():
        points = [
            (float(b["first"]), b["seconds"]["median"])
            for b in blocks
            if b["seconds"]["median"] is not None
        ]
        if len(points) > 1:
            drawing = draw.line(points, f"Median seconds a judgment, {METHODS[tool]}")
            found.append((METHODS[tool], Markup(drawing)))
    return found


def _biases(people: list[dict[str, Any]]) -> Markup | None:
    """How often each person chose the left side, with its interval; a half is fair."""
    rows = []
    for person in people:
        share = person["position"]["share_left"]
        if share["total"] >= 10:
            rows.append(
                (person["assessor"], share["value"] - 0.5, share["low"] - 0.5, share["high"] - 0.5)
            )
    return (
        Markup(draw.intervals(rows, "Left side chosen, beyond one half", zero=True))
        if rows
        else None
    )


def _titles(tx: Tx, project: Project, keys: list[str]) -> dict[str, dict[str, Any]]:
    """By query's key: its text, and its documents' titles and addresses by key."""
    found = {}
    for row in texts.of_project(tx, project.id):
        if row["key"] in keys:
            docs = {
                d["key"]: (d["title"] or d["key"], f"/documents/{d['id']}")
                for d in texts.documents_of(tx, row["id"])
            }
            found[row["key"]] = {"text": row["text"], "documents": docs}
    return found


CHOICES = [  # the option, its name, and what comes next by it
    ("order", "Order of work", "whatever is next in the order of work"),
    ("simple-margin", "Simple margin", "the pair that the measure is least sure of"),
    ("diverse", "Diverse", "the pair whose verdict may most easily turn round"),
    ("committee", "Committee", "the pair that measures from parts of the judgments quarrel about"),
]

ADVICE = {
    "stop": "More judgments hardly pay.",
    "go on": "Go on judging.",
    "unclear": "It is open whether more judgments pay.",
    "too few": "Too few judgments to say whether more pay.",
}


@router.get("/p/{slug}/measure")
def measure_page(request: Request, member: Lead) -> Response:
    """Show the measure with its intervals, how it compares with DCG, and whether to go on."""
    with store_of(request).read() as tx:
        found = learned(tx, member.project)
    choice = told(member.project, found)
    return render(
        request, "lead/measure.html", member=member, found=found, choice=choice,
        words={name: words for name, _, words in CHOICES}, advice_words=ADVICE,
        advice=sentence(found.advice) if found.advice else None,
        comparison=sentence(found.comparison) if found.comparison else None,
        pictures=Markup(utility_figures(found.utility, found.intervals)) if found.utility else None,
    )  # fmt: skip
