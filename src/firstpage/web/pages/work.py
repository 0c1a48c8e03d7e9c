"""What an assessor sees: my queries, guidelines, practice, judging, looking back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from markupsafe import Markup

from firstpage.web.api import judging
from firstpage.web.api.bodies import MAX_INT, Id
from firstpage.web.pages.rendering import PageRoute, go, render
from firstpage.web.sanitize import rendered
from firstpage.web.security import Anyone, CurrentPerson, desk_of, store_of
from firstpage.web.store import projects, tasks, training
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Member, Project
from firstpage.web.store.sessions import State

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/")
def home(request: Request, person: CurrentPerson) -> Response:
    """An assessor of one project goes straight to work."""
    with store_of(request).read() as tx:
        mine = projects.of_person(tx, person)
    may_create = person.admin or any(m.leads for m in mine)
    if len(mine) == 1 and not may_create:
        return go(f"/p/{mine[0].project.slug}")
    return render(request, "home.html", members=mine, may_create=may_create)


BEGUN = ("started", "skipped")
After = Annotated[int | None, Query(ge=1, le=MAX_INT)]

QUESTIONS = {
    "pairs": "Which document answers the query better?",
    "grades": "How well does this document answer the query?",
    "lists": "Which list of results answers the query better?",
}
WHICH_IS_BAD = "Which document is bad, that is, clearly irrelevant?"
DEFAULT_GUIDELINES = {  # shown where a project has none of its own
    "pairs": "**Side by side.** You see a query and two documents. Choose the document that "
    "answers the query better. If both would do, choose the one you would rather find first.",
    "grades": "**Five grades.** You see a query and one document. Say how well the document "
    "answers the query, from bad to perfect.",
    "lists": "**Two lists.** You see a query and two lists of results. Choose the list that you "
    "would rather get for this query; what stands first counts most.",
}
ALWAYS = (
    "The description under the query, where there is one, says what counts as relevant.\n\n"
    "Judge by the content, not by the look, the length or the brand. There is no need to hurry."
)
ANSWERS = {
    "grades": list(zip("01234", ("Bad", "Fair", "Good", "Excellent", "Perfect"), strict=True)),
    "lists": [
        ("2", "Left much better"), ("1", "Left better"), ("0", "Equal"),
        ("-1", "Right better"), ("-2", "Right much better"),
    ],
}  # fmt: skip


@router.get("/p/{slug}")
def start(request: Request, member: Anyone) -> Response:
    """My queries, and what to do next."""
    if "assessor" not in member.roles and member.leads:
        return go(f"/p/{member.project.slug}/dashboard")
    found = judging.work(request, member)
    following = next((t for t in found["tasks"] if t["id"] == found["next"]), None)
    done = sum(t["state"] == "done" for t in found["tasks"])
    return render(
        request, "work.html", member=member, tasks=found["tasks"], next_task=following,
        training=found["training"], finished=done,
    )  # fmt: skip


@router.get("/p/{slug}/guidelines")
def guidelines(request: Request, member: Anyone) -> Response:
    with store_of(request).read() as tx:
        standing = training.standing(tx, member.project, member.person.id)
    return render(
        request, "guidelines.html", member=member, training=standing,
        guidelines=_guidelines(member.project, member.project.tools),
    )  # fmt: skip


@router.get("/p/{slug}/training")
def practice(request: Request, member: Anyone) -> Response:
    """Questions with known answers, in the dress of real ones."""
    slug = member.project.slug
    with store_of(request).read() as tx:
        state = training.state(tx, member.project, member.person.id)
    if state.question is None:
        return go(f"/p/{slug}", "trained" if state.done else None)
    return _judging_page(
        request, member, state, task=f"training-{slug}", training=True, first=state.seq == 0,
        api=f"/api/v1/projects/{slug}/training", done_url=f"/p/{slug}?note=trained",
    )  # fmt: skip


@router.get("/tasks/{task}")
def judge(request: Request, task: Id, person: CurrentPerson, after: After = None) -> Response:
    """The judging page; what it shows comes by the API.  `after`: the task that was done before."""
    state = desk_of(request).state(task, person)
    if state.done:
        return go(f"/tasks/{task}/done")
    member = _member(request, state.project, person)
    with store_of(request).read() as tx:
        practiced = training.standing(tx, member.project, person.id).needed
        mine = tasks.of_person(tx, member.project, person.id)
    begun = any(t.asked or t.state in BEGUN for t in mine if t.tool == state.tool)
    return _judging_page(
        request, member, state, task=task, training=False, first=not practiced and not begun,
        api=f"/api/v1/tasks/{task}", done_url=f"/tasks/{task}/next", previous=after,
    )  # fmt: skip


@router.get("/tasks/{task}/next")
def go_on(request: Request, task: Id, person: CurrentPerson) -> Response:
    """From a query that is done: with lists, of often one question each, straight to the next."""
    state = desk_of(request).state(task, person)
    if state.tool == "lists" and state.done:
        following = judging.next_choice(request, _member(request, state.project, person))["task"]
        if following is not None:
            return go(f"/tasks/{following}?after={task}")
    return go(f"/tasks/{task}/done")


@router.get("/tasks/{task}/done")
def done(request: Request, task: Id, person: CurrentPerson) -> Response:
    """A query is finished: thanks, and the next one."""
    state = desk_of(request).state(task, person)
    member = _member(request, state.project, person)
    found = judging.work(request, member)
    following = next((t for t in found["tasks"] if t["id"] == found["next"]), None)
    open_ = sum(t["state"] in ("open", "started") for t in found["tasks"])
    return render(
        request, "done.html", member=member, task=task, query=state.query.text, done=state.done,
        asked=state.asked, next_task=following, remaining=open_,
    )  # fmt: skip


@router.get("/tasks/{task}/judgments")
def look_back(request: Request, task: Id, person: CurrentPerson) -> Response:
    """One's own judgments, each with another answer at hand."""
    desk = desk_of(request)
    state = desk.state(task, person)
    rows = []
    for at, (judged, left, right) in enumerate(desk.judgments(task, person)):
        value = _value(judged.outcome, judged.bad, left.key) if not judged.skipped else "skipped"
        rows.append(
            {
                "at": at, "left": left, "right": right, "value": value,
                "choices": _choices(state.tool, state.options, value),
            }
        )  # fmt: skip
    return render(
        request, "judgments.html", member=_member(request, state.project, person), task=task,
        seq=state.seq, query=state.query.text, tool=state.tool, rows=rows,
        open=not state.done and state.question is not None,
    )  # fmt: skip


def _judging_page(
    request: Request, member: Member, state: State, *, training: bool, previous: int | None = None,
    **context: Any,
) -> Response:  # fmt: skip
    """With `first` the guidelines come before the question; undo reaches the task `previous`."""
    start = f"/p/{member.project.slug}"
    return render(
        request, "judge.html", member=member, tool=state.tool, training=training,
        query_text=state.query.text, question=QUESTIONS[state.tool], which_is_bad=WHICH_IS_BAD,
        guidelines=_guidelines(member.project, (state.tool,), under=2),
        guidelines_url=f"{start}/guidelines", back_url=start, previous=previous, **context,
    )  # fmt: skip


def _guidelines(project: Project, tools: Sequence[str], under: int = 1) -> Markup:
    """Return the project's guidelines as HTML, or general ones for these tools."""
    general = "\n\n".join([*(DEFAULT_GUIDELINES[tool] for tool in tools), ALWAYS])
    return rendered(project.guidelines.strip() or general, under)


def _value(outcome: int, bad: tuple[str, ...], left: str) -> str:
    """An answer as one word: its outcome, and which side was called bad."""
    side = {0: "", 1: ":left" if left in bad else ":right"}.get(len(bad), ":both")
    return f"{outcome}{side}"


def _choices(tool: str, options: dict[str, Any], value: str) -> list[tuple[str, str]]:
    """Answers that may be given now, and always the one that was."""
    if tool == "pairs":
        found = [("1", "Left is better"), ("-1", "Right is better")]
        if options["ties"] or value == "0":
            found.insert(1, ("0", "Equally good"))
        if options["bad"] or ":" in value:
            found += [("-1:left", "Left is bad"), ("1:right", "Right is bad")]
            found += [("0:both", "Both are bad")]
    else:
        found = list(ANSWERS[tool])
    if value not in dict(found):
        found.append((value, "Skipped" if value == "skipped" else "As it was"))
    return found


def _member(request: Request, slug: str, person: Person) -> Member:
    with store_of(request).read() as tx:
        found = projects.member(tx, slug, person)
    if found is None:
        raise HTTPException(404, "There is no such project.")
    return found
