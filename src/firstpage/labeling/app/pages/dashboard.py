"""Pages for leads: progress, effort, agreement, truth, study report, learned measure, audit."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from firstpage.core import bars, intervals, line
from firstpage.core.http import sentence
from firstpage.interop.report import utility_figures
from firstpage.labeling.app.analysis import charts, figures, truth
from firstpage.labeling.app.analysis.choosing import choice_report
from firstpage.labeling.app.analysis.measure import learned_measure
from firstpage.labeling.app.api.bodies import Id
from firstpage.labeling.app.exports.export_notes import truth_notes
from firstpage.labeling.app.exports.make import log_rows
from firstpage.labeling.app.pages.rendering import (
    LEAD,
    page_routes,
    query_texts,
    render,
    tool_labels,
)
from firstpage.labeling.app.security import analyst_of, store_of
from firstpage.labeling.app.store import Member, Project, Tx, audit, people, projects, tasks, texts
from firstpage.labeling.app.store.scales import grade_names

routes = page_routes(LEAD)

EXPORTS = [
    ("truth.letor", "Truth, LETOR", "to train rankers; add your features"),
    ("truth.qrels", "Truth, qrels", "for evaluation"),
    ("truth.jsonl", "Truth, JSON lines", "with ties, bad documents and confidence"),
    ("log.jsonl", "Raw log, JSON lines", "every event with its times"),
    ("log.csv", "Raw log, CSV", "for spreadsheets"),
    ("report.html", "Study report", "one self-contained page"),
    ("assignment.json", "Assignment", "who judges what"),
    ("quepid.csv", "Ratings, CSV", "for Quepid"),
]
PAIR_EXPORTS = [
    ("pairs.csv", "Pairs, CSV", "every comparison with its assessor, to train rankers on")
]
LIST_EXPORTS = [
    (
        "measure.json",
        "Learned measure",
        "gains and discounts; the page Measure says whether it is better than DCG",
    ),
    ("preferences.jsonl", "Preferences", "which list is better, with the items’ grades"),
]

MIN_ANSWERS = 10  # of a person in the plot of side bias
MAX_PAIRS = 5  # of a query on which assessors disagree
MAX_COMMENTS = 500  # on the page; the log has all


@routes.get("/p/{slug}/dashboard")
def dashboard(request: Request, member: Member) -> Response:
    with store_of(request).read() as tx:
        progress = figures.progress(tx, member.project)
        names = {row["login"]: row["name"] for row in projects.members(tx, member.project)}
        days = charts.answers_by_day(tx, member.project)
        has_queries = bool(query_texts(tx, member.project))
    analyst = analyst_of(request)
    effort = analyst.compute(figures.effort, member.project)
    with store_of(request).read() as tx:
        titles = _titles(tx, member.project, [o["query"] for o in effort["outliers"]])
    labels = tool_labels(member.project)
    return render(
        request,
        "lead/dashboard.html",
        member=member,
        progress=progress,
        effort=effort,
        tool_labels=labels,
        curves=_learning_curves(effort, labels),
        exports=_exports(member.project),
        tool=None,
        names=names,
        titles=titles,
        next_step="assignment" if has_queries else "data",
        questions=analyst.compute(figures.questions, member.project),
        days=Markup(bars(days, "Answers by day")) if days else None,
    )


@routes.get("/p/{slug}/progress")
def live(request: Request, member: Member) -> Response:
    """Return the progress section, which the dashboard reloads."""
    with store_of(request).read() as tx:
        progress = figures.progress(tx, member.project)
    return render(request, "lead/progress.html", member=member, progress=progress)


@routes.get("/p/{slug}/agreement")
def agreement(request: Request, member: Member, symmetrize: bool = False) -> Response:
    analyst = analyst_of(request)
    study = analyst.compute(figures.agreement, member.project, symmetrize)
    disputes = analyst.compute(figures.disagreements, member.project, MAX_PAIRS)["queries"]
    matrices = analyst.compute(charts.agreement_matrices, member.project)
    with store_of(request).read() as tx:
        titles = _titles(tx, member.project, [q["query"] for q in disputes])
        names = {row["login"]: row["name"] for row in projects.members(tx, member.project)}
        grades = charts.grade_counts(tx, member.project)
    labels = tool_labels(member.project)
    for profile in study["assessors"]:
        profile["name"] = names.get(profile["assessor"], profile["assessor"])
    return render(
        request,
        "lead/agreement.html",
        member=member,
        study=study,
        tool_labels=labels,
        disputes=disputes,
        titles=titles,
        symmetrize=symmetrize,
        biases=_biases(study["assessors"]),
        maps=_agreement_maps(matrices, labels),
        grade_map=None
        if grades is None
        else Markup(
            charts.grade_heat_map(
                grades, grade_names(member.project.options.grades), "Grades of two assessors"
            )
        ),
    )


@routes.get("/p/{slug}/truth")
def truths(
    request: Request, member: Member, tool: str | None = None, partial: bool = False
) -> Response:
    """Show the truth of each query with its confidence."""
    chosen = tool if tool in member.project.tools else None
    judged, not_judged = analyst_of(request).compute(
        truth.judged_queries, member.project, chosen, partial
    )
    curve = charts.confidence_curve(judged, "Confidence in the top k, by query")
    with store_of(request).read() as tx:
        notes = list(truth_notes(tx, member.project, judged, not_judged, chosen))
        names = _titles(tx, member.project, [t.query for t in judged])
    return render(
        request,
        "lead/truth.html",
        member=member,
        truths=judged,
        titles=names,
        exports=_exports(member.project),
        tool_labels=tool_labels(member.project),
        tool=chosen or member.project.tool,
        not_judged=not_judged,
        remarks=notes if judged or not_judged else [],
        partial=partial,
        curve=None if curve is None else Markup(curve),
    )


@routes.get("/p/{slug}/report")
def report(request: Request, member: Member) -> Response:
    """Show the tables of the paper for this project."""
    tables = analyst_of(request).compute(figures.study_tables, member.project)
    return render(request, "lead/report.html", member=member, tables=tables)


@routes.get("/p/{slug}/audit")
def changes(request: Request, member: Member, before: Id | None = None) -> Response:
    with store_of(request).read() as tx:
        rows = audit.changes(tx, member.project.id, 100, before)
        queries = query_texts(tx, member.project)
        details = [_named_details(tx, queries, row["details"] or {}) for row in rows]
    older = rows[-1]["id"] if len(rows) == 100 else None
    rows = [{**row, "details": named} for row, named in zip(rows, details, strict=True)]
    return render(request, "lead/audit.html", member=member, rows=rows, older=older)


def _named_details(tx: Tx, queries: dict[str, str], details: dict[str, Any]) -> dict[str, Any]:
    """Return the details of a change with names in place of the ids of its task and query."""
    named = dict(details)
    if (task := tasks.get(tx, named.get("task", 0))) is not None:
        del named["task"]
        named = {"query": task.query_key, "assessor": _name(tx, task.person), **named}
    if "query" in named:
        named["query"] = queries.get(named["query"], named["query"])
    return named


def _name(tx: Tx, person: int) -> str:
    row = people.get(tx, person)
    return "–" if row is None else row.name or row.login


@routes.get("/p/{slug}/comments")
def comments(request: Request, member: Member) -> Response:
    """Show the comments of assessors, newest first."""
    with store_of(request).read() as tx:
        rows = [row for row in log_rows(tx, member.project) if row["comment"]]
        titles = _titles(tx, member.project, [row["query"] for row in rows])
        names = {row["login"]: row["name"] for row in projects.members(tx, member.project)}
    rows.sort(key=lambda row: str(row["recorded_at"]), reverse=True)
    return render(
        request,
        "lead/comments.html",
        member=member,
        rows=rows[:MAX_COMMENTS],
        titles=titles,
        count=len(rows),
        names=names,
    )


def _exports(project: Project) -> list[tuple[str, str, str]]:
    pairs = PAIR_EXPORTS if "pairs" in project.tools else []
    return EXPORTS + pairs + (LIST_EXPORTS if "lists" in project.tools else [])


def _learning_curves(effort: dict[str, Any], labels: dict[str, str]) -> list[tuple[str, Markup]]:
    """Return plots of the median seconds per judgment over the number of judgments before."""
    plots = []
    for tool, blocks in effort["learning"].items():
        points = [
            (float(b["first"]), b["seconds"]["median"])
            for b in blocks
            if b["seconds"]["median"] is not None
        ]
        if len(points) > 1 and any(seconds for _, seconds in points):  # programs report no times
            plot = line(points, f"Median seconds per judgment, {labels[tool]}")
            plots.append((labels[tool], Markup(plot)))
    return plots


def _agreement_maps(
    matrices: dict[str, Any], labels: dict[str, str]
) -> list[tuple[str, str, Markup]]:
    """Return, for each tool, its name, what is compared, and the heat map of the assessors."""
    return [
        (
            labels[tool],
            matrix["basis"],
            Markup(charts.agreement_heat_map(matrix, f"Agreement of assessors, {labels[tool]}")),
        )
        for tool, matrix in matrices.items()
    ]


def _biases(people: list[dict[str, Any]]) -> Markup | None:
    """Return a plot of how often each person chose the left side, less one half."""
    rows = []
    for person in people:
        fraction = person["position_bias"]["fraction_left"]
        if fraction["total"] >= MIN_ANSWERS:
            value, low, high = (fraction[name] - 0.5 for name in ("value", "low", "high"))
            rows.append((person["name"], value, low, high))
    if not rows:
        return None
    title = "Fraction of answers for the left side, minus one half"
    return Markup(intervals(rows, title, zero=True))


def _titles(tx: Tx, project: Project, keys: list[str]) -> dict[str, dict[str, Any]]:
    """Return, by query key, its text and the titles and URLs of its documents."""
    titles = {}
    for row in texts.of_project(tx, project.id):
        if row["key"] in keys:
            docs = {
                d["key"]: (d["title"] or d["key"], f"/documents/{d['id']}")
                for d in texts.documents_of(tx, row["id"])
            }
            titles[row["key"]] = {"text": row["text"], "documents": docs}
    return titles


CHOICES = [  # option, label, description of the next pair
    ("order", "Working order", "the next pair in working order"),
    ("simple-margin", "Simple margin", "the pair with the smallest predicted difference"),
    ("diverse", "Diverse", "the pair whose predicted preference is most uncertain"),
    ("committee", "Committee", "the pair on which measures from subsamples disagree most"),
]

ADVICE = {
    "stop": "More judgments are unlikely to help.",
    "continue": "Continue judging.",
    "unclear": "It is unclear whether more judgments help.",
    "too few": "There are too few judgments to tell whether more help.",
}


@routes.get("/p/{slug}/measure")
def measure_page(request: Request, member: Member) -> Response:
    """Show the learned measure with intervals, its comparison with DCG, and stopping advice."""
    with store_of(request).read() as tx:
        learned = learned_measure(tx, member.project)
    choice = choice_report(member.project, learned)
    systems = analyst_of(request).compute(charts.system_wins, member.project)
    title = "Fraction of comparisons that a system wins, minus one half"
    return render(
        request,
        "lead/measure.html",
        member=member,
        learned=learned,
        choice=choice,
        systems=systems,
        wins=Markup(charts.system_chart(systems, title)) if systems else None,
        descriptions={name: text for name, _, text in CHOICES},
        verdicts=ADVICE,
        advice=sentence(learned.advice) if learned.advice else None,
        comparison=sentence(learned.comparison) if learned.comparison else None,
        plots=(
            Markup(utility_figures(learned.utility, learned.intervals)) if learned.utility else None
        ),
    )
