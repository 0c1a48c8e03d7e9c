"""Pages of an assessor: queries, guidelines, practice, judging, review."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from firstpage.labeling.app.admission import member_of
from firstpage.labeling.app.api import judging
from firstpage.labeling.app.api.bodies import Id
from firstpage.labeling.app.document_html import EMPTY_URL
from firstpage.labeling.app.pages.rendering import (
    LOGIN,
    MEMBER,
    page_routes,
    redirect,
    render,
    tool_labels,
)
from firstpage.labeling.app.sanitize import render_markdown
from firstpage.labeling.app.security import service_of, store_of
from firstpage.labeling.app.store import Login, Member, Project, projects, tasks, tours, training
from firstpage.labeling.app.store.options import Options
from firstpage.labeling.app.store.scales import scale_ends, scale_title, shown_scale
from firstpage.labeling.app.store.sessions import TaskState

routes = page_routes(LOGIN)


@routes.get("/")
def home(request: Request, login: Login) -> Response:
    """List the projects; an assessor of one project is redirected to it."""
    with store_of(request).read() as tx:
        members = projects.of_person(tx, login.person)
    may_create = login.person.admin or any(m.is_lead for m in members)
    if len(members) == 1 and not may_create:
        return redirect(f"/p/{members[0].project.slug}")
    return render(request, "home.html", members=members, may_create=may_create)


STARTED = ("started", "skipped")

QUESTIONS = {
    "pairs": "Which document answers the query better?",
    "grades": "How well does this document answer the query?",
    "lists": "Which list of results answers the query better?",
}
WHICH_IS_BAD = "Which document is bad, that is, clearly irrelevant?"
DEFAULT_GUIDELINES = {  # for projects without their own
    "pairs": "**Side by side.** You see a query and two documents. Choose the document that "
    "answers the query better. If both are good, choose the one you would rather see first.",
    "grades": "**{title}.** You see a query and one document. Grade how well the document "
    "answers the query, {ends}.",
    "lists": "**Two lists.** You see a query and two lists of results. Choose the list that you "
    "would rather get for this query; the first results count most.",
}
GENERAL_GUIDELINES = (
    "If there is a description under the query, it says what counts as relevant.\n\n"
    "Judge by the content, not by layout, length or brand. There is no need to hurry."
)
LIST_ANSWERS = [
    ("2", "Left much better"), ("1", "Left better"), ("0", "Equal"),
    ("-1", "Right better"), ("-2", "Right much better"),
]  # fmt: skip


@routes.get("/p/{slug}", admit=MEMBER)
def start(request: Request, member: Member) -> Response:
    """List one's own queries, and the next one."""
    if "assessor" not in member.roles and member.is_lead:
        return redirect(f"/p/{member.project.slug}/dashboard")
    work = judging.work(request, member)
    next_task = next((t for t in work["tasks"] if t["id"] == work["next"]), None)
    done = sum(t["state"] == "done" for t in work["tasks"])
    with store_of(request).read() as tx:
        toured = tours.is_finished(tx, member.person.id)
    new = bool(work["tasks"]) and not toured and not any(t["judgments"] for t in work["tasks"])
    return render(
        request,
        "work.html",
        member=member,
        tasks=work["tasks"],
        next_task=next_task,
        training=work["training"],
        finished=done,
        offer_tour=new,
        tool_labels=tool_labels(member.project),
    )


@routes.get("/p/{slug}/tour", admit=MEMBER)
def guided_tour(request: Request, member: Member) -> Response:
    """Show the guided first task, which looks like a real one."""
    slug = member.project.slug
    return _judging_page(
        request,
        member,
        judging.tour_state(request, member),
        task=f"tour-{slug}",
        training=True,
        first=False,
        api=f"/api/v1/projects/{slug}/tour",
        done_url=f"/p/{slug}?note=toured",
    )


@routes.post("/p/{slug}/tour", admit=MEMBER)
def skip_tour(request: Request, member: Member, form: FormData) -> Response:
    """Skip the guided first task; it is not offered again."""
    with store_of(request).write() as tx:
        tours.finish(tx, member.person.id)
    return redirect(f"/p/{member.project.slug}")


@routes.get("/p/{slug}/guidelines", admit=MEMBER)
def guidelines(request: Request, member: Member) -> Response:
    with store_of(request).read() as tx:
        practice = training.progress(tx, member.project, member.person.id)
    return render(
        request,
        "guidelines.html",
        member=member,
        training=practice,
        guidelines=_guidelines(member.project, member.project.tools),
    )


@routes.get("/p/{slug}/training", admit=MEMBER)
def practice(request: Request, member: Member) -> Response:
    """Show the practice questions, which look like real ones."""
    slug = member.project.slug
    with store_of(request).read() as tx:
        state = training.state(tx, member.project, member.person.id)
    if state.question is None:
        return redirect(f"/p/{slug}", "trained" if state.done else None)
    return _judging_page(
        request,
        member,
        state,
        task=f"training-{slug}",
        training=True,
        first=state.seq == 0,
        api=f"/api/v1/projects/{slug}/training",
        done_url=f"/p/{slug}?note=trained",
    )


@routes.get("/tasks/{task}")
def judge(request: Request, login: Login, task: Id, after: Id | None = None) -> Response:
    """Show the judging page, which gets its content from the API; `after` is the task before."""
    state = service_of(request).state(task, login.person)
    if state.done:
        return redirect(f"/tasks/{task}/done")
    member = member_of(request, state.project, login.person)
    with store_of(request).read() as tx:
        practiced = training.progress(tx, member.project, login.person.id).needed
        rows = tasks.of_person(tx, member.project, login.person.id)
    started = any(t.judgments or t.state in STARTED for t in rows if t.tool == state.tool)
    return _judging_page(
        request,
        member,
        state,
        task=task,
        training=False,
        first=not practiced and not started,
        api=f"/api/v1/tasks/{task}",
        done_url=f"/tasks/{task}/next",
        previous=after,
        on_one_page=bool(service_of(request).documents(task, login.person)),
    )


@routes.get("/tasks/{task}/list")
def rate_list(request: Request, login: Login, task: Id) -> Response:
    """Show all documents of a query in their original order, each with the grades."""
    service = service_of(request)
    state = service.state(task, login.person)
    shown = service.documents(task, login.person)
    if not shown or (state.question is None and not state.done):
        return redirect(f"/tasks/{task}")
    member = member_of(request, state.project, login.person)
    judged = service.judgments(task, login.person)
    graded = {row.left.key: (i, row.judgment) for i, row in enumerate(judged)}
    return render(
        request,
        "rate_list.html",
        member=member,
        state=state,
        documents=[(document, *graded.get(document.key, (None, None))) for document in shown],
        scale=shown_scale(member.project.options.grades),
        question=QUESTIONS["grades"],
    )


@routes.get("/tasks/{task}/next")
def continue_(request: Request, login: Login, task: Id) -> Response:
    """Redirect from a finished query: with lists, often of one question each, to the next."""
    state = service_of(request).state(task, login.person)
    if state.tool == "lists" and state.done:
        member = member_of(request, state.project, login.person)
        chosen = judging.next_choice(request, member)["task"]
        if chosen is not None:
            return redirect(f"/tasks/{chosen}?after={task}")
    return redirect(f"/tasks/{task}/done")


@routes.get("/tasks/{task}/done")
def done(request: Request, login: Login, task: Id) -> Response:
    """Confirm that a query is done, and offer the next one."""
    state = service_of(request).state(task, login.person)
    member = member_of(request, state.project, login.person)
    work = judging.work(request, member)
    next_task = next((t for t in work["tasks"] if t["id"] == work["next"]), None)
    remaining = sum(t["state"] in ("open", "started") for t in work["tasks"])
    return render(
        request,
        "done.html",
        member=member,
        task=task,
        query=state.query.text,
        done=state.done,
        judgments=state.judgments,
        next_task=next_task,
        remaining=remaining,
    )


@routes.get("/tasks/{task}/judgments")
def review(request: Request, login: Login, task: Id) -> Response:
    """Show one's own judgments, each with a menu to change the answer."""
    service = service_of(request)
    state = service.state(task, login.person)
    member = member_of(request, state.project, login.person)
    rows = []
    options = member.project.options
    for index, row in enumerate(service.judgments(task, login.person)):
        judgment, key = row.judgment, row.left.key
        value = _value(judgment.outcome, judgment.bad, key) if not judgment.skipped else "skipped"
        rows.append(
            {
                "index": index,
                "left": row.left,
                "right": row.right,
                "value": value,
                "choices": _choices(state.tool, options, value),
                "reasons": row.reasons,
                "aspects": row.aspects,
            }
        )
    return render(
        request,
        "judgments.html",
        member=member,
        task=task,
        reasons=options.reasons or (),
        aspects=(options.aspects or ()) if state.tool == "grades" else (),
        scale=shown_scale(options.grades),
        seq=state.seq,
        query=state.query.text,
        tool=state.tool,
        rows=rows,
        open=not state.done and state.question is not None,
    )


def _judging_page(
    request: Request,
    member: Member,
    state: TaskState,
    *,
    training: bool,
    previous: int | None = None,
    on_one_page: bool = False,
    **context: Any,
) -> Response:
    """Render the judging page; undo reaches back to the task `previous`."""
    start, options = f"/p/{member.project.slug}", member.project.options
    return render(
        request,
        "judge.html",
        member=member,
        tool=state.tool,
        training=training,
        query_text=state.query.text,
        question=QUESTIONS[state.tool],
        which_is_bad=WHICH_IS_BAD,
        guidelines=_guidelines(member.project, (state.tool,), under=2),
        guidelines_url=f"{start}/guidelines",
        back_url=start,
        previous=previous,
        on_one_page=on_one_page,
        empty_frame=EMPTY_URL,
        scale=shown_scale(options.grades),
        custom_scale=options.grades is not None,
        aspects=options.aspects,
        reasons=options.reasons,
        **context,
    )


def _guidelines(project: Project, tools: Sequence[str], under: int = 1) -> Markup:
    """Return the project's guidelines as HTML, or the default ones of these tools."""
    scale = project.options.grades
    names = {"title": scale_title(scale).capitalize(), "ends": scale_ends(scale)}
    texts = (DEFAULT_GUIDELINES[tool].format(**names) for tool in tools)
    default = "\n\n".join([*texts, GENERAL_GUIDELINES])
    return render_markdown(project.guidelines.strip() or default, under)


def _value(outcome: int, bad: tuple[str, ...], left: str) -> str:
    """Return an answer as the value of a menu: its outcome, and the side marked bad."""
    side = {0: "", 1: ":left" if left in bad else ":right"}.get(len(bad), ":both")
    return f"{outcome}{side}"


def _choices(tool: str, options: Options, value: str) -> list[tuple[str, str]]:
    """Return the values and labels of the answers that can be chosen, with the current one."""
    if tool == "pairs":
        choices = [("1", "Left is better"), ("-1", "Right is better")]
        if options.ties or value == "0":
            choices.insert(1, ("0", "Equally good"))
        if options.bad or ":" in value:
            choices += [("-1:left", "Left is bad"), ("1:right", "Right is bad")]
            choices += [("0:both", "Both are bad")]
    elif tool == "grades":
        choices = [(str(i), level.name) for i, level in enumerate(shown_scale(options.grades))]
    else:
        choices = list(LIST_ANSWERS)
    if value not in dict(choices):
        choices.append((value, "Skipped" if value == "skipped" else "Unchanged"))
    return choices
