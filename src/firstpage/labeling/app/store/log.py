"""The log of judgments: append-only rows, each numbered in its task and keyed by its sender."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, func, insert, select
from sqlalchemy.exc import IntegrityError

from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.tables import events, spans
from firstpage.labeling.session.events import (
    Event,
    Judgment,
    Revision,
    apply_event,
    from_dict,
    to_dict,
)

_OF_TASK = events.c.task == bindparam("task")
LAST = select(func.max(events.c.seq)).where(_OF_TASK)
KEY = select(events.c.id).where(_OF_TASK, events.c.key == bindparam("key"))
APPEND = insert(events).inline()
SINCE = (
    select(events.c.event).where(_OF_TASK, events.c.seq >= bindparam("seq")).order_by(events.c.seq)
)
SPAN_KINDS = ("active", "paused", "away")
ANNOTATIONS = ("reasons", "aspects")  # of an answer, in its event


class AlreadyRecorded(Exception):
    """The number or the key is in the log already: another request was first."""


@dataclass(frozen=True)
class Timing:
    """When a question was shown and answered, how the time between was spent, and remarks."""

    shown_at: str | None = None
    answered_at: str | None = None
    spans: tuple[dict[str, Any], ...] = field(default=())
    comment: str | None = None
    cost: Mapping[str, Any] | None = None  # of an answer by a program
    adjusted: Mapping[str, Any] = field(default_factory=dict)  # corrections of reported times
    reasons: tuple[str, ...] = ()  # tags that say why
    aspects: Mapping[str, int] = field(default_factory=dict)  # grades of further aspects

    def sums(self) -> dict[str, int | None]:
        """Return the milliseconds of each kind; None if there are no spans."""
        return {
            f"{kind}_ms": sum(int(s["ms"]) for s in self.spans if s["kind"] == kind)
            if self.spans
            else None
            for kind in SPAN_KINDS
        }


def length(tx: Tx, task: int) -> int:
    """Return the number of a task's events, which is the number of its next event."""
    last = tx.value(LAST, task=task)
    return 0 if last is None else int(last) + 1


def has_key(tx: Tx, task: int, key: str) -> bool:
    """Return whether a task's log has an event with this key."""
    return tx.value(KEY, task=task, key=key) is not None


def since(tx: Tx, task: int, seq: int = 0) -> list[Event]:
    """Return a task's events, starting with number `seq`."""
    return [from_dict(row["event"]) for row in tx.all(SINCE, task=task, seq=seq)]


def current_annotations(tx: Tx, task: int) -> list[dict[str, Any]]:
    """Return the reasons and aspects of each current judgment: those of its last answer."""
    active: list[Judgment] = []
    notes: list[dict[str, Any]] = []
    for row in tx.all(SINCE, task=task, seq=0):
        event = from_dict(row["event"])
        note = {name: row["event"][name] for name in ANNOTATIONS if name in row["event"]}
        apply_event(active, event)
        if isinstance(event, Judgment):
            notes.append(note)
        elif isinstance(event, Revision):
            notes[event.index] = note
        del notes[len(active) :]
    return notes


def append(tx: Tx, row: Mapping[str, Any]) -> None:
    """Append an event; raise `AlreadyRecorded` if its number or key is taken."""
    try:
        tx.run(APPEND, **row)
    except IntegrityError as error:
        raise AlreadyRecorded from error


def event_row(
    tx: Tx, task: int, seq: int, key: str, event: Event, person: int, timing: Timing
) -> dict[str, Any]:
    """Return an event as a row of the log."""
    record = to_dict(event)
    if timing.adjusted:
        record["adjusted_times"] = dict(timing.adjusted)
    if timing.reasons:
        record["reasons"] = list(timing.reasons)
    if timing.aspects:
        record["aspects"] = dict(timing.aspects)
    return {
        "task": task,
        "seq": seq,
        "key": key,
        "event": record,
        "person": person,
        "shown_at": timing.shown_at,
        "answered_at": timing.answered_at,
        **timing.sums(),
        "spans": list(timing.spans) or None,
        "comment": timing.comment,
        "recorded_at": tx.now,
        "cost": None if timing.cost is None else dict(timing.cost),
    }


def add_spans(tx: Tx, task: int, key: str, timing: Timing) -> None:
    """Record time that ended without an answer, once per key."""
    if tx.value(select(spans.c.id).where(spans.c.task == task, spans.c.key == key)) is None:
        tx.add(
            spans, task=task, key=key, spans=list(timing.spans), recorded_at=tx.now, **timing.sums()
        )
