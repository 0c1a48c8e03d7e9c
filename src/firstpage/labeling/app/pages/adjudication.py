"""Pages for leads: all answers, one answer as its assessor saw it, disputes and verdicts."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from firstpage.core import DataError
from firstpage.core.http import sentence
from firstpage.labeling.app.analysis import adjudication, answers
from firstpage.labeling.app.analysis.answers import AnswerFilter
from firstpage.labeling.app.api.analysis import AnswerQuery
from firstpage.labeling.app.api.bodies import Id, Number
from firstpage.labeling.app.pages.rendering import (
    LEAD,
    field,
    page_routes,
    query_texts,
    redirect,
    render,
)
from firstpage.labeling.app.pages.work import LIST_ANSWERS, QUESTIONS
from firstpage.labeling.app.security import analyst_of, store_of
from firstpage.labeling.app.store import Member, Project, projects
from firstpage.labeling.app.store import adjudication as verdicts
from firstpage.labeling.app.store.scales import grade_names
from firstpage.labeling.session.events import LeadVerdict

routes = page_routes(LEAD)
PAIR_ANSWERS = {1: "Left is better", 0: "Equally good", -1: "Right is better"}
SHOWN_DISPUTES = 20
KINDS = {  # of questions, as the pages call them
    "judgment": "judgment", "repeat": "hidden repeat", "gold": "known answer",
    "training": "practice", "probe": "implied pair",
}  # fmt: skip
ORDERS = ("newest", "fastest", "slowest", "least probable")


@routes.get("/p/{slug}/answers")
def answers_page(request: Request, member: Member, query: AnswerQuery) -> Response:
    """Show the answers of all assessors, with filters."""
    wanted = query.filter()
    page = analyst_of(request).compute(answers.answers, member.project, wanted)
    with store_of(request).read() as tx:
        people = projects.members(tx, member.project)
    names = {row["login"]: row["name"] for row in people if row["role"] == "assessor"}
    return render(
        request,
        "lead/answers.html",
        member=member,
        page=page,
        wanted=wanted,
        names=names,
        orders=ORDERS,
        kinds=KINDS,
        words=partial(answer_words, member.project),
        filtered=wanted != AnswerFilter(),
        older=_address(wanted, page["pages"], 1),
        newer=_address(wanted, page["pages"], -1),
    )


@routes.get("/p/{slug}/answers/{task}/{seq}")
def answer_page(request: Request, member: Member, task: Id, seq: Number) -> Response:
    """Show one answer with both documents, as its assessor saw them."""
    row = analyst_of(request).compute(answers.answer_as_shown, member.project, task, seq)
    if row is None:
        raise HTTPException(404, "There is no such answer.")
    return render(
        request,
        "lead/answer.html",
        member=member,
        row=row,
        words=partial(answer_words, member.project),
        question=QUESTIONS[row["tool"]],
        kinds=KINDS,
    )


@routes.get("/p/{slug}/adjudicate")
def disputes_page(request: Request, member: Member, query: str | None = None) -> Response:
    """Show the disputes, the most valuable first, and the verdicts."""
    return _disputes(request, member, query)


@routes.post("/p/{slug}/adjudicate")
def decide(request: Request, member: Member, form: FormData) -> Response:
    """Record a verdict."""
    value, left, right = (field(form, name) for name in ("outcome", "left", "right"))
    outcome, _, side = value.partition(":")
    bad = {"left": (left,), "right": (right,), "both": (left, right)}.get(side, ())
    try:
        if outcome not in {str(n) for n in range(-2, 101)}:
            raise DataError("choose the verdict.")
        with store_of(request).write() as tx:
            verdicts.decide(
                tx,
                member.project,
                field(form, "query"),
                field(form, "tool"),
                LeadVerdict(left, right or None, int(outcome), bad),
                field(form, "reason"),
                field(form, "key")[:64] or uuid4().hex,
                member.person,
            )
    except DataError as error:
        return _disputes(request, member, None, status=400, problem=sentence(error))
    return redirect(f"/p/{member.project.slug}/adjudicate", "settled")


@routes.post("/p/{slug}/adjudicate/withdraw")
def withdraw(request: Request, member: Member, form: FormData) -> Response:
    """Take back a verdict."""
    number = field(form, "index")
    try:
        with store_of(request).write() as tx:
            verdicts.withdraw(
                tx,
                member.project,
                field(form, "query"),
                field(form, "tool"),
                int(number) if number.isdecimal() and len(number) < 9 else -1,
                field(form, "key")[:64] or uuid4().hex,
                member.person,
            )
    except DataError as error:
        return _disputes(request, member, None, status=400, problem=sentence(error))
    return redirect(f"/p/{member.project.slug}/adjudicate", "withdrawn")


def _disputes(request: Request, member: Member, query: str | None, **context: Any) -> Response:
    queue = analyst_of(request).compute(adjudication.queue, member.project, query or None)
    with store_of(request).read() as tx:
        queries = query_texts(tx, member.project)
    return render(
        request,
        "lead/adjudicate.html",
        member=member,
        queue=queue,
        words=partial(answer_words, member.project),
        shown=queue["disputes"][:SHOWN_DISPUTES],
        new_key=lambda: uuid4().hex,
        query=queries.get(query, query) if query else "",
        choices=lambda row: _choices(member.project, row),
        **context,
    )


def answer_words(project: Project, row: dict[str, Any]) -> str:
    """Return an answer, an opinion or a verdict in words."""
    if row.get("skipped"):
        return "Skipped"
    bad = [b["key"] if isinstance(b, dict) else b for b in row.get("bad") or []]
    if "grade" in row:
        return _grade(project, row["grade"])
    if row.get("right") is None and "outcome" in row and "asked" not in row:
        if row.get("tool") == "grades":
            return _grade(project, row["outcome"])
        return "Bad" if row["outcome"] == 0 else "Not bad"
    if isinstance(row.get("bad"), bool):
        return "Bad" if row["bad"] else "Not bad"
    outcome = row["outcome"]
    words = dict(LIST_ANSWERS).get(str(outcome)) if abs(outcome) > 1 else None
    text = words or PAIR_ANSWERS[outcome]
    if len(bad) > 1:
        return "Both are bad"
    if bad:
        return f"{text}; the other one is bad"
    return text


def _grade(project: Project, grade: int) -> str:
    names = grade_names(project.options.grades)
    return names[grade] if grade < len(names) else str(grade)


def _choices(project: Project, row: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the values and labels of the verdicts on a dispute."""
    if row["right"] is None:
        if row["tool"] == "grades":
            return [
                (str(grade), name) for grade, name in enumerate(grade_names(project.options.grades))
            ]
        return [("0:left", "Bad: clearly irrelevant"), ("1", "Not bad")]
    if row["tool"] == "lists":
        return list(LIST_ANSWERS)
    bad = [("-1:left", "Left is bad"), ("1:right", "Right is bad"), ("0:both", "Both are bad")]
    return [
        ("1", "Left is better"),
        ("0", "Equally good"),
        ("-1", "Right is better"),
        *(bad if project.options.bad else []),
    ]


def _address(wanted: AnswerFilter, pages: int, step: int) -> str | None:
    """Return the address of the page before or after, with the same filter."""
    number = wanted.page + step
    if not 1 <= number <= pages:
        return None
    default = asdict(AnswerFilter())
    changed = asdict(replace(wanted, page=number))
    return "?" + urlencode({n: v for n, v in changed.items() if v != default[n]})
