"""Verdicts of leads on disputed pairs and documents: a log per query and tool, append-only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import RowMapping, func, select
from sqlalchemy.exc import IntegrityError

from firstpage.core import DataError
from firstpage.labeling.app.store import audit, texts
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.options import check_bad
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.scales import shown_scale
from firstpage.labeling.app.store.tables import adjudications, people, queries
from firstpage.labeling.session.events import (
    Adjudication,
    LeadVerdict,
    Withdrawal,
    adjudication_from_dict,
    effective_verdicts,
    replay_verdicts,
    to_dict,
)

MAX_REASON = 5000  # characters
CHANGED = "another verdict on this query was recorded in the meantime; look at it, then try again."


@dataclass(frozen=True)
class RecordedVerdict:
    """An active verdict; `index` is its number in the log of its query and tool."""

    query: int
    tool: str
    index: int
    verdict: LeadVerdict
    person: str
    reason: str
    recorded_at: str


def decide(
    tx: Tx,
    project: Project,
    query: str,
    tool: str,
    verdict: LeadVerdict,
    reason: str,
    key: str,
    by: Person,
) -> None:
    """Record a verdict on two documents of a query, or on one; the same key again does nothing."""
    row = _query(tx, project, query)
    _check(tx, project, row["id"], tool, verdict)
    text = reason.strip()
    if not text:
        raise DataError("a verdict needs a reason; others will read it.")
    if len(text) > MAX_REASON:
        raise DataError(
            f"a reason may have at most {MAX_REASON:,} characters; it has {len(text):,}."
        )
    _append(tx, project, row, tool, verdict, text, key, by)


def withdraw(
    tx: Tx, project: Project, query: str, tool: str, index: int, key: str, by: Person
) -> None:
    """Take back the verdict with this number in the log; the same key again does nothing."""
    row = _query(tx, project, query)
    if _has_key(tx, row["id"], tool, key):
        return
    if index not in [active["seq"] for _, active in _active(tx, row["id"], tool)]:
        raise DataError(f"there is no verdict {index} on this query; perhaps it was undone before.")
    _append(tx, project, row, tool, Withdrawal(index), None, key, by)


def recorded(tx: Tx, project: Project, tool: str | None = None) -> list[RecordedVerdict]:
    """Return the active verdicts of a project, by query, oldest first."""
    logs: dict[tuple[int, str], list[RowMapping]] = {}
    for row in log_rows(tx, project):
        if tool in (None, row["tool"]):
            logs.setdefault((row["query"], row["tool"]), []).append(row)
    return [
        RecordedVerdict(
            query, name, row["seq"], verdict, row["name"], row["reason"] or "", row["recorded_at"]
        )
        for (query, name), log in logs.items()
        for verdict, row in _replayed(log)
    ]


def effective(tx: Tx, project: Project, tool: str) -> dict[int, list[LeadVerdict]]:
    """Return, by query id, the verdicts that count: the last on the same documents."""
    by_query: dict[int, list[LeadVerdict]] = {}
    for row in recorded(tx, project, tool):
        by_query.setdefault(row.query, []).append(row.verdict)
    return {query: effective_verdicts(active) for query, active in by_query.items()}


def active_count(tx: Tx, query: int) -> int:
    """Return the number of active verdicts on a query, with any tool."""
    tools = select(adjudications.c.tool).where(adjudications.c.query == query).distinct()
    return sum(len(_active(tx, query, row["tool"])) for row in tx.all(tools))


def log_rows(tx: Tx, project: Project) -> Sequence[RowMapping]:
    """Return the log of a project's verdicts, each with the names of its query and its author."""
    return tx.all(
        select(adjudications, queries.c.key.label("query_key"), people.c.login, people.c.name)
        .join(queries, queries.c.id == adjudications.c.query)
        .join(people, people.c.id == adjudications.c.person)
        .where(queries.c.project == project.id)
        .order_by(adjudications.c.query, adjudications.c.tool, adjudications.c.seq)
    )


def _append(
    tx: Tx,
    project: Project,
    row: RowMapping,
    tool: str,
    event: Adjudication,
    reason: str | None,
    key: str,
    by: Person,
) -> None:
    query = row["id"]
    if _has_key(tx, query, tool, key):
        return
    conditions = adjudications.c.query == query, adjudications.c.tool == tool
    last = tx.value(select(func.max(adjudications.c.seq)).where(*conditions))
    record = to_dict(event)
    try:
        tx.add(
            adjudications,
            query=query,
            tool=tool,
            seq=0 if last is None else last + 1,
            key=key,
            event=record,
            person=by.id,
            reason=reason,
            recorded_at=tx.now,
        )
    except IntegrityError as error:
        raise DataError(CHANGED) from error
    action = "verdict" if isinstance(event, LeadVerdict) else "verdict withdrawn"
    details = {name: value for name, value in record.items() if name != "event" and value}
    audit.note(tx, action, by, project, query=row["key"], **details)


def _has_key(tx: Tx, query: int, tool: str, key: str) -> bool:
    row = select(adjudications.c.id).where(
        adjudications.c.query == query, adjudications.c.tool == tool, adjudications.c.key == key
    )
    return tx.value(row) is not None


def _active(tx: Tx, query: int, tool: str) -> list[tuple[LeadVerdict, RowMapping]]:
    rows = tx.all(
        select(adjudications)
        .where(adjudications.c.query == query, adjudications.c.tool == tool)
        .order_by(adjudications.c.seq)
    )
    return _replayed(rows)


def _replayed(rows: Sequence[RowMapping]) -> list[tuple[LeadVerdict, RowMapping]]:
    return replay_verdicts((adjudication_from_dict(row["event"]), row) for row in rows)


def _query(tx: Tx, project: Project, key: str) -> RowMapping:
    for row in texts.of_project(tx, project.id):
        if row["key"] == key:
            return row
    raise DataError(f"the project {project.slug!r} has no query {key!r}.")


def _check(tx: Tx, project: Project, query: int, tool: str, verdict: LeadVerdict) -> None:
    """Refuse a verdict that no assessor could have given with this tool."""
    if tool not in project.tools:
        raise DataError(
            f"the project {project.slug!r} has no tool {tool!r}; it has "
            f"{' and '.join(project.tools)}."
        )
    keys = {row["key"] for row in texts.documents_of(tx, query)}
    unknown = sorted(verdict.documents - keys)
    if unknown:
        raise DataError(f"the query has no document {unknown[0]!r}.")
    if verdict.left == verdict.right:
        raise DataError("a verdict needs two different documents, or one.")
    if (verdict.right is None) != (tool == "grades") and not (
        tool == "pairs" and verdict.right is None
    ):
        needed = "one document" if tool == "grades" else "two documents"
        raise DataError(f"a verdict with the tool {tool!r} is on {needed}.")
    if not set(verdict.bad) <= verdict.documents:
        raise DataError("only a document of the verdict can be marked bad.")
    _check_bad(project, tool, verdict)
    low, high = _range(project, tool, verdict)
    if not low <= verdict.outcome <= high:
        raise DataError(
            f"the outcome of this verdict must be from {low} to {high}; got {verdict.outcome}."
        )


def _check_bad(project: Project, tool: str, verdict: LeadVerdict) -> None:
    """Refuse a verdict that contradicts itself, or marks documents bad where no page does."""
    if verdict.right is not None:
        check_bad(tool, verdict.left, verdict.outcome, verdict.bad, project.options)
    elif verdict.bad and tool == "grades":
        raise DataError("a verdict on a grade marks no document bad; choose the lowest grade.")
    elif verdict.bad and verdict.outcome != 0:
        raise DataError("if the document is marked bad, the outcome must be 0.")


def _range(project: Project, tool: str, verdict: LeadVerdict) -> tuple[int, int]:
    if verdict.right is None:
        grades = shown_scale(project.options.grades)
        return (0, len(grades) - 1) if tool == "grades" else (0, 1)
    return (-2, 2) if tool == "lists" else (-1, 1)
