"""Archiving, restoring and deleting projects, queries and documents.

What is archived is hidden and left out of work, statistics, truth and exports, and can be restored.
Deleting is for good, and takes all judgments with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from sqlalchemy import ColumnElement, RowMapping, Table, delete, exists, or_, select, update

from firstpage.core import DataError
from firstpage.labeling.app.store import adjudication, audit, texts
from firstpage.labeling.app.store import projects as project_rows
from firstpage.labeling.app.store.connect import Store, Tx
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.tables import (
    documents,
    events,
    gold_questions,
    images,
    metadata,
    projects,
    queries,
    tasks,
)
from firstpage.labeling.planning.tasks import format_names

Action = Literal["archive", "restore", "delete"]
MIN_DOCUMENTS = 2  # of a query, to have a question


def archive_project(tx: Tx, project: Project, by: Person | None) -> Project:
    """Close and archive a project."""
    values = {"archived": tx.now, "state": "draft" if project.state == "draft" else "closed"}
    tx.run(update(projects).where(projects.c.id == project.id).values(**values))
    audit.note(tx, "project archived", by, project)
    return project_rows.get(tx, project.id)


def restore_project(tx: Tx, project: Project, by: Person | None) -> Project:
    """Restore an archived project; it is closed until a lead opens it."""
    tx.run(update(projects).where(projects.c.id == project.id).values(archived=None))
    audit.note(tx, "project restored", by, project)
    return project_rows.get(tx, project.id)


def delete_project(store: Store, project: Project, by: Person | None) -> None:
    """Delete an archived project with everything that belongs to it, but no account.

    Every query is deleted in a transaction of its own, so that other projects can write.
    """
    if project.archived is None:
        raise DataError(f"archive the project {project.slug!r} before you delete it.")
    with store.read() as tx:
        ids = tx.column(select(queries.c.id).where(queries.c.project == project.id))
    for query in ids:
        with store.write() as tx:
            _delete(tx, queries, queries.c.id == query)
    with store.write() as tx:
        _delete(tx, projects, projects.c.id == project.id)
        _delete_unused_images(tx)
        audit.note(tx, "project deleted", by, slug=project.slug, queries=len(ids))


def change_queries(
    store: Store, project: Project, keys: Sequence[str], action: Action, by: Person | None
) -> None:
    """Archive, restore or delete queries; only archived ones can be deleted."""
    if action == "delete":
        delete_queries(store, project, keys, by)
        return
    with store.write() as tx:
        archive_queries(tx, project, keys, by, archived=action == "archive")


def archive_queries(
    tx: Tx, project: Project, keys: Sequence[str], by: Person | None, archived: bool = True
) -> None:
    """Hide queries and their tasks, or show them again; started work stays in the log."""
    rows = _queries(tx, project, keys)
    ids = [row["id"] for row in rows if (row["archived"] is None) == archived]
    if ids:
        time = tx.now if archived else None
        tx.run(update(queries).where(queries.c.id.in_(ids)).values(archived=time))
        action = "queries archived" if archived else "queries restored"
        audit.note(tx, action, by, project, queries=list(keys))


def delete_queries(
    store: Store, project: Project, keys: Sequence[str], by: Person | None
) -> dict[str, int]:
    """Delete archived queries; return how many documents and events went with them."""
    with store.read() as tx:
        rows = _queries(tx, project, keys)
        open_keys = [row["key"] for row in rows if row["archived"] is None]
    if open_keys:
        raise DataError(f"archive the query {open_keys[0]!r} before you delete it.")
    removed = {"documents": 0, "events": 0}
    for row in rows:
        with store.write() as tx:
            removed["documents"] += tx.count(documents, documents.c.query == row["id"])
            removed["events"] += _answers(tx, row["id"])
            _delete(tx, queries, queries.c.id == row["id"])
    with store.write() as tx:
        _delete_unused_images(tx)
        audit.note(tx, "queries deleted", by, project, queries=list(keys), **removed)
    return removed


def change_documents(
    tx: Tx, project: Project, query: str, keys: Sequence[str], action: Action, by: Person | None
) -> None:
    """Archive, restore or delete documents of a query that has no answer and no verdict yet."""
    row, rows = _changeable_documents(tx, project, query, keys)
    shown = [document["key"] for document in rows if document["archived"] is None]
    count = len(texts.documents_of(tx, row["id"]))
    ids = documents.c.id.in_([document["id"] for document in rows])
    if action == "delete":
        if shown:
            raise DataError(f"archive the document {shown[0]!r} before you delete it.")
        _delete(tx, documents, ids)
        _delete_unused_images(tx)
    elif action == "restore":
        count += len(rows) - len(shown)
        project_rows.check_size(query, count, project.setting, project.tools)
        tx.run(update(documents).where(ids).values(archived=None))
    else:
        remaining = count - len(shown)
        if remaining < MIN_DOCUMENTS:
            raise DataError(
                f"query {query!r} would have {remaining} documents, and needs {MIN_DOCUMENTS}; "
                "archive the query instead."
            )
        tx.run(update(documents).where(ids).values(archived=tx.now))
    audit.note(tx, f"documents {action}d", by, project, query=row["key"], documents=list(keys))


def document_change_problem(tx: Tx, query: RowMapping) -> str | None:
    """Return why the documents of a query cannot change any more; None if they can."""
    answers = _answers(tx, query["id"])
    if answers:
        return (
            f"the documents of query {query['key']!r} cannot change any more: {answers:,} answers "
            "are based on them; archive the query, or settle that a document is bad (Adjudicate)."
        )
    verdicts = adjudication.active_count(tx, query["id"])
    if verdicts:
        return (
            f"the documents of query {query['key']!r} cannot change: verdicts ({verdicts:,}) are "
            "based on them; undo these first (Adjudicate), or archive the query."
        )
    return None


def archived_documents(tx: Tx, query: int) -> Sequence[RowMapping]:
    """Return the archived documents of a query, without their bodies."""
    columns = documents.c.id, documents.c.key, documents.c.title, documents.c.archived
    rows = select(*columns).where(documents.c.query == query, documents.c.archived.is_not(None))
    return tx.all(rows.order_by(documents.c.position))


def _queries(tx: Tx, project: Project, keys: Sequence[str]) -> list[RowMapping]:
    rows = {row["key"]: row for row in texts.of_project(tx, project.id, archived=True)}
    unknown = [key for key in keys if key not in rows]
    if unknown:
        raise DataError(
            f"the project {project.slug!r} has no query {unknown[0]!r} (it has: "
            f"{format_names(map(repr, rows))})."
        )
    return [rows[key] for key in dict.fromkeys(keys)]


def _changeable_documents(
    tx: Tx, project: Project, query: str, keys: Sequence[str]
) -> tuple[RowMapping, list[RowMapping]]:
    """Return a query and these of its documents; raise if they cannot change."""
    (row,) = _queries(tx, project, [query])
    tx.all(select(tasks.c.id).where(tasks.c.query == row["id"]).with_for_update())
    problem = document_change_problem(tx, row)
    if problem:
        raise DataError(problem)
    named = documents.c.query == row["id"], documents.c.key.in_(list(keys))
    columns = documents.c.id, documents.c.key, documents.c.archived
    rows = {r["key"]: r for r in tx.all(select(*columns).where(*named))}
    for key in keys:
        if key not in rows:
            raise DataError(f"query {query!r} has no document {key!r}.")
        gold = select(gold_questions.c.id).where(
            gold_questions.c.query == row["id"],
            or_(gold_questions.c.left == key, gold_questions.c.right == key),
        )
        if tx.value(gold.limit(1)) is not None:
            raise DataError(f"a known answer of query {query!r} is about the document {key!r}.")
    return row, list(rows.values())


def _answers(tx: Tx, query: int) -> int:
    """Return the number of events in the logs of a query."""
    return tx.count(events.join(tasks, tasks.c.id == events.c.task), tasks.c.query == query)


def _delete(tx: Tx, table: Table, condition: ColumnElement[bool]) -> None:
    """Delete rows, and before them all rows of other tables that refer to them."""
    for other, column in _references(table):
        ids = select(table.c.id).where(condition)
        _delete(tx, other, column.in_(ids))
    tx.run(delete(table).where(condition))


def _references(table: Table) -> Iterable[tuple[Table, ColumnElement[int]]]:
    """Yield the tables, and their columns, that refer to the ids of a table."""
    for other in reversed(metadata.sorted_tables):
        for key in other.foreign_keys:
            if key.column.table is table:
                yield other, key.parent


def _delete_unused_images(tx: Tx) -> None:
    used = exists().where(documents.c.image == images.c.id)
    tx.run(delete(images).where(~used))
