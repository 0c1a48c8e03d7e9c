"""Judging: a person's work, the state of a task, answers.

Times are as a browser reports them: repaired where they cannot be true, never a reason to refuse.
Whatever is changed is recorded beside the answer, as `adjusted_times` of its event in the log.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Depends, HTTPException, Request

from firstpage.web.admission import AdmissionRoute
from firstpage.web.analysis.choosing import Choice, following
from firstpage.web.api import bodies
from firstpage.web.api.bodies import AnswerBody, Span
from firstpage.web.security import Anyone, CurrentPerson, csrf_header, desk_of, store_of
from firstpage.web.store import projects, tasks, training
from firstpage.web.store.connect import iso
from firstpage.web.store.judging import Given
from firstpage.web.store.log import SPAN_KINDS, Timing
from firstpage.web.store.logins import Login
from firstpage.web.store.people import Person
from firstpage.web.store.sessions import Conflict, NotThere, State

MAX_SPAN_MS = 24 * 60 * 60 * 1000
MAX_SPANS = 500
FIRST_YEAR = 2000
MAX_AHEAD = timedelta(days=1)  # of the server's clock; an answer from the past may just be late


def answer_timing(body: AnswerBody, comment: str | None, now: datetime) -> Timing:
    """Return the times of an answer; a device's wrong clock is set right by the server's `now`."""
    repair = _Repair(now)
    answered = _parsed(body.answered_at)
    if answered is not None and not repair.plausible(answered):
        repair.set_clock(answered)
    shown_at = repair.moment("shown_at", body.shown_at)
    answered_at = repair.moment("answered_at", body.answered_at)
    spans = repair.spans(body.spans)
    return Timing(shown_at, answered_at, spans, comment, adjusted=repair.adjusted)


def span_timing(spans: Sequence[Span], now: datetime) -> Timing:
    """Return time that ended without an answer."""
    return Timing(spans=_Repair(now).spans(spans))


@dataclass
class _Repair:
    """Makes reported times plausible and keeps account of what it changed."""

    now: datetime
    offset: timedelta = timedelta(0)
    adjusted: dict[str, Any] = field(default_factory=dict)

    def plausible(self, moment: datetime) -> bool:
        return moment.year >= FIRST_YEAR and moment <= self.now + MAX_AHEAD

    def set_clock(self, answered: datetime) -> None:
        """The device's clock is wrong: take the answer to be given now, and shift all else."""
        self.offset = self.now - answered
        self.adjusted["clock_offset_ms"] = round(self.offset / timedelta(milliseconds=1))

    def moment(self, name: str, text: str | None) -> str | None:
        """Return a time by the server's clock; None where it is unreadable or impossible."""
        parsed = _parsed(text)
        try:
            shifted = None if parsed is None else parsed + self.offset
        except OverflowError:
            shifted = None
        if shifted is not None and self.plausible(shifted):
            return iso(shifted)
        if text is not None:
            dropped = self.adjusted.setdefault("dropped", [])
            if name not in dropped:
                dropped.append(name)
        return None

    def spans(self, reported: Sequence[Span]) -> tuple[dict[str, Any], ...]:
        """Return spans of at most a day each, and at most `MAX_SPANS` of them."""
        kept = [self._span(span) for span in reported]
        clipped = sum("reported_ms" in span for span in kept)
        if clipped:
            self.adjusted["clipped_spans"] = clipped
        if len(kept) <= MAX_SPANS:
            return tuple(kept)
        self.adjusted["merged_spans"] = len(kept)
        return tuple(_total(kept, kind) for kind in SPAN_KINDS)

    def _span(self, span: Span) -> dict[str, Any]:
        reported = math.nan if span.ms is None else span.ms
        ms = 0 if math.isnan(reported) else round(min(max(reported, 0.0), MAX_SPAN_MS))
        kept: dict[str, Any] = {"kind": span.kind, "ms": ms}
        start = self.moment("start", span.start)
        if start is not None:
            kept["start"] = start
        if not abs(reported - ms) < 1:
            kept["reported_ms"] = span.ms if math.isfinite(reported) else str(span.ms)
        return kept


def _total(spans: Sequence[Mapping[str, Any]], kind: str) -> dict[str, Any]:
    same = [span["ms"] for span in spans if span["kind"] == kind]
    return {"kind": kind, "ms": sum(same), "merged": len(same)}


def _parsed(text: str | None) -> datetime | None:
    """Return a time in ISO form, in UTC where it names no zone; None where it is unreadable."""
    try:
        parsed = datetime.fromisoformat(text or "")
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


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
            "asked": t.asked, "remaining": desk.questions_remaining(t),
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
    """Answer it; the reply says whether that was correct, and why."""
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
    return {**asdict(after), "correct": done[0], "explanation": done[1]}


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
