"""Tasks: one query for one person with one tool; each is one labeling session."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    RowMapping,
    bindparam,
    exists,
    func,
    null,
    select,
    update,
)

from firstpage.labeling.app.store import audit
from firstpage.labeling.app.store.connect import Tx, from_row
from firstpage.labeling.app.store.projects import Project, task_setting
from firstpage.labeling.app.store.tables import (
    documents,
    events,
    memberships,
    projects,
    queries,
    tasks,
)
from firstpage.labeling.session.events import Setting, setting_from_dict

TO_DO = ("open", "started")


# Prepared once: building a statement takes longer than running it.
TASK_ROWS = (
    select(
        tasks,
        projects.c.slug,
        projects.c.state.label("project_state"),
        projects.c.options.label("project_options"),
        queries.c.key.label("query_key"),
        queries.c.text.label("query_text"),
        queries.c.description,
        select(func.count())
        .where(documents.c.query == tasks.c.query, documents.c.archived.is_(None))
        .scalar_subquery()
        .label("n"),
    )
    .join(projects, projects.c.id == tasks.c.project)
    .join(queries, queries.c.id == tasks.c.query)
    .where(queries.c.archived.is_(None))  # the tasks of an archived query are hidden
    .order_by(tasks.c.position, tasks.c.id)
)
_ID = tasks.c.id == bindparam("task")
_LAST = select(func.max(events.c.seq)).where(events.c.task == tasks.c.id).scalar_subquery()
TASK_BY_ID = TASK_ROWS.where(_ID)
# The task of an assessor who has not left, and all that an answer to it must be checked against.
JUDGED_TASK = (
    TASK_BY_ID.add_columns(
        _LAST.label("last"),
        exists()
        .where(events.c.task == tasks.c.id, events.c.key == bindparam("key"))
        .label("has_key"),
    )
    .join(
        memberships,
        (memberships.c.project == tasks.c.project) & (memberships.c.person == tasks.c.person),
    )
    .where(
        tasks.c.person == bindparam("person"),
        memberships.c.role == "assessor",
        memberships.c.departed_at.is_(None),
    )
)
# One statement that checks a task, locks it until the transaction ends, and changes it.  It changes
# no row if the task takes no answers or its log has another length.  In PostgreSQL the length may
# be that before waiting for a concurrent transaction; then the number of the next event is taken.
PROGRESS = (
    update(tasks)
    .where(
        _ID,
        tasks.c.state != "skipped",
        func.coalesce(_LAST, -1) == bindparam("last"),
        exists().where(projects.c.id == tasks.c.project, projects.c.state == "open"),
    )
    .values(
        state=bindparam("new_state"),
        judgments=bindparam("count"),
        reason=None,
        result=bindparam("new_result", type_=JSON(none_as_null=True)),
        started=func.coalesce(tasks.c.started, bindparam("now")),
        finished=bindparam("end"),
    )
)


@dataclass(frozen=True)
class TaskRow:
    """A task with the columns of its query and project that are needed with it."""

    id: int
    project: int
    slug: str
    project_state: str
    project_options: dict[str, Any]  # as they are stored
    query: int
    query_key: str
    query_text: str
    description: str
    person: int
    tool: str
    replicate: int
    state: str
    setting: Setting
    judgments: int  # current judgments
    n: int  # documents
    started: str | None
    finished: str | None


def add(
    tx: Tx, project: Project, query: int, person: int, tool: str, replicate: int, position: int
) -> int:
    """Add an open task; return its id."""
    return tx.add(
        tasks,
        project=project.id,
        query=query,
        person=person,
        tool=tool,
        replicate=replicate,
        state="open",
        position=position,
        setting=asdict(task_setting(project, tool, query, person)),
    )


def get(tx: Tx, task: int) -> TaskRow | None:
    """Return a task; None if there is none with this id."""
    row = tx.first(TASK_BY_ID, task=task)
    return None if row is None else _task(row)


@dataclass(frozen=True)
class JudgedTask:
    """A task of its assessor; the length of its log, and whether it has the key of a request."""

    row: TaskRow
    log_length: int
    has_key: bool


def judged_by(tx: Tx, task: int, person: int, key: str | None = None) -> JudgedTask | None:
    """Return a person's task; None if it belongs to another, or they are not an assessor of it."""
    row = tx.first(JUDGED_TASK, task=task, person=person, key=key)
    if row is None:
        return None
    return JudgedTask(_task(row), _length(row["last"]), bool(row["has_key"]))


def _length(last: int | None) -> int:
    return 0 if last is None else last + 1


def progress(
    tx: Tx, task: int, seq: int, judgments: int, result: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the parameters of `PROGRESS` by event `seq`; with a result the task is done."""
    state, end = ("started", None) if result is None else ("done", tx.now)
    return {
        "task": task,
        "last": seq - 1,
        "new_state": state,
        "count": judgments,
        "new_result": result,
        "now": tx.now,
        "end": end,
    }


def of_person(tx: Tx, project: Project, person: int) -> list[TaskRow]:
    """Return a person's tasks in working order."""
    return _rows(tx, tasks.c.project == project.id, tasks.c.person == person)


def of_project(tx: Tx, project: int) -> list[TaskRow]:
    """Return a project's tasks in working order."""
    return _rows(tx, tasks.c.project == project)


def covers(row: TaskRow, present: Collection[int]) -> bool:
    """Return whether the query is judged, or will be judged, by this task.

    `present` are the assessors who have not left the project.
    """
    return row.state == "done" or (row.state in TO_DO and row.person in present)


def abandoned(row: TaskRow, present: Collection[int]) -> bool:
    """Return whether the task was returned, or started by an assessor who has left."""
    return row.state == "skipped" or (row.state == "started" and row.person not in present)


def set_state(
    tx: Tx,
    task: int,
    state: str,
    *,
    judgments: int | None = None,
    reason: str | None = None,
    result: dict[str, Any] | None = None,
) -> None:
    """Set a task's state, with the times of its first start and its last end."""
    values: dict[str, object] = {"state": state, "reason": reason, "result": result or null()}
    if state in ("started", "done"):
        values["started"] = func.coalesce(tasks.c.started, tx.now)
    values["finished"] = tx.now if state in ("done", "skipped") else None
    if judgments is not None:
        values["judgments"] = judgments
    tx.run(update(tasks).where(tasks.c.id == task).values(**values))


def skip(tx: Tx, task: TaskRow, reason: str, by: int) -> None:
    """Mark a query as returned by its assessor."""
    set_state(tx, task.id, "skipped", reason=reason)
    details = {"task": task.id, "query": task.query_key, "reason": reason}
    audit.note(tx, "query returned", by, task.project, **details)


def sees_query(tx: Tx, person: int, query: int) -> bool:
    """Return whether this person has a task about a query that is not archived."""
    task = (
        select(tasks.c.id)
        .join(queries, queries.c.id == tasks.c.query)
        .where(tasks.c.person == person, tasks.c.query == query, queries.c.archived.is_(None))
    )
    return tx.value(task.limit(1)) is not None


def _rows(tx: Tx, *conditions: ColumnElement[bool]) -> list[TaskRow]:
    return [_task(row) for row in tx.all(TASK_ROWS.where(*conditions))]


def _task(row: RowMapping) -> TaskRow:
    return from_row(TaskRow, row, setting=setting_from_dict(row["setting"]))
