"""Programs as assessors of a project: they use the judging service and write the same log.

Several threads judge several queries at a time.  Within a query the questions follow one another,
since the next one depends on the answers so far.
"""

from __future__ import annotations

import statistics
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from sqlalchemy import RowMapping, select

from firstpage.core import DataError, Progress
from firstpage.core.http import RateLimiter, Stopped
from firstpage.labeling.app.analysis.choosing import choose_next_task, choose_pair
from firstpage.labeling.app.sanitize import plain_text
from firstpage.labeling.app.store import audit, projects, tasks, texts, training
from firstpage.labeling.app.store.connect import Store, Tx, iso
from firstpage.labeling.app.store.judging import JudgingService, SubmittedAnswer
from firstpage.labeling.app.store.log import Timing
from firstpage.labeling.app.store.machine_replies import StoredReplies, spent
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.sessions import TaskState
from firstpage.labeling.app.store.tables import audit as audit_table
from firstpage.labeling.app.store.tasks import TaskRow
from firstpage.labeling.app.store.texts import without_grade
from firstpage.labeling.assessors import (
    Assessor,
    AssessorAnswer,
    DocumentText,
    InvalidReplyError,
    QueryText,
)
from firstpage.labeling.machines.chat import ReplyJournal
from firstpage.labeling.machines.limits import Budget

CLOSED = {"draft": "not open yet", "closed": "closed"}
NO_BAD = "a bad document, which this project does not allow"
NO_TIES = "a tie, which this project does not allow"
MAX_UNREADABLE = 3  # consecutive answers that cannot be parsed before judging is aborted
MACHINE_SETTINGS = "machine settings"  # the action in the audit log


@runtime_checkable
class RecordingAssessor(Protocol):
    """An assessor whose questions take several requests, each of which is stored."""

    limiter: RateLimiter

    def judge_recorded(
        self, query: str, left: DocumentText, right: DocumentText | None, journal: ReplyJournal
    ) -> AssessorAnswer:
        """Answer a question; replies in the journal are not asked for again."""

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the answers."""


@dataclass
class JudgingReport:
    """Finished queries, answers, and the total cost of all questions.

    `skipped` counts questions without an answer, by reason; `truncated` are documents of which
    the program read only the beginning, `pictures` those of which it read only the title;
    `latencies` are the seconds of each answer, `exhausted` is the budget that ended the run.
    """

    queries: int = 0
    answers: int = 0
    practice: int = 0
    seconds: float = 0.0
    tokens: int = 0
    price: float = 0.0
    attempts: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    truncated: set[str] = field(default_factory=set)
    pictures: set[str] = field(default_factory=set)
    unreadable: int = 0  # consecutive answers that could not be parsed
    latencies: list[float] = field(default_factory=list)
    exhausted: str | None = None

    @property
    def questions(self) -> int:
        """The number of questions, answered or skipped."""
        return self.answers + self.skipped.total()

    def count(self, verdict: AssessorAnswer) -> None:
        """Add the verdict of one question."""
        self.answers += verdict.skipped is None
        self.latencies.append(float(verdict.cost.get("seconds", 0.0)))
        self.add_cost(verdict)
        if verdict.skipped is not None:
            self.skipped[verdict.skipped] += 1

    def add_cost(self, verdict: AssessorAnswer) -> None:
        """Add what a question cost, of practice too."""
        cost = verdict.cost
        self.seconds += float(cost.get("seconds", 0.0))
        self.tokens += int(cost.get("input_tokens", 0)) + int(cost.get("output_tokens", 0))
        self.price += float(cost.get("price", 0.0))
        self.attempts += int(cost.get("attempts", 0))
        self.truncated.update(cost.get("truncated", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON, with cost and latency per question."""
        latencies = sorted(self.latencies)
        asked = max(1, len(latencies))
        return {
            "queries": self.queries,
            "answers": self.answers,
            "practice": self.practice,
            "skipped": dict(self.skipped),
            "seconds": self.seconds,
            "tokens": self.tokens,
            "price": self.price,
            "requests": self.attempts,
            "price_per_question": self.price / asked,
            "tokens_per_question": self.tokens / asked,
            "latency": {
                "median": statistics.median(latencies) if latencies else None,
                "p95": latencies[int(0.95 * (len(latencies) - 1))] if latencies else None,
                "max": latencies[-1] if latencies else None,
            },
            "budget_exhausted": self.exhausted,
        }


def judge(
    store: Store,
    project: Project,
    person: Person,
    assessor: Assessor,
    progress: Progress | None = None,
    *,
    concurrency: int = 1,
    budget: Budget | None = None,
) -> JudgingReport:
    """Let a program answer all open questions of a person; return the report.

    Each answer is durable before the next question of its query, and so is each reply of a
    `RecordingAssessor`: a run that was killed continues where it ended.  Practice questions come
    first, as for people; failing them is an error.  `concurrency` is the number of queries that are
    judged at a time.  `progress` is called with the number of questions so far and the expected
    total.
    """
    report = JudgingReport()
    _check_open(store, project, person)
    budget = budget or Budget()
    with store.read() as tx:
        budget.answers, budget.price = spent(tx, project.id, person.id)
    if isinstance(assessor, RecordingAssessor):
        _note_settings(store, project, person, assessor)
    _practice(store, project, person, assessor, report)
    budget.price += report.price
    service = JudgingService(store, choose_pair)
    expected = _expected(store, service, project, person) if progress else 0
    work = _Work(store, service, project, person, assessor, report, budget, progress, expected)
    work.run(concurrency)
    report.exhausted = budget.exhausted
    return report


def _note_settings(
    store: Store, project: Project, person: Person, assessor: RecordingAssessor
) -> None:
    """Write model, prompts and rubric to the audit log, unless they are those of the last run."""
    settings = assessor.settings()
    row = (
        select(audit_table.c.details)
        .where(audit_table.c.project == project.id, audit_table.c.person == person.id)
        .where(audit_table.c.action == MACHINE_SETTINGS)
        .order_by(audit_table.c.id.desc())
    )
    with store.write() as tx:
        last = tx.first(row)
        if last is None or last["details"] != settings:
            audit.note(tx, MACHINE_SETTINGS, person, project, **settings)


@dataclass
class _Work:
    """The judging of one run, shared by its threads."""

    store: Store
    service: JudgingService
    project: Project
    person: Person
    assessor: Assessor
    report: JudgingReport
    budget: Budget
    progress: Progress | None
    expected: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)
    seen: set[int] = field(default_factory=set)
    error: BaseException | None = None

    def run(self, concurrency: int) -> None:
        """Judge until nothing is open, the budget is spent, or a thread fails."""
        if concurrency == 1:
            self._judge_tasks()
            return
        threads = [
            threading.Thread(target=self._guarded, args=(self._judge_tasks,), daemon=True)
            for _ in range(concurrency)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:  # Ctrl-C: questions under way are finished and recorded
            self._stop()
            for thread in threads:
                thread.join()
            raise
        if self.error is not None:
            raise self.error

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Stopped:
            pass
        except BaseException as error:  # raised again by `run`
            with self.lock:
                self.error = self.error or error
            self._stop()

    def _stop(self) -> None:
        self.stopped.set()
        if isinstance(self.assessor, RecordingAssessor):
            self.assessor.limiter.stop()

    def _judge_tasks(self) -> None:
        while (task := self._next_task()) is not None:
            if not self._judge_task(task):
                return
            with self.lock:
                self.report.queries += 1

    def _next_task(self) -> TaskRow | None:
        """Return the next open task that no thread has taken; chosen when one before is done."""
        with self.lock, self.store.read() as tx:
            if self.stopped.is_set() or self.budget.exhausted:
                return None
            rows = tasks.of_person(tx, self.project, self.person.id)
            remaining = [t for t in rows if t.state in tasks.TO_DO and t.id not in self.seen]
            chosen = choose_next_task(tx, self.project, remaining).task
            if chosen is None:
                return None
            self.seen.add(chosen)
            return next(task for task in remaining if task.id == chosen)

    def _judge_task(self, task: TaskRow) -> bool:
        """Judge one task to its end; return False if the run was stopped before."""
        with self.store.read() as tx:
            query, documents = query_texts(tx, task.query)
        with self.lock:
            self.report.pictures |= {k for k, text in documents.items() if text.kind == "image"}
        state = self.service.state(task.id, self.person)
        while state.question is not None:
            if self.stopped.is_set() or not self.budget.start_question():
                return False
            state = self._answer(task, state, query, documents)
        if not state.done:
            raise DataError(f"query {task.query_key}: {state.message}")
        return True

    def _answer(
        self, task: TaskRow, state: TaskState, query: QueryText, documents: dict[str, DocumentText]
    ) -> TaskState:
        """Ask the open question, record the answer and return the next state."""
        assert state.question is not None
        left, right = state.question.left, state.question.right
        shown_at = iso(self.store.clock())
        journal = StoredReplies(self.store, task.id, state.seq)
        other = documents[right.key] if right else None
        try:
            verdict = self._ask(query, documents[left.key], other, journal)
            verdict = _allowed(task, state, verdict)
            with self.lock:
                self.report.unreadable = 0
        except InvalidReplyError as error:
            with self.lock:
                self.report.unreadable += 1
                if self.report.unreadable == MAX_UNREADABLE:
                    raise
            verdict = AssessorAnswer(0, cost=error.cost, skipped=error.reason)
        price = float(verdict.cost.get("price", 0.0))
        submitted = _submitted(state, verdict, shown_at, iso(self.store.clock()))
        next_state = self.service.answer(task.id, self.person, submitted)
        if isinstance(self.assessor, RecordingAssessor):
            with self.store.write() as tx:
                journal.clear(tx)
        self.budget.finish_question(price)
        with self.lock:
            self.report.count(verdict)
            if self.progress is not None:
                questions = self.report.questions
                self.progress(questions, max(self.expected, questions))
        if verdict.cost.get("uncounted") and self.budget.max_price is not None:
            raise DataError(
                "the endpoint does not report its tokens, so the price is not known and cannot be "
                "limited; limit the answers or the time instead."
            )
        return next_state

    def _ask(
        self,
        query: QueryText,
        left: DocumentText,
        right: DocumentText | None,
        journal: StoredReplies,
    ) -> AssessorAnswer:
        if isinstance(self.assessor, RecordingAssessor):
            return self.assessor.judge_recorded(query, left, right, journal)
        return self.assessor.judge(query, left, right)


def _expected(store: Store, service: JudgingService, project: Project, person: Person) -> int:
    """Return the estimated maximum number of questions of the open tasks."""
    with store.read() as tx:
        rows = tasks.of_person(tx, project, person.id)
    return sum(service.questions_remaining(task)[1] for task in rows)


def _check_open(store: Store, project: Project, person: Person) -> None:
    """Raise if the person is not an assessor, or the project is not open."""
    with store.read() as tx:
        if not projects.is_assessor(tx, project.id, person.id):
            raise DataError(
                f"{person.login!r} is not an assessor of the project {project.slug!r}; "
                "add them first."
            )
    if project.state != "open":
        raise DataError(
            f"the project {project.slug!r} is {CLOSED[project.state]}; open it on its page "
            "'Assign and open'."
        )


def _practice(
    store: Store, project: Project, person: Person, assessor: Assessor, report: JudgingReport
) -> None:
    """Answer one round of the practice questions, unless they are passed; raise if it fails."""
    with store.read() as tx:
        practice = training.progress(tx, project, person.id)
        started = any(t.state == "started" for t in tasks.of_person(tx, project, person.id))
    if practice.passed or started:
        return
    correct = practice.correct if practice.answered else 0
    total = practice.answered + len(practice.unanswered)
    for gold in practice.unanswered:
        with store.read() as tx:
            query, documents = query_texts(tx, gold["query"])
        right = documents[gold["right"]] if gold["right"] else None
        verdict = assessor.judge(query, documents[gold["left"]], right)
        report.practice += 1
        report.add_cost(verdict)
        with store.write() as tx:
            is_correct, _ = training.answer(
                tx, project, person.id, uuid4().hex, verdict.outcome, verdict.skipped is not None
            )
        correct += is_correct
    with store.read() as tx:
        passed = training.progress(tx, project, person.id).passed
    if not passed:
        raise DataError(
            f"{person.login!r} answered {correct} of {total} practice questions correctly; this "
            f"project requires {project.options.training_pass:.0%}, so nothing was judged. Run "
            "it again for another round, or change the practice questions."
        )


def query_texts(tx: Tx, query: int) -> tuple[QueryText, dict[str, DocumentText]]:
    """Return a query and its documents by key, as a program reads them."""
    row = texts.query(tx, query)
    documents = {row["key"]: text_of(row) for row in texts.full_documents_of(tx, query)}
    return QueryText(row["key"], row["text"], row["description"]), documents


def _allowed(task: TaskRow, state: TaskState, verdict: AssessorAnswer) -> AssessorAnswer:
    """Return the verdict, as a skipped question if the project has no such answer."""
    if task.tool != "pairs" or verdict.skipped is not None:
        return verdict
    if verdict.bad and not state.options["bad"]:
        return replace(verdict, outcome=0, bad=(), skipped=NO_BAD)
    if verdict.outcome == 0 and not verdict.bad and not state.options["ties"]:
        return replace(verdict, skipped=NO_TIES)
    return verdict


def _submitted(
    state: TaskState, verdict: AssessorAnswer, shown_at: str, answered_at: str
) -> SubmittedAnswer:
    assert state.question is not None
    left, right = state.question.left, state.question.right
    span = {"kind": "active", "ms": round(1000 * float(verdict.cost.get("seconds", 0.0)))}
    question = state.seq, uuid4().hex, left.key, None if right is None else right.key
    timing = Timing(shown_at, answered_at, (span,), verdict.skipped, dict(verdict.cost))
    skipped = verdict.skipped is not None
    return SubmittedAnswer(*question, verdict.outcome, verdict.bad, skipped, timing)


def text_of(row: RowMapping) -> DocumentText:
    """Return a document as a program reads it.

    The text is that of the page without tags, and the fields of a card or the items of a list, one
    per line.
    """
    lines = [plain_text(row["body"]) if row["kind"] == "html" else row["body"]]
    fields = dict(row["fields"] or {})
    items = [without_grade(item) for item in fields.pop("items", ())]
    for number, item in enumerate(items, 1):
        words = [str(value) for value in item.values() if value not in (None, "")]
        lines.append(f"{number}. {' - '.join(words)}")
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return DocumentText(
        row["key"],
        "\n".join(line for line in lines if line),
        row["title"],
        kind=row["kind"],
        fields=fields,
        items=items,
        url=row.get("url"),
    )
