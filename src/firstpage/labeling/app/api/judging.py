"""Judging: a person's tasks, the state of a task, and answers.

Times are reported by the browser.  Implausible ones are corrected, never refused; corrections are
recorded with the answer, as `adjusted_times` of its event in the log.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from starlette.exceptions import HTTPException
from starlette.requests import Request

from firstpage.labeling.app import tour
from firstpage.labeling.app.admission import JUDGE, JUDGING_MEMBER, LOGIN, MEMBER, api_routes
from firstpage.labeling.app.analysis.choosing import Choice, choose_next_task
from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.api.bodies import AnswerBody, Span
from firstpage.labeling.app.security import service_of, store_of
from firstpage.labeling.app.store import projects, tasks, tours, training
from firstpage.labeling.app.store.connect import iso
from firstpage.labeling.app.store.judging import SubmittedAnswer
from firstpage.labeling.app.store.log import ANNOTATIONS, SPAN_KINDS, Timing
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Member
from firstpage.labeling.app.store.scales import shown_scale
from firstpage.labeling.app.store.sessions import (
    Conflict,
    NotFound,
    TaskState,
    on_one_page,
    with_contents,
)
from firstpage.labeling.app.store.tasks import TaskRow

MAX_SPAN_MS = 24 * 60 * 60 * 1000
MAX_SPANS = 500
MIN_YEAR = 2000
MAX_AHEAD = timedelta(
    days=1
)  # of the server's clock; an answer from the past may have been sent late


def answer_timing(body: AnswerBody, comment: str | None, now: datetime) -> Timing:
    """Return the times of an answer; a wrong device clock is corrected by the server's `now`."""
    correction = _TimeCorrection(now)
    answered = _parsed(body.answered_at)
    if answered is not None and not correction.plausible(answered):
        correction.set_clock(answered)
    shown_at = correction.moment("shown_at", body.shown_at)
    answered_at = correction.moment("answered_at", body.answered_at)
    spans = correction.spans(body.spans)
    return Timing(shown_at, answered_at, spans, comment, adjusted=correction.adjusted)


def span_timing(spans: Sequence[Span], now: datetime) -> Timing:
    """Return the timing of a span that ended without an answer."""
    return Timing(spans=_TimeCorrection(now).spans(spans))


@dataclass
class _TimeCorrection:
    """Corrects implausible times; `adjusted` records the corrections."""

    now: datetime
    offset: timedelta = timedelta(0)
    adjusted: dict[str, Any] = field(default_factory=dict)

    def plausible(self, moment: datetime) -> bool:
        return moment.year >= MIN_YEAR and moment <= self.now + MAX_AHEAD

    def set_clock(self, answered: datetime) -> None:
        """Shift all times so that the answer was given now: the device's clock is wrong."""
        self.offset = self.now - answered
        self.adjusted["clock_offset_ms"] = round(self.offset / timedelta(milliseconds=1))

    def moment(self, name: str, text: str | None) -> str | None:
        """Return a time by the server's clock; None if it cannot be parsed or is implausible."""
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
        spans = [self._span(span) for span in reported]
        clipped = sum("reported_ms" in span for span in spans)
        if clipped:
            self.adjusted["clipped_spans"] = clipped
        if len(spans) <= MAX_SPANS:
            return tuple(spans)
        self.adjusted["merged_spans"] = len(spans)
        return tuple(_total(spans, kind) for kind in SPAN_KINDS)

    def _span(self, span: Span) -> dict[str, Any]:
        reported = math.nan if span.ms is None else span.ms
        ms = 0 if math.isnan(reported) else round(min(max(reported, 0.0), MAX_SPAN_MS))
        record: dict[str, Any] = {"kind": span.kind, "ms": ms}
        start = self.moment("start", span.start)
        if start is not None:
            record["start"] = start
        if not abs(reported - ms) < 1:
            record["reported_ms"] = span.ms if math.isfinite(reported) else str(span.ms)
        return record


def _total(spans: Sequence[Mapping[str, Any]], kind: str) -> dict[str, Any]:
    durations = [span["ms"] for span in spans if span["kind"] == kind]
    return {"kind": kind, "ms": sum(durations), "merged": len(durations)}


def _parsed(text: str | None) -> datetime | None:
    """Return an ISO 8601 time, by default in UTC; None if it cannot be parsed."""
    try:
        parsed = datetime.fromisoformat(text or "")
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _connection(request: Request) -> AbstractContextManager[None]:
    """Return the context in which all transactions of a request use one connection."""
    return store_of(request).holding_connection()


# Few threads answer, and further requests wait for one of them: more threads would only compete for
# the interpreter, which costs time and lets an early request finish after a late one.
ANSWERING = ThreadPoolExecutor(4, thread_name_prefix="answers")
task_routes = api_routes("judging", admit=JUDGE, within=_connection, threads=ANSWERING)
routes = api_routes("judging", admit=LOGIN)


@routes.get("/projects/{slug}/work", admit=MEMBER)
def work(request: Request, member: Member) -> dict[str, Any]:
    """Return one's own tasks in working order, the next one, and whether practice comes first."""
    service = service_of(request)
    rows, practice, chosen = _next_task(request, member)
    own_tasks = [
        {
            "id": t.id,
            "query": t.query_text,
            "tool": t.tool,
            "state": t.state,
            "judgments": t.judgments,
            "remaining": service.questions_remaining(t),
            "on_one_page": on_one_page(t),
        }
        for t in rows
    ]
    return {
        "tasks": own_tasks,
        "next": chosen.task,
        "training": {"needed": practice.needed, "passed": practice.passed},
    }


@routes.get("/projects/{slug}/next", admit=MEMBER)
def next_choice(request: Request, member: Member) -> dict[str, Any]:
    """Return one's next task and how it was chosen; leads also get the reason for a fallback."""
    _, _, chosen = _next_task(request, member)
    record: dict[str, Any] = {"task": chosen.task, "method": chosen.method}
    return {**record, "fallback_reason": chosen.fallback_reason} if member.is_lead else record


def _next_task(
    request: Request, member: Member
) -> tuple[list[TaskRow], training.TrainingProgress, Choice]:
    """Return a member's tasks, their progress with the practice, and the next task."""
    with store_of(request).read() as tx:
        rows = tasks.of_person(tx, member.project, member.person.id)
        practice = training.progress(tx, member.project, member.person.id)
        ready = member.project.state == "open" and practice.passed
        return rows, practice, choose_next_task(tx, member.project, rows) if ready else Choice(None)


@routes.get("/tasks/{task}", within=_connection)
def state(request: Request, login: Login, task: bodies.Id, contents: bool = False) -> TaskState:
    """Return the state of one's own task, with the contents of its documents if asked for."""
    current = service_of(request).state(task, login.person)
    return _with_contents(request, current, () if contents else None)


@task_routes.post("/tasks/{task}/answers", statuses={409: "too late, or closed"})
def answer(request: Request, login: Login, task: bodies.Id, body: bodies.AnswerBody) -> TaskState:
    """Answer the open question; the response follows once the answer is durable."""
    following = service_of(request).answer(
        task, login.person, submitted_answer(body, store_of(request).clock())
    )
    return _with_contents(request, following, body.known)


@task_routes.post("/tasks/{task}/undo", statuses={409: "nothing to undo"})
def undo(request: Request, login: Login, task: bodies.Id, body: bodies.StepBody) -> TaskState:
    """Undo the last judgment."""
    return service_of(request).undo(task, login.person, body.seq, body.key)


@task_routes.post("/tasks/{task}/revise", statuses={409: "too late"})
def revise(request: Request, login: Login, task: bodies.Id, body: bodies.ReviseBody) -> TaskState:
    """Replace the answer of a judgment."""
    annotations = _present(body, *ANNOTATIONS)
    if "reasons" in annotations:
        annotations["reasons"] = list(dict.fromkeys(annotations["reasons"]))
    what = body.seq, body.key, body.index, body.outcome, tuple(body.bad), annotations
    return service_of(request).revise(task, login.person, *what)


@routes.post("/tasks/{task}/spans", status=204, admit=JUDGE)
def spans(request: Request, login: Login, task: bodies.Id, body: bodies.SpansBody) -> None:
    """Record time that ended without an answer."""
    timing = span_timing(body.spans, store_of(request).clock())
    service_of(request).spend(task, login.person, body.key, timing)


@routes.post("/tasks/{task}/skip", admit=JUDGE)
def skip(request: Request, login: Login, task: bodies.Id, body: bodies.ReasonBody) -> TaskState:
    """Skip the whole query; it is assigned to another assessor."""
    return service_of(request).skip(task, login.person, body.reason)


@routes.post("/tasks/{task}/switch")
def switch(request: Request, login: Login, task: bodies.Id, body: bodies.SwitchBody) -> TaskState:
    """Change the strategy or k for the remaining questions; for leads of the project."""
    _led_task(request, task, login.person)
    changes = _present(body, "strategy", "k")
    return service_of(request).switch(task, login.person, body.key or uuid4().hex, changes)


@routes.get("/tasks/{task}/prefetch")
def prefetch(request: Request, login: Login, task: bodies.Id) -> dict[str, list[str]]:
    """Return the documents that may be shown next, to load them early."""
    return {"documents": service_of(request).documents_to_prefetch(task, login.person)}


@routes.get("/tasks/{task}/judgments")
def judgments(request: Request, login: Login, task: bodies.Id) -> dict[str, Any]:
    """Return one's own current judgments."""
    rows = service_of(request).judgments(task, login.person)
    return {
        "judgments": [
            {
                "index": index,
                "left": asdict(row.left),
                "right": None if row.right is None else asdict(row.right),
                "outcome": row.judgment.outcome,
                "bad": list(row.judgment.bad),
                "skipped": row.judgment.skipped,
                "reasons": list(row.reasons),
                "aspects": dict(row.aspects),
            }
            for index, row in enumerate(rows)
        ]
    }


@routes.get("/projects/{slug}/training", admit=MEMBER)
def training_state(request: Request, member: Member) -> TaskState:
    """Return the open practice question."""
    with store_of(request).read() as tx:
        return training.state(tx, member.project, member.person.id)


@routes.post("/projects/{slug}/training", statuses={409: "too late"}, admit=JUDGING_MEMBER)
def training_answer(request: Request, member: Member, body: bodies.AnswerBody) -> dict[str, Any]:
    """Answer the practice question; the response says whether it is `correct`, and why."""
    person = member.person.id
    with store_of(request).write() as tx:
        reply = training.recorded(tx, member.project, person, body.key)
        before = training.state(tx, member.project, person)
        if reply is None:
            question = before.question
            keys = question and (question.left.key, question.right and question.right.key)
            if body.seq != before.seq or keys != (body.left, body.right):
                raise Conflict("This question is no longer open; this is the current one.", before)
            reply = training.answer(
                tx, member.project, person, body.key, body.outcome, body.skipped
            )
        after = training.state(tx, member.project, person)
    return {**asdict(after), "correct": reply[0], "explanation": reply[1]}


@routes.get("/projects/{slug}/tour", admit=MEMBER)
def tour_state(request: Request, member: Member) -> TaskState:
    """Return the first question of the guided first task, with sample texts."""
    return tour.state(member.project.slug, _tour_tool(request, member), member.project.options)


@routes.post("/projects/{slug}/tour", statuses={409: "no such step"}, admit=JUDGING_MEMBER)
def tour_answer(request: Request, member: Member, body: bodies.AnswerBody) -> dict[str, Any]:
    """Answer a question of the guided first task; nothing of the answer is stored."""
    project, tool = member.project, _tour_tool(request, member)
    if body.seq >= len(tour.STEPS[tool]):
        raise Conflict("The tour has ended.", tour.state(project.slug, tool, project.options))
    grades = len(shown_scale(project.options.grades))
    correct, explanation = tour.check(tool, body.seq, body.outcome, grades)
    following = tour.state(project.slug, tool, project.options, body.seq + 1)
    if following.done:
        with store_of(request).write() as tx:
            tours.finish(tx, member.person.id)
    return {**asdict(following), "correct": correct, "explanation": explanation}


def _tour_tool(request: Request, member: Member) -> str:
    """Return the tool of a person's next task, or the project's."""
    with store_of(request).read() as tx:
        rows = tasks.of_person(tx, member.project, member.person.id)
    return rows[0].tool if rows else member.project.tool


def submitted_answer(body: bodies.AnswerBody, now: datetime) -> SubmittedAnswer:
    """Return the answer of a request; the reason for skipping becomes a comment."""
    comment = "\n".join(text for text in (body.reason, body.comment) if text) or None
    timing = replace(
        answer_timing(body, comment, now),
        reasons=tuple(dict.fromkeys(body.reasons)),
        aspects=body.aspects,
    )
    question = body.seq, body.key, body.left, body.right
    return SubmittedAnswer(*question, body.outcome, tuple(body.bad), body.skipped, timing)


def _present(body: bodies.Body, *names: str) -> dict[str, Any]:
    """Return those of these fields of a body that are not null."""
    return {name: value for name in names if (value := getattr(body, name)) is not None}


def _with_contents(request: Request, state: TaskState, known: Collection[int] | None) -> TaskState:
    """Return the state with the contents of documents that the page does not know."""
    if known is None or all(document.id in known for document in state.shown()):
        return state
    with store_of(request).read() as tx:
        return with_contents(tx, state, set(known))


def _led_task(request: Request, task: int, person: Person) -> None:
    """Raise unless the person leads the task's project: 403 for its own assessor, else 404."""
    with store_of(request).read() as tx:
        row = tasks.get(tx, task)
        member = None if row is None else projects.member(tx, row.slug, person)
    if row is None or member is None or not (member.is_lead or row.person == person.id):
        raise NotFound("there is no such task.")
    if not member.is_lead:
        raise HTTPException(403, "Only a lead of this project can do this.")
