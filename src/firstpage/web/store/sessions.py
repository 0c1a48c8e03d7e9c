"""Sessions out of the database, and the state of a task that an assessor sees."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping

from firstpage.errors import FirstpageError
from firstpage.labeling.session.session import Gold, Session, Shown
from firstpage.web.store import log, projects, tasks, texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.options import Options
from firstpage.web.store.tasks import TaskRow
from firstpage.web.store.texts import without_grade

REHEARSAL = threading.Lock()


class NotThere(FirstpageError):
    """What was asked for does not exist, or not for this person; both sound the same."""


class Conflict(FirstpageError):
    """An answer that comes too late or twice; `state` says where things stand."""

    def __init__(self, detail: str, state: State) -> None:
        super().__init__(detail)
        self.state = state


@dataclass(frozen=True)
class Doc:
    """A document to show: its frame's address, or the fields of a card, or a list's items."""

    key: str
    title: str
    kind: str
    url: str
    dir: str | None = None
    fields: dict[str, Any] | None = None
    items: list[Any] | None = None


@dataclass(frozen=True)
class QueryText:
    text: str
    description: str


@dataclass(frozen=True)
class Asked:
    """The open question; hidden repeats and gold questions look like any other."""

    kind: str
    left: Doc
    right: Doc | None


@dataclass(frozen=True)
class State:
    """Where a task stands."""

    task: int
    project: str
    tool: str
    query: QueryText
    seq: int
    question: Asked | None
    asked: int
    remaining: tuple[int, int]
    done: bool
    can_undo: bool
    options: dict[str, Any]
    message: str | None = None


def doc(row: RowMapping | Mapping[str, Any], rtl: bool | None = None) -> Doc:
    """How a stored document is shown; without the grades of a list's items."""
    fields = row["fields"] if isinstance(row["fields"], dict) else None
    items = fields.get("items") if fields and row["kind"] == "list" else None
    shown = [without_grade(item) for item in items] if isinstance(items, list) else None
    direction = None if rtl is None else ("rtl" if rtl else "ltr")
    return Doc(
        row["key"], row["title"], row["kind"], f"/documents/{row['id']}", direction,
        fields if row["kind"] == "card" else None, shown,
    )  # fmt: skip


def shown_options(options: Options) -> dict[str, Any]:
    """Those that the judging page needs."""
    return options.model_dump(include={"ties", "bad", "away_after"})


def why_closed(task: TaskRow) -> str | None:
    """Why nothing can be answered, in a gentle sentence; None where one can."""
    if task.project_state == "draft":
        return "This project has not been opened yet; please come back later."
    if task.project_state == "closed":
        return "This project is closed; thank you for your work."
    if task.state == "skipped":
        return "You handed this query back; there is nothing more to do here."
    return None


def state_of(
    task: TaskRow, session: Session, docs: Mapping[str, Doc], options: Options,
    barred: str | None = None,
) -> State:  # fmt: skip
    """The state of a task; `barred` says why no question is shown."""
    shown = None if barred else session.question
    message = barred or ("This query is done. Thank you." if session.done else None)
    return State(
        task.id, task.slug, task.tool, QueryText(task.query_text, task.description),
        len(session.events), _asked(shown, docs), len(session.judgments), _remaining(session),
        session.done, bool(session.judgments) and not barred, shown_options(options), message,
    )  # fmt: skip


def _remaining(session: Session) -> tuple[int, int]:
    """One at a time: the first for a strategy rehearses it, and all others then know."""
    with REHEARSAL:
        return session.left


def _asked(shown: Shown | None, docs: Mapping[str, Doc]) -> Asked | None:
    if shown is None:
        return None
    right = None if shown.right is None else docs[shown.right]
    return Asked("judgment", docs[shown.left], right)


@dataclass
class Opened:
    """A task with its session at hand."""

    task: TaskRow
    session: Session
    docs: dict[str, Doc]
    options: Options
    barred: str | None = None

    def state(self) -> State:
        return state_of(self.task, self.session, self.docs, self.options, self.barred)


def caught_up(tx: Tx, row: TaskRow, opened: Opened | None) -> Opened:
    """The session at hand brought to the end of the log, or one replayed from its beginning."""
    end = log.length(tx, row.id)
    if opened is None or len(opened.session.events) > end:
        opened = _opened(tx, row)
    if len(opened.session.events) < end:
        opened.session.replay(log.since(tx, row.id, len(opened.session.events)))
    opened.task = row
    return opened


def _opened(tx: Tx, row: TaskRow) -> Opened:
    """A session before its first event."""
    options = projects.get(tx, row.project).options
    found = texts.documents_of(tx, row.query)
    golds = texts.golds_of(tx, row.project, "gold", row.query)
    one = row.tool == "grades"  # gold questions fit the tool, or are not asked
    fitting = [
        Gold(g["left"], g["right"], g["outcome"]) for g in golds if (g["right"] is None) == one
    ]
    priors = [d["prior"] for d in found]
    session = Session(
        [d["key"] for d in found], row.setting, golds=fitting,
        prior=None if None in priors else priors,
    )  # fmt: skip
    return Opened(row, session, {d["key"]: doc(d, options.rtl) for d in found}, options)


def settle(tx: Tx, task: int) -> None:
    """A task with nothing to ask, as of a single document, is done at once."""
    row = tasks.get(tx, task)
    if row is None or row.n != 1 or row.tool == "grades":
        return
    session = _opened(tx, row).session
    tasks.set_state(tx, task, "done", asked=0, result=result_of(session))


def result_of(session: Session) -> dict[str, Any] | None:
    """The top k by the names of documents, for keeping; None while questions are left."""
    if not session.done:
        return None
    found, names = session.result, session.documents
    return {
        "order": [names[d] for d in found.order],
        "bad": sorted(names[d] for d in found.bad),
        "tied": [[names[d] for d in group] for group in found.tied],
        "confidence": None if found.confidence is None else list(found.confidence),
        "set_confidence": found.set_confidence,
        "membership": None
        if found.membership is None
        else {names[d]: share for d, share in enumerate(found.membership)},
    }
