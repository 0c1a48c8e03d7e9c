"""Sessions restored from the database, and the state of a task as an assessor sees it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import RowMapping

from firstpage.core import FirstpageError
from firstpage.labeling.app.document_html import DocumentContent, content_of
from firstpage.labeling.app.store import log, tasks, texts
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.options import Options, read_options
from firstpage.labeling.app.store.tasks import TaskRow
from firstpage.labeling.app.store.texts import without_grade
from firstpage.labeling.session.events import RATES
from firstpage.labeling.session.extra_questions import Gold
from firstpage.labeling.session.session import Session, ShownQuestion

ESTIMATION = threading.Lock()


class NotFound(FirstpageError):
    """The object does not exist, or this person may not know that it does; both read the same."""


class Conflict(FirstpageError):
    """A request that is out of date or not allowed now; `state` is the task's current state."""

    def __init__(self, detail: str, state: TaskState) -> None:
        super().__init__(detail)
        self.state = state


@dataclass(frozen=True)
class ShownDocument:
    """A document to show: the URL of its frame, and the fields of a card or the items of a list."""

    id: int
    key: str
    title: str
    kind: str
    url: str
    dir: str | None = None
    fields: dict[str, Any] | None = None
    items: list[Any] | None = None


@dataclass(frozen=True)
class ShownQuery:
    text: str
    description: str


@dataclass(frozen=True)
class OpenQuestion:
    """The open question; hidden repeats and gold questions look like any other."""

    kind: str
    left: ShownDocument
    right: ShownDocument | None


@dataclass(frozen=True)
class TaskState:
    """The state of a task: its open question and its progress.

    `judgments` is the number of current judgments, `remaining` the estimated range of the number
    of questions still to come.  `documents` has the contents of the question's documents by URL,
    for a page that asked for them.
    """

    task: int
    project: str
    tool: str
    query: ShownQuery
    seq: int
    question: OpenQuestion | None
    judgments: int
    remaining: tuple[int, int]
    done: bool
    can_undo: bool
    options: dict[str, Any]
    message: str | None = None
    documents: dict[str, DocumentContent] | None = None

    def shown(self) -> list[ShownDocument]:
        """Return the documents of the open question."""
        question = self.question
        return [] if question is None else [d for d in (question.left, question.right) if d]


def with_contents(tx: Tx, state: TaskState, known: Collection[int] = ()) -> TaskState:
    """Return the state with the contents of its documents, except those with `known` ids."""
    urls = {shown.id: shown.url for shown in state.shown() if shown.id not in known}
    rows = texts.documents_by_id(tx, urls) if urls else ()
    return replace(state, documents={urls[row["id"]]: content_of(row) for row in rows})


def shown_document(row: RowMapping | Mapping[str, Any], rtl: bool | None = None) -> ShownDocument:
    """Return how a stored document is shown, without the grades of a list's items."""
    fields = row["fields"] if isinstance(row["fields"], dict) else None
    items = fields.get("items") if fields and row["kind"] == "list" else None
    ungraded = [without_grade(item) for item in items] if isinstance(items, list) else None
    direction = None if rtl is None else ("rtl" if rtl else "ltr")
    return ShownDocument(
        row["id"],
        row["key"],
        row["title"],
        row["kind"],
        f"/documents/{row['id']}",
        direction,
        fields if row["kind"] == "card" else None,
        ungraded,
    )


def shown_options(options: Options) -> dict[str, Any]:
    """Return the options that the judging page needs; of the newer ones only those in use."""
    record = options.to_dict()
    used = [name for name in ("grades", "aspects", "reasons") if record[name] is not None]
    return {name: record[name] for name in ("ties", "bad", "away_after", *used)}


def closed_reason(task: TaskRow) -> str | None:
    """Return why the task takes no answers, as a sentence for the assessor; None if it does."""
    if task.project_state == "draft":
        return "This project is not open yet; please come back later."
    if task.project_state == "closed":
        return "This project is closed. Thank you for your work."
    if task.state == "skipped":
        return "You returned this query; there is nothing more to do here."
    return None


def on_one_page(task: TaskRow) -> bool:
    """Return whether all documents may be graded on one page: no question is hidden or depends."""
    setting = task.setting
    hidden = setting.refine or any(getattr(setting, name) for name in RATES)
    return task.tool == "grades" and not hidden and not task.project_options.get("aspects")


def _remaining(session: Session) -> tuple[int, int]:
    """Return the range of remaining questions.

    One thread at a time: the first call for a strategy simulates it, later ones reuse the result.
    """
    with ESTIMATION:
        return session.remaining


def _open_question(
    question: ShownQuestion | None, docs: Mapping[str, ShownDocument]
) -> OpenQuestion | None:
    if question is None:
        return None
    right = None if question.right is None else docs[question.right]
    return OpenQuestion("judgment", docs[question.left], right)


@dataclass
class OpenTask:
    """A task with its session in memory; `blocked` is the reason why it takes no answers."""

    task: TaskRow
    session: Session
    docs: dict[str, ShownDocument]
    options: Options
    blocked: str | None = None

    def state(self) -> TaskState:
        task, session, blocked = self.task, self.session, self.blocked
        question = None if blocked else session.question
        message = blocked or ("This query is done. Thank you." if session.done else None)
        answered, can_undo = len(session.judgments), bool(session.judgments) and not blocked
        progress = answered, _remaining(session), session.done, can_undo
        return TaskState(
            task.id,
            task.slug,
            task.tool,
            ShownQuery(task.query_text, task.description),
            len(session.events),
            _open_question(question, self.docs),
            *progress,
            shown_options(self.options),
            message,
        )


def synchronized(tx: Tx, row: TaskRow, opened: OpenTask | None, end: int) -> OpenTask:
    """Return the open task after `end` events, replayed from the start if it is not cached."""
    if (
        opened is None
        or len(opened.session.events) > end
        or opened.task.setting != row.setting  # changed before the first answer
        or opened.task.project_options != row.project_options
        or opened.task.n != row.n  # documents were archived or restored before it
    ):
        opened = _new_session(tx, row)
    if len(opened.session.events) < end:
        opened.session.replay(log.since(tx, row.id, len(opened.session.events)))
    opened.task = row
    return opened


def _new_session(tx: Tx, row: TaskRow) -> OpenTask:
    """Return the task with its session before the first event."""
    options = read_options(row.project_options)
    documents = texts.documents_of(tx, row.query)
    gold_questions = texts.gold_questions_of(tx, row.project, "gold", row.query)
    graded = row.tool == "grades"  # gold questions of the other form are not asked
    matching = [
        Gold(g["left"], g["right"], g["outcome"])
        for g in gold_questions
        if (g["right"] is None) == graded
    ]
    priors = [d["prior"] for d in documents]
    session = Session(
        [d["key"] for d in documents],
        row.setting,
        gold_questions=matching,
        prior=None if None in priors else priors,
    )
    docs = {d["key"]: shown_document(d, options.rtl) for d in documents}
    return OpenTask(row, session, docs, options)


def finish_if_trivial(tx: Tx, task: int) -> None:
    """Finish a task that has nothing to ask, such as one with a single document."""
    row = tasks.get(tx, task)
    if row is None or row.n != 1 or row.tool == "grades":
        return
    session = _new_session(tx, row).session
    tasks.set_state(tx, task, "done", judgments=0, result=result_of(session))


def result_of(session: Session) -> dict[str, Any] | None:
    """Return the top k by document keys, as it is stored; None while questions remain."""
    if not session.done:
        return None
    result, keys = session.result, session.documents
    return {
        "order": [keys[d] for d in result.order],
        "bad": sorted(keys[d] for d in result.bad),
        "tied": [[keys[d] for d in group] for group in result.tied],
        "undecided": sorted(keys[d] for d in result.undecided),
        "confidence": None if result.confidence is None else list(result.confidence),
        "set_confidence": result.set_confidence,
        "membership": None
        if result.membership is None
        else {keys[d]: probability for d, probability in enumerate(result.membership)},
    }
