"""Where judging happens: sessions at hand, answers written down before they are acknowledged.

A session is replay of its log, so it may be forgotten at any time; one that is at hand only saves
the replay.  The log in the database decides: every write looks, inside its transaction, whether
the session at hand is as long as the log, so several servers may work on one database.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from firstpage.errors import DataError
from firstpage.labeling.session.estimate import Moment, questions_left
from firstpage.labeling.session.events import Event, Judged, OutOfStep, Revised, Switched, Undone
from firstpage.labeling.session.session import Session
from firstpage.labeling.strategies.exhaustive import GRADES
from firstpage.labeling.strategies.registry import check_documents
from firstpage.web.store import assigning, audit, log, projects, tasks, training
from firstpage.web.store.connect import Store, Tx
from firstpage.web.store.log import Timing
from firstpage.web.store.people import Person
from firstpage.web.store.sessions import (
    Conflict,
    Doc,
    NotThere,
    Opened,
    State,
    caught_up,
    result_of,
    why_closed,
)
from firstpage.web.store.tasks import TaskRow

KEPT = 1000  # sessions at hand at most
DONE = "This query is done; its judgments stand. Change single ones instead."
LATE = "This was answered already, perhaps in another window; here is where you are."


Wish = Callable[[Tx, TaskRow, list[tuple[str, str]]], tuple[str, str] | None]


@dataclass(frozen=True)
class Given:
    """An answer as it comes in; `seq` and `key` make a second coming harmless."""

    seq: int
    key: str
    left: str
    right: str | None
    outcome: int
    bad: tuple[str, ...] = ()
    skipped: bool = False
    timing: Timing = field(default_factory=Timing)


@dataclass
class Seat:
    """One task at a time by one thread."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    opened: Opened | None = None


class Desk:
    """All judging of one server process; `wish` says which pair of several open ones comes next."""

    def __init__(self, store: Store, wish: Wish | None = None) -> None:
        self.store = store
        self._wish = wish
        self._seats: OrderedDict[int, Seat] = OrderedDict()
        self._guard = threading.Lock()

    def state(self, task: int, person: Person) -> State:
        with self._seated(task, person) as seat:
            return _at(seat).state()

    def answer(self, task: int, person: Person, given: Given) -> State:
        """Write down an answer; the state after it, once it is durable."""

        def event(session: Session) -> Event:
            shown = session.question
            kind = "judgment" if shown is None else shown.kind
            return Judged(given.left, given.right, given.outcome, given.bad, kind, given.skipped)

        with self._seated(task, person, given.key) as seat:
            _check_outcome(_at(seat).task.tool, given.outcome, given.right is None)
            _check_buttons(_at(seat), given)
            return self._happen(seat, person, given.seq, given.key, event, given.timing)

    def undo(self, task: int, person: Person, seq: int, key: str) -> State:
        with self._seated(task, person, key) as seat:
            return self._happen(seat, person, seq, key, lambda _: Undone())

    def revise(
        self, task: int, person: Person, seq: int, key: str, at: int, outcome: int,
        bad: tuple[str, ...] = (),
    ) -> State:  # fmt: skip
        """Another answer to a judgment that stands."""
        with self._seated(task, person, key) as seat:
            old = _at(seat).session.judgments[at : at + 1]
            _check_outcome(_at(seat).task.tool, outcome, bool(old) and old[0].right is None)
            if old:
                again = Given(seq, key, old[0].left, old[0].right, outcome, bad)
                _check_buttons(_at(seat), again)
            return self._happen(seat, person, seq, key, lambda _: Revised(at, outcome, bad))

    def switch(self, task: int, by: Person, key: str, changes: Mapping[str, Any]) -> State:
        """Another strategy or k from here on, by a lead."""
        with self.store.read() as tx:
            row = tasks.get(tx, task)
        if row is None:
            raise NotThere("there is no such task.")
        with self._seated(task, replace(by, id=row.person), key) as seat:
            session = _at(seat).session
            setting = replace(session.setting, **changes)
            projects.check_fit(setting, (row.tool,))
            if setting.strategy != session.setting.strategy:
                check_documents(row.query_key, row.n, setting.strategy, setting.refine)
            state = self._happen(seat, by, len(session.events), key, lambda _: Switched(setting))
        with self.store.write() as tx:
            audit.note(tx, "task switched", person=by.id, project=row.project, task=task, **changes)
        return state

    def spend(self, task: int, person: Person, key: str, timing: Timing) -> None:
        """Time that ended without an answer."""
        with self.store.write() as tx:
            _mine(tx, task, person)
            log.add_spans(tx, task, key, timing)

    def skip(self, task: int, person: Person, reason: str) -> State:
        """Hand the whole query back."""
        with self._seated(task, person) as seat:
            with self.store.write() as tx:
                row = _mine(tx, task, person)
                why = why_closed(row) if row.state != "skipped" else None
                if why or row.state == "done":
                    raise Conflict(why or DONE, _at(seat).state())
                if row.state != "skipped":
                    tasks.skip(tx, row, reason, person.id)
                    assigning.hand_on(tx, row)
            seat.opened = None
        return self.state(task, person)

    def ahead(self, task: int, person: Person) -> list[str]:
        """Addresses of the documents that may be shown after the open question."""
        with self._seated(task, person) as seat:
            opened = _at(seat)
            shown = None if opened.barred else opened.session.question
            if shown is None:
                return []
            outcomes = (1, -1) if shown.right is not None else (0,)
            found = [opened.session.peek(outcome) for outcome in outcomes]
            keys = {key for s in found if s is not None for key in (s.left, s.right) if key}
            return sorted(opened.docs[key].url for key in keys - {shown.left, shown.right})

    def questions_remaining(self, task: TaskRow) -> tuple[int, int]:
        """How many questions a task still has, about: for lists, where none is replayed."""
        if task.state in ("done", "skipped") or task.n < 1:
            return 0, 0
        low, high = questions_left(task.setting.strategy, task.n, task.setting.k, Moment(0, 0))
        return max(1, low - task.asked), max(1, high - task.asked)

    def judgments(self, task: int, person: Person) -> list[tuple[Judged, Doc, Doc | None]]:
        """One's own standing judgments with their documents, in order."""
        with self._seated(task, person) as seat:
            docs = _at(seat).docs
            return [
                (j, docs[j.left], None if j.right is None else docs[j.right])
                for j in _at(seat).session.judgments
            ]

    @contextmanager
    def _seated(self, task: int, person: Person, key: str | None = None) -> Iterator[Seat]:
        """The task's seat with its session as long as the log, for one thread.

        A seat may be forgotten between being found and being locked; then two threads have one
        each, and the log decides between them as between two servers.
        """
        with self._guard:
            seat = self._seats.setdefault(task, Seat())
            self._seats.move_to_end(task)
            while len(self._seats) > KEPT:
                self._seats.popitem(last=False)
        with seat.lock:
            with self.store.read() as tx:
                row = _mine(tx, task, person)
                seat.opened = caught_up(tx, row, seat.opened)
                seat.opened.barred = why_closed(row) or training.barred(tx, row)
                repeated = key is not None and log.has_key(tx, task, key)
                self._turn(tx, seat.opened)
            if repeated:
                raise Repeated(seat.opened.state())
            yield seat

    def _happen(
        self, seat: Seat, person: Person, seq: int, key: str,
        make: Callable[[Session], Event], timing: Timing | None = None,
    ) -> State:  # fmt: skip
        """Let an event happen to the session at hand, then to the log; both or neither."""
        opened = _at(seat)
        if opened.barred:
            raise Conflict(opened.barred, opened.state())
        if seq != len(opened.session.events):
            raise Conflict(LATE, opened.state())
        try:
            opened.session.apply(make(opened.session))
        except OutOfStep as error:
            raise Conflict(f"{LATE} ({error})", opened.state()) from error
        seat.opened = None  # from here on it is ahead of the log
        state = opened.state()  # chooses the next question, outside the transaction
        result = result_of(opened.session)
        try:
            with self.store.write() as tx:
                self._write(tx, opened, person, seq, key, timing or Timing(), result)
        except log.Taken:
            raise self._too_late(opened.task, key) from None
        seat.opened = opened
        if self._wish is None or opened.task.tool != "lists":
            return state
        with self.store.read() as tx:
            self._turn(tx, opened)
        return opened.state()

    def _turn(self, tx: Tx, opened: Opened) -> None:
        """Where any order will do: to the pair that is wished for, by all that is known by now."""
        if self._wish is None or opened.barred or opened.task.tool != "lists":
            return
        choices = opened.session.choices
        wished = self._wish(tx, opened.task, choices) if len(choices) > 1 else None
        if wished is not None:
            opened.session.turn(*wished)

    def _write(
        self, tx: Tx, opened: Opened, person: Person, seq: int, key: str, timing: Timing,
        result: dict[str, Any] | None,
    ) -> None:  # fmt: skip
        row = tasks.locked(tx, opened.task.id)
        if row is None or why_closed(row) or log.length(tx, row.id) != seq:
            raise log.Taken
        session = opened.session
        log.append(tx, row.id, seq, key, session.events[-1], person.id, timing)
        tasks.set_state(
            tx, row.id, "started" if result is None else "done", asked=len(session.judgments),
            result=result,
        )  # fmt: skip

    def _too_late(self, task: TaskRow, key: str) -> Exception:
        """What to say when another server was first: with this very answer, or another."""
        with self.store.read() as tx:
            row = tasks.get(tx, task.id)
            if row is None:
                return NotThere("there is no such task.")
            opened = caught_up(tx, row, None)
            opened.barred = why_closed(row)
            recorded = log.has_key(tx, row.id, key)
        return Repeated(opened.state()) if recorded else Conflict(LATE, opened.state())


class Repeated(Exception):
    """The same key again: it was recorded before, so only the state is told."""

    def __init__(self, state: State) -> None:
        super().__init__("recorded before")
        self.state = state


def _at(seat: Seat) -> Opened:
    assert seat.opened is not None
    return seat.opened


def _mine(tx: Tx, task: int, person: Person) -> TaskRow:
    """A task of this person, who has not left the project."""
    row = tasks.get(tx, task)
    if row is None or row.person != person.id or not projects.assesses(tx, row.project, person.id):
        raise NotThere("there is no such task.")
    return row


def _check_buttons(opened: Opened, given: Given) -> None:
    """Refuse what the project's pages have no button for, or what contradicts itself."""
    if opened.task.tool != "pairs" or given.skipped:
        return
    if given.bad and not opened.options.bad:
        raise DataError("this project has no button for bad documents.")
    if len(given.bad) == 1 and given.outcome != (-1 if given.left in given.bad else 1):
        raise DataError("of one bad document and another, the other one is better.")
    if len(given.bad) > 1 and given.outcome != 0:
        raise DataError("of two bad documents, neither is better.")
    if given.outcome == 0 and not given.bad and not opened.options.ties:
        raise DataError("this project has no ties: say which one is better, or skip.")


def _check_outcome(tool: str, outcome: int, graded: bool) -> None:
    low, high = (0, len(GRADES) - 1) if graded else (-2, 2) if tool == "lists" else (-1, 1)
    if not low <= outcome <= high:
        raise DataError(f"the outcome must be from {low} to {high} here; got {outcome}.")
