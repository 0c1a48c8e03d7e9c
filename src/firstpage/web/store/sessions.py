"""Sessions out of the database: a task's documents, its setting and its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firstpage.labeling.session.session import Gold, Session
from firstpage.web.store import log, projects, tasks, texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.options import Options
from firstpage.web.store.state import Doc, State, doc, state_of
from firstpage.web.store.tasks import TaskRow


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
