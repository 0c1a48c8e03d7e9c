"""The log as plain rows for the statistics: judgments that stand, and final results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, select

from firstpage.labeling.session.events import Judged, from_dict, replay
from firstpage.labeling.statistics.records import Record
from firstpage.labeling.statistics.relations import top_labels
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project
from firstpage.web.store.tables import documents, events, golds, people, queries, tasks


@dataclass(frozen=True)
class Sitting:
    """One task with its judgments that stand, in order."""

    task: int
    query: str
    query_id: int
    assessor: str
    tool: str
    k: int
    result: dict[str, Any] | None
    judgments: tuple[tuple[Judged, RowMapping], ...]

    @property
    def answers(self) -> int:
        """The number of questions that were answered, not skipped."""
        return len(self.judgments) - self.skipped

    @property
    def skipped(self) -> int:
        """The number of questions that were skipped."""
        return sum(judged.skipped for judged, _ in self.judgments)

    @property
    def supported(self) -> bool:
        """Whether an answer supports the result, or no question was needed for it."""
        return any_answer(judged for judged, _ in self.judgments)

    def unjudged(self, documents: Iterable[str]) -> set[str]:
        """Return those of the query's documents that skipping has left without any answer."""
        if not self.skipped:
            return set()
        rows = [j for j, _ in self.judgments if j.kind == "judgment" and not j.skipped]
        return set(documents) - {key for j in rows for key in (j.left, j.right)}


def any_answer(judgments: Iterable[Judged]) -> bool:
    """Return whether some question of the strategy was answered; True where it asked none."""
    asked = [judged for judged in judgments if judged.kind == "judgment"]
    return not asked or not all(judged.skipped for judged in asked)


def sittings(tx: Tx, project: Project) -> list[Sitting]:
    """All tasks that have events, or a result without any."""
    logs: dict[int, list[RowMapping]] = {}
    for row in tx.all(
        select(events).join(tasks, tasks.c.id == events.c.task)
        .where(tasks.c.project == project.id).order_by(events.c.task, events.c.seq)
    ):  # fmt: skip
        logs.setdefault(row["task"], []).append(row)
    found = tx.all(
        select(tasks, queries.c.key, people.c.login)
        .join(queries, queries.c.id == tasks.c.query)
        .join(people, people.c.id == tasks.c.person)
        .where(tasks.c.project == project.id).order_by(tasks.c.id)
    )  # fmt: skip
    return [
        Sitting(
            row["id"], row["key"], row["query"], row["login"], row["tool"],
            _k(row, logs.get(row["id"], [])), row["result"],
            tuple(standing(logs.get(row["id"], []))),
        )
        for row in found
        if row["id"] in logs or row["result"] is not None
    ]  # fmt: skip


def _k(row: RowMapping, log: Sequence[RowMapping]) -> int:
    """The k of the last switch, or that of the beginning."""
    switched = [e["event"]["setting"]["k"] for e in log if e["event"]["event"] == "switched"]
    return int(switched[-1] if switched else row["setting"]["k"])


def standing(log: Sequence[RowMapping]) -> list[tuple[Judged, RowMapping]]:
    """Judgments that were not undone, as revised; each with the row that it came by."""
    return replay((from_dict(row["event"]), row) for row in log)


def records(tx: Tx, project: Project, found: Sequence[Sitting] | None = None) -> list[Record]:
    """Every judgment that stands and was not skipped."""
    expected = _expected(tx, project)
    return [
        _record(sitting, judged, row, expected)
        for sitting in (sittings(tx, project) if found is None else found)
        for judged, row in sitting.judgments
        if not judged.skipped
    ]


def skipped(found: Sequence[Sitting]) -> int:
    """Return how many questions were skipped, and so are in no record."""
    return sum(sitting.skipped for sitting in found)


def skipping_tasks(tx: Tx, project: Project) -> dict[int, list[Judged]]:
    """Return the judgments that stand of each task in which a question was ever skipped."""
    skipping = select(events.c.task).where(events.c.event["skipped"].as_boolean().is_(True))
    logs: dict[int, list[RowMapping]] = {}
    for row in tx.all(
        select(events).join(tasks, tasks.c.id == events.c.task)
        .where(tasks.c.project == project.id, events.c.task.in_(skipping))
        .order_by(events.c.task, events.c.seq)
    ):  # fmt: skip
        logs.setdefault(row["task"], []).append(row)
    return {task: [judged for judged, _ in standing(log)] for task, log in logs.items()}


def results(
    tx: Tx, project: Project, found: Sequence[Sitting] | None = None
) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the labels that each finished task ended with: k..1 and 0, or the grades given.

    A task whose questions were all skipped has none, nor has a document that no answer touched.
    """
    keys = keys_by_query(tx, project)
    made = {}
    for sitting in sittings(tx, project) if found is None else found:
        if sitting.result is None or not sitting.supported:
            continue
        unjudged = sitting.unjudged(keys[sitting.query_id])
        judged_keys = [key for key in keys[sitting.query_id] if key not in unjudged]
        order = [key for key in sitting.result["order"] if key not in unjudged]
        labels = (
            {
                j.left: float(j.outcome)
                for j, _ in sitting.judgments
                if j.kind == "judgment" and not j.skipped
            }
            if sitting.tool == "grades"
            else dict(top_labels(order, judged_keys, sitting.k))
        )
        made[sitting.query, sitting.assessor, sitting.tool] = labels
    return made


def keys_by_query(tx: Tx, project: Project) -> dict[int, list[str]]:
    """The documents of every query, in order."""
    found: dict[int, list[str]] = {}
    for row in tx.all(
        select(documents.c.query, documents.c.key)
        .join(queries, queries.c.id == documents.c.query)
        .where(queries.c.project == project.id)
        .order_by(documents.c.query, documents.c.position)
    ):
        found.setdefault(row["query"], []).append(row["key"])
    return found


def _expected(tx: Tx, project: Project) -> dict[tuple[int, str, str | None], int]:
    rows = tx.all(select(golds).where(golds.c.project == project.id, golds.c.kind == "gold"))
    return {(r["query"], r["left"], r["right"]): r["outcome"] for r in rows}


def _record(
    sitting: Sitting, judged: Judged, row: RowMapping,
    expected: dict[tuple[int, str, str | None], int],
) -> Record:  # fmt: skip
    pair = judged.right is not None
    sign = (judged.outcome > 0) - (judged.outcome < 0)
    known = expected.get((sitting.query_id, judged.left, judged.right))
    return Record(
        query=sitting.query, assessor=sitting.assessor, tool=sitting.tool,
        left=judged.left, right=judged.right,
        outcome=sign if pair else None, grade=None if pair else judged.outcome,
        bad=judged.bad, active=_active(row), paused=(row["paused_ms"] or 0) / 1000,
        away=(row["away_ms"] or 0) / 1000, answered_at=_seconds(row["answered_at"] or row["at"]),
        kind=judged.kind, expected=known if judged.kind == "gold" else None,
        adjusted=bool(row["event"].get("adjusted_times")),
    )  # fmt: skip


def _active(row: RowMapping) -> float:
    """Seconds on the judgment: what the page measured, else from being shown to the answer."""
    if row["active_ms"] is not None:
        return float(row["active_ms"]) / 1000
    if row["shown_at"] and row["answered_at"]:
        return max(0.0, _seconds(row["answered_at"]) - _seconds(row["shown_at"]))
    return 0.0


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
