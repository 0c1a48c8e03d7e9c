"""The judging service: sessions in memory, and answers stored before they are acknowledged.

A session is a replay of its log, so it can be dropped at any time; a cached one only saves the
replay.  The log in the database is authoritative: every write checks, inside its transaction, that
the cached session is as long as the log, so several servers can work on one database.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from firstpage.core import DataError
from firstpage.labeling.app.store import assigning, audit, log, projects, tasks, training, webhooks
from firstpage.labeling.app.store.connect import Store, Tx
from firstpage.labeling.app.store.log import AlreadyRecorded, Timing
from firstpage.labeling.app.store.options import check_bad
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.scales import check_annotations, shown_scale
from firstpage.labeling.app.store.sessions import (
    Conflict,
    NotFound,
    OpenTask,
    ShownDocument,
    TaskState,
    closed_reason,
    on_one_page,
    result_of,
    synchronized,
)
from firstpage.labeling.app.store.tasks import JudgedTask, TaskRow
from firstpage.labeling.session.estimate import SessionProgress, remaining_questions
from firstpage.labeling.session.events import (
    Event,
    InconsistentEventError,
    Judgment,
    Revision,
    Setting,
    SettingChange,
    Undo,
)
from firstpage.labeling.session.session import Session
from firstpage.labeling.strategies.registry import STRATEGY_OF, check_documents


def record(
    store: Store,
    task: TaskRow,
    seq: int,
    key: str,
    event: Event,
    person: int,
    timing: Timing,
    judgments: int,
    result: dict[str, Any] | None,
) -> None:
    """Record an event of a task, after which it has this number of judgments.

    With a result the task is done.  Raises `AlreadyRecorded` if the task takes no answers, or the
    number or the key of the event is taken.
    """
    with store.write() as tx:
        if not tx.run(tasks.PROGRESS, **tasks.progress(tx, task.id, seq, judgments, result)):
            raise AlreadyRecorded
        log.append(tx, log.event_row(tx, task.id, seq, key, event, person, timing))
        if result is not None:
            webhooks.query_finished(tx, task)


MAX_CACHED = 1000  # sessions in memory
DONE = "This query is done and its judgments are final. You can still change single answers."
LATE = "This question was already answered, perhaps in another window; this is the current one."

# Returns which of a task's open pairs is asked next; None leaves the choice to the strategy.
PairChooser = Callable[[Tx, TaskRow, list[tuple[str, str]]], tuple[str, str] | None]


@dataclass(frozen=True)
class SubmittedAnswer:
    """An answer as it is received; `seq` and `key` make a repeated request harmless."""

    seq: int
    key: str
    left: str
    right: str | None
    outcome: int
    bad: tuple[str, ...] = ()
    skipped: bool = False
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True)
class ShownJudgment:
    """A current judgment with its documents, and the reasons and aspects of its last answer."""

    judgment: Judgment
    left: ShownDocument
    right: ShownDocument | None
    reasons: Sequence[str] = ()
    aspects: Mapping[str, int] = field(default_factory=dict)


@dataclass
class TaskLock:
    """Serializes the threads that work on one task, and caches its session."""

    mutex: threading.Lock = field(default_factory=threading.Lock)
    cached: OpenTask | None = None

    @property
    def task(self) -> OpenTask:
        """The open task; only while the lock is held by `JudgingService._locked`."""
        assert self.cached is not None
        return self.cached


class JudgingService:
    """All judging of one server process.

    Parameters
    ----------
    store : Store
        The database.
    choose_pair : PairChooser, optional
        Chooses the next pair of lists where several are open.
    """

    def __init__(self, store: Store, choose_pair: PairChooser | None = None) -> None:
        self.store = store
        self._choose_pair = choose_pair
        self._locks: OrderedDict[int, TaskLock] = OrderedDict()
        self._locks_mutex = threading.Lock()

    def state(self, task: int, person: Person) -> TaskState:
        """Return the state of a person's task."""
        with self._locked(task, person) as lock:
            return lock.task.state()

    def answer(self, task: int, person: Person, answer: SubmittedAnswer) -> TaskState:
        """Record an answer; return the next state once the answer is durable."""

        def event(session: Session) -> Event:
            question = session.question
            kind = "judgment" if question is None else question.kind
            return Judgment(
                answer.left, answer.right, answer.outcome, answer.bad, kind, answer.skipped
            )

        with self._locked(task, person, answer.key) as lock:
            _check_answer(lock.task, answer)
            return self._record(lock, person, answer.seq, answer.key, event, answer.timing)

    def undo(self, task: int, person: Person, seq: int, key: str) -> TaskState:
        """Undo the last judgment."""
        with self._locked(task, person, key) as lock:
            return self._record(lock, person, seq, key, lambda _: Undo())

    def revise(
        self,
        task: int,
        person: Person,
        seq: int,
        key: str,
        index: int,
        outcome: int,
        bad: tuple[str, ...] = (),
        annotations: Mapping[str, Any] | None = None,
    ) -> TaskState:
        """Replace the answer of judgment number `index`, from 0, and its `annotations` if given."""
        with self._locked(task, person, key) as lock:
            old = lock.task.session.judgments[index : index + 1]
            graded = bool(old) and old[0].right is None
            _check_outcome(lock.task, outcome, graded)
            timing = Timing()
            if old:
                revised = SubmittedAnswer(seq, key, old[0].left, old[0].right, outcome, bad)
                _check_buttons(lock.task, revised)
                timing = self._annotated(task, index, annotations or {})
                if annotations:
                    options = lock.task.options
                    check_annotations(timing.reasons, timing.aspects, options, graded)
            return self._record(
                lock, person, seq, key, lambda _: Revision(index, outcome, bad), timing
            )

    def _annotated(self, task: int, index: int, changes: Mapping[str, Any]) -> Timing:
        """Return the annotations of a judgment after changes, as they are recorded."""
        with self.store.read() as tx:
            current = {**log.current_annotations(tx, task)[index], **changes}
        return Timing(reasons=tuple(current.get("reasons", ())), aspects=current.get("aspects", {}))

    def switch(self, task: int, by: Person, key: str, changes: Mapping[str, Any]) -> TaskState:
        """Change the strategy or k for the remaining questions; done by a lead."""
        with self.store.read() as tx:
            row = tasks.get(tx, task)
        if row is None:
            raise NotFound("there is no such task.")
        with self._locked(task, replace(by, id=row.person), key) as lock:
            session = lock.task.session
            setting = replace(session.setting, **changes)
            _check_switch(row, setting)
            if setting.strategy != session.setting.strategy:
                check_documents(row.query_key, row.n, setting.strategy, setting.refine)
            state = self._record(
                lock, by, len(session.events), key, lambda _: SettingChange(setting)
            )
        with self.store.write() as tx:
            audit.note(tx, "task switched", by, row.project, task=task, **changes)
        return state

    def spend(self, task: int, person: Person, key: str, timing: Timing) -> None:
        """Record time that ended without an answer."""
        with self.store.write() as tx:
            _judged_task(tx, task, person)
            log.add_spans(tx, task, key, timing)

    def skip(self, task: int, person: Person, reason: str) -> TaskState:
        """Skip the whole query; it is assigned to another assessor."""
        with self._locked(task, person) as lock:
            with self.store.write() as tx:
                row = _judged_task(tx, task, person).row
                reason_closed = closed_reason(row) if row.state != "skipped" else None
                if reason_closed or row.state == "done":
                    raise Conflict(reason_closed or DONE, lock.task.state())
                if row.state != "skipped":
                    tasks.skip(tx, row, reason, person.id)
                    assigning.reassign_query(tx, row)
                    webhooks.query_finished(tx, row)
            lock.cached = None
        return self.state(task, person)

    def documents_to_prefetch(self, task: int, person: Person) -> list[str]:
        """Return the URLs of the documents that may be shown after the open question."""
        with self._locked(task, person) as lock:
            opened = lock.task
            question = None if opened.blocked else opened.session.question
            if question is None:
                return []
            outcomes = (1, -1) if question.right is not None else (0,)
            peeked = [opened.session.peek(outcome) for outcome in outcomes]
            keys = {key for q in peeked if q is not None for key in (q.left, q.right) if key}
            return sorted(opened.docs[key].url for key in keys - {question.left, question.right})

    def questions_remaining(self, task: TaskRow) -> tuple[int, int]:
        """Return the estimated range of remaining questions, without replaying the task's log."""
        if task.state in ("done", "skipped") or task.n < 1:
            return 0, 0
        low, high = remaining_questions(
            task.setting.strategy, task.n, task.setting.k, SessionProgress(0, 0)
        )
        return max(1, low - task.judgments), max(1, high - task.judgments)

    def judgments(self, task: int, person: Person) -> list[ShownJudgment]:
        """Return the person's current judgments with their documents, in order."""
        with self._locked(task, person) as lock:
            docs = lock.task.docs
            with self.store.read() as tx:
                notes = log.current_annotations(tx, task)
            return [
                ShownJudgment(j, docs[j.left], None if j.right is None else docs[j.right], **note)
                for j, note in zip(lock.task.session.judgments, notes, strict=True)
            ]

    def documents(self, task: int, person: Person) -> list[ShownDocument]:
        """Return all documents of a task that may be graded on one page; none for other tasks."""
        with self._locked(task, person) as lock:
            return list(lock.task.docs.values()) if on_one_page(lock.task.task) else []

    @contextmanager
    def _locked(self, task: int, person: Person, key: str | None = None) -> Iterator[TaskLock]:
        """Yield the task's lock, held by this thread, with its session as long as the log.

        A lock may be evicted between the lookup and the acquisition.  Two threads then hold a lock
        each, and the log decides between them as it does between two servers.
        """
        with self._locks_mutex:
            lock = self._locks.setdefault(task, TaskLock())
            self._locks.move_to_end(task)
            while len(self._locks) > MAX_CACHED:
                self._locks.popitem(last=False)
        with lock.mutex:
            with self.store.read() as tx:
                judged = _judged_task(tx, task, person, key)
                row = judged.row
                lock.cached = synchronized(tx, row, lock.cached, judged.log_length)
                lock.cached.blocked = closed_reason(row) or training.blocked(tx, row)
                self._select_pair(tx, lock.cached)
            if judged.has_key:
                raise RepeatedRequest(lock.cached.state())
            yield lock

    def _record(
        self,
        lock: TaskLock,
        person: Person,
        seq: int,
        key: str,
        make_event: Callable[[Session], Event],
        timing: Timing | None = None,
    ) -> TaskState:
        """Apply an event to the cached session, then append it to the log; both or neither."""
        opened = lock.task
        if opened.blocked:
            raise Conflict(opened.blocked, opened.state())
        if seq != len(opened.session.events):
            raise Conflict(LATE, opened.state())
        try:
            opened.session.apply(make_event(opened.session))
        except InconsistentEventError as error:
            raise Conflict(f"{LATE} ({error})", opened.state()) from error
        lock.cached = None  # until the write succeeds the session is ahead of the log
        state = opened.state()  # chooses the next question, outside the transaction
        result = result_of(opened.session)
        session = opened.session
        try:
            record(
                self.store,
                opened.task,
                seq,
                key,
                session.events[-1],
                person.id,
                timing or Timing(),
                len(session.judgments),
                result,
            )
        except log.AlreadyRecorded:
            raise self._lost_race(opened.task, key) from None
        lock.cached = opened
        if self._choose_pair is None or opened.task.tool != "lists":
            return state
        with self.store.read() as tx:
            self._select_pair(tx, opened)
        return opened.state()

    def _select_pair(self, tx: Tx, opened: OpenTask) -> None:
        """Make the chooser's pair the open question where the strategy accepts any order."""
        if self._choose_pair is None or opened.blocked or opened.task.tool != "lists":
            return
        choices = opened.session.choices
        pair = self._choose_pair(tx, opened.task, choices) if len(choices) > 1 else None
        if pair is not None:
            opened.session.select_pair(*pair)

    def _lost_race(self, task: TaskRow, key: str) -> Exception:
        """Return the error to raise when another server wrote first: this answer, or another."""
        with self.store.read() as tx:
            row = tasks.get(tx, task.id)
            if row is None:
                return NotFound("there is no such task.")
            opened = synchronized(tx, row, None, log.length(tx, row.id))
            opened.blocked = closed_reason(row)
            recorded = log.has_key(tx, row.id, key)
        return RepeatedRequest(opened.state()) if recorded else Conflict(LATE, opened.state())


class RepeatedRequest(Exception):
    """A request with a key that is already recorded; it is answered with the current state."""

    def __init__(self, state: TaskState) -> None:
        super().__init__("recorded before")
        self.state = state


def _judged_task(tx: Tx, task: int, person: Person, key: str | None = None) -> JudgedTask:
    """Return a task of this person, who must be an assessor of its project."""
    judged = tasks.judged_by(tx, task, person.id, key)
    if judged is None:
        raise NotFound("there is no such task.")
    return judged


def _check_switch(row: TaskRow, setting: Setting) -> None:
    """Refuse a strategy that asks questions which the task's tool does not show."""
    fixed = STRATEGY_OF.get(row.tool)
    if fixed is not None and setting.strategy != fixed:
        raise DataError(
            f"the tool {row.tool!r} has the strategy {fixed}, which cannot change; switch k only."
        )
    projects.check_strategy(setting, (row.tool,))


def _check_answer(opened: OpenTask, answer: SubmittedAnswer) -> None:
    """Refuse an answer that the options of the project do not allow."""
    graded = answer.right is None
    _check_outcome(opened, answer.outcome, graded)
    _check_buttons(opened, answer)
    check_annotations(answer.timing.reasons, answer.timing.aspects, opened.options, graded)


def _check_buttons(opened: OpenTask, answer: SubmittedAnswer) -> None:
    """Refuse an answer that the project's pages do not offer, or that contradicts itself."""
    if answer.skipped:
        return
    tool, options = opened.task.tool, opened.options
    check_bad(tool, answer.left, answer.outcome, answer.bad, options)
    if tool == "pairs" and answer.outcome == 0 and not answer.bad and not options.ties:
        raise DataError("ties are not allowed in this project; choose the better one, or skip.")


def _check_outcome(opened: OpenTask, outcome: int, graded: bool) -> None:
    highest = len(shown_scale(opened.options.grades)) - 1
    lists = opened.task.tool == "lists"
    low, high = (0, highest) if graded else (-2, 2) if lists else (-1, 1)
    if not low <= outcome <= high:
        raise DataError(f"the outcome must be from {low} to {high} here; got {outcome}.")
