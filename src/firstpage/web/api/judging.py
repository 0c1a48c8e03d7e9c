"""Judging: a person's work, the state of a task, answers."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Depends, HTTPException, Request

from firstpage.web.admission import AdmissionRoute
from firstpage.web.analysis.choosing import Choice, following
from firstpage.web.api import bodies
from firstpage.web.api.timing import answer_timing, span_timing
from firstpage.web.security import Anyone, CurrentPerson, csrf_header, desk_of, store_of
from firstpage.web.store import projects, tasks, training
from firstpage.web.store.judging import Given
from firstpage.web.store.logins import Login
from firstpage.web.store.people import Person
from firstpage.web.store.state import Conflict, NotThere, State

router = APIRouter(tags=["judging"], route_class=AdmissionRoute)
Changing = Annotated[Login, Depends(csrf_header)]


@router.get("/projects/{slug}/work")
def work(request: Request, member: Anyone) -> dict[str, Any]:
    """One's own tasks in the order of work, the next one, and whether training comes first."""
    desk = desk_of(request)
    with store_of(request).read() as tx:
        mine = tasks.of_person(tx, member.project, member.person.id)
        now = training.standing(tx, member.project, member.person.id)
        ready = member.project.state == "open" and now.passed
        chosen = following(tx, member.project, mine) if ready else Choice(None)
    rows = [
        {
            "id": t.id, "query": t.query_text, "tool": t.tool, "state": t.state,
            "asked": t.asked, "left": desk.left(t),
        }
        for t in mine
    ]  # fmt: skip
    return {
        "tasks": rows,
        "next": chosen.task,
        "training": {"needed": now.needed, "passed": now.passed},
    }


@router.get("/projects/{slug}/next")
def next_choice(request: Request, member: Anyone) -> dict[str, Any]:
    """One's own task to do next, and how it was chosen; to leads also why not as they wished."""
    with store_of(request).read() as tx:
        mine = tasks.of_person(tx, member.project, member.person.id)
        passed = training.standing(tx, member.project, member.person.id).passed
        ready = member.project.state == "open" and passed
        chosen = following(tx, member.project, mine) if ready else Choice(None)
    found: dict[str, Any] = {"task": chosen.task, "by": chosen.by}
    return {**found, "why": chosen.why} if member.leads else found


@router.get("/tasks/{task}")
def state(request: Request, task: bodies.Id, person: CurrentPerson) -> State:
    """Where a task of one's own stands."""
    return desk_of(request).state(task, person)


@router.post("/tasks/{task}/answers", responses={409: {"description": "too late, or closed"}})
def answer(request: Request, task: bodies.Id, body: bodies.AnswerBody, login: Changing) -> State:
    """Answer the open question; the reply comes when the answer is durable."""
    return desk_of(request).answer(task, login.person, given(body, store_of(request).clock()))


@router.post("/tasks/{task}/undo", responses={409: {"description": "nothing to undo"}})
def undo(request: Request, task: bodies.Id, body: bodies.StepBody, login: Changing) -> State:
    """Take back the last judgment that stands."""
    return desk_of(request).undo(task, login.person, body.seq, body.key)


@router.post("/tasks/{task}/revise", responses={409: {"description": "too late"}})
def revise(request: Request, task: bodies.Id, body: bodies.ReviseBody, login: Changing) -> State:
    """Give a judgment that stands another answer."""
    return desk_of(request).revise(
        task, login.person, body.seq, body.key, body.at, body.outcome, tuple(body.bad)
    )


@router.post("/tasks/{task}/spans", status_code=204)
def spans(request: Request, task: bodies.Id, body: bodies.SpansBody, login: Changing) -> None:
    """Time that ended without an answer."""
    timing = span_timing(body.spans, store_of(request).clock())
    desk_of(request).spend(task, login.person, body.key, timing)


@router.post("/tasks/{task}/skip")
def skip(request: Request, task: bodies.Id, body: bodies.ReasonBody, login: Changing) -> State:
    """Hand the whole query back."""
    return desk_of(request).skip(task, login.person, body.reason)


@router.post("/tasks/{task}/switch")
def switch(request: Request, task: bodies.Id, body: bodies.SwitchBody, login: Changing) -> State:
    """Another strategy or k from here on; by a lead of the task's project."""
    _led_task(request, task, login.person)
    changes = body.model_dump(include={"strategy", "k"}, exclude_none=True)
    return desk_of(request).switch(task, login.person, body.key or uuid4().hex, changes)


@router.get("/tasks/{task}/ahead")
def ahead(request: Request, task: bodies.Id, person: CurrentPerson) -> dict[str, list[str]]:
    """Documents that may be shown next, for fetching early."""
    return {"documents": desk_of(request).ahead(task, person)}


@router.get("/tasks/{task}/judgments")
def judgments(request: Request, task: bodies.Id, person: CurrentPerson) -> dict[str, Any]:
    """One's own standing judgments, to look at again."""
    found = desk_of(request).judgments(task, person)
    return {
        "judgments": [
            {
                "at": at, "left": asdict(left), "right": None if right is None else asdict(right),
                "outcome": judged.outcome, "bad": list(judged.bad), "skipped": judged.skipped,
            }
            for at, (judged, left, right) in enumerate(found)
        ]
    }  # fmt: skip


@router.get("/projects/{slug}/training")
def training_state(request: Request, member: Anyone) -> State:
    """The open training question."""
    with store_of(request).read() as tx:
        return training.state(tx, member.project, member.person.id)


@router.post("/projects/{slug}/training", responses={409: {"description": "too late"}})
def training_answer(
    request: Request, member: Anyone, body: bodies.AnswerBody, login: Changing
) -> dict[str, Any]:
    """Answer it; the reply says whether that was right, and why."""
    person = login.person.id
    with store_of(request).write() as tx:
        done = training.kept(tx, member.project, person, body.key)
        before = training.state(tx, member.project, person)
        if done is None:
            asked = before.question
            keys = asked and (asked.left.key, asked.right.key if asked.right else None)
            if body.seq != before.seq or keys != (body.left, body.right):
                raise Conflict("This question is not open; here is where you are.", before)
            done = training.answer(tx, member.project, person, body.key, body.outcome)
        after = training.state(tx, member.project, person)
    return {**asdict(after), "right": done[0], "explanation": done[1]}


def given(body: bodies.AnswerBody, now: datetime) -> Given:
    """An answer as the desk takes it; a reason for skipping is a comment like any other."""
    comment = "\n".join(text for text in (body.reason, body.comment) if text) or None
    timing = answer_timing(body, comment, now)
    return Given(
        body.seq, body.key, body.left, body.right, body.outcome, tuple(body.bad), body.skipped,
        timing,
    )  # fmt: skip


def _led_task(request: Request, task: int, person: Person) -> None:
    """Only a lead of the task's project goes on; to its own assessor the task is known, so 403."""
    with store_of(request).read() as tx:
        row = tasks.get(tx, task)
        member = None if row is None else projects.member(tx, row.slug, person)
    if row is None or member is None or not (member.leads or row.person == person.id):
        raise NotThere("there is no such task.")
    if not member.leads:
        raise HTTPException(403, "Only a lead of this project may do this.")
