"""What an assessor sees: my queries, guidelines, practice, judging, looking back."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response

from firstpage.web.api import judging
from firstpage.web.api.bodies import Id
from firstpage.web.pages.shell import PageRoute, go, render
from firstpage.web.security import Anyone, CurrentPerson, desk_of, store_of
from firstpage.web.store import projects, training
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Member

router = APIRouter(route_class=PageRoute, include_in_schema=False)

USUAL = (
    "You see a query and what its author was looking for.\n\n"
    "Side by side: choose the document that serves this query better. If both would do, choose "
    "the one you would rather find first.\n\n"
    "Five grades: say how well the one document serves the query, from bad to perfect.\n\n"
    "Judge by the content, not by the look, the length or the brand. There is no need to hurry; "
    "press P for a pause, U to take an answer back."
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
    text = member.project.guidelines.strip() or USUAL
    return render(request, "guidelines.html", member=member, guidelines=text, training=standing)


@router.get("/p/{slug}/training")
def practice(request: Request, member: Anyone) -> Response:
    """Questions with known answers, in the dress of real ones."""
    slug = member.project.slug
    with store_of(request).read() as tx:
        state = training.state(tx, member.project, member.person.id)
    if state.question is None:
        return go(f"/p/{slug}", "trained" if state.done else None)
    return render(
        request, "judge.html", member=member, task=f"training-{slug}", tool=state.tool,
        api=f"/api/v1/projects/{slug}/training", training=True, query_text=state.query.text,
        done_url=f"/p/{slug}?note=trained", back_url=f"/p/{slug}",
        guidelines_url=f"/p/{slug}/guidelines",
    )  # fmt: skip


@router.get("/tasks/{task}")
def judge(request: Request, task: Id, person: CurrentPerson) -> Response:
    """The judging page; what it shows comes by the API."""
    state = desk_of(request).state(task, person)
    if state.done:
        return go(f"/tasks/{task}/done")
    start = f"/p/{state.project}"
    return render(
        request, "judge.html", member=_member(request, state.project, person), task=task,
        tool=state.tool, api=f"/api/v1/tasks/{task}", training=False, query_text=state.query.text,
        done_url=f"/tasks/{task}/done", back_url=start, guidelines_url=f"{start}/guidelines",
    )  # fmt: skip


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
