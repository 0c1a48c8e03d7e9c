"""Webhooks: a message to another program when a query is finished.

The message is written in the transaction that finishes the query, and sent later by
`firstpage.labeling.app.webhooks`, so that no answer waits for another program.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import delete, select, update

from firstpage.core import DataError
from firstpage.labeling.app.store import audit, projects
from firstpage.labeling.app.store.connect import Tx, from_row
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.tables import deliveries, tasks, webhooks
from firstpage.labeling.app.store.tasks import TO_DO, TaskRow

MAX_URL = 2000  # characters
MAX_PENDING = 1000  # messages of a project; further ones are dropped, and the audit log says so
DELAYS = (30, 120, 600, 3600, 21_600)  # seconds before each further attempt
LEASE = 60  # seconds after which another process may take over a message
KEEP_DAYS = 30  # until a message that is done with is deleted


@dataclass(frozen=True)
class Webhook:
    """The address of a project's messages, and the secret that signs them."""

    project: int
    url: str
    secret: str
    created: str


@dataclass(frozen=True)
class Message:
    """A message that is due."""

    id: int
    key: str
    body: dict[str, Any]
    attempts: int
    url: str
    secret: str


def check_url(url: str) -> str:
    """Return the address of a webhook; raise if it is none."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise DataError("a webhook needs an address such as https://example.org/hook.")
    if parts.username is not None or parts.password is not None:
        raise DataError("the address of a webhook must not contain a password.")
    return url


def put(tx: Tx, project: Project, url: str, by: Person | None) -> Webhook:
    """Set the webhook of a project, with a new secret."""
    check_url(url)
    secret = secrets.token_urlsafe(32)
    tx.run(delete(webhooks).where(webhooks.c.project == project.id))
    tx.add(webhooks, project=project.id, url=url, secret=secret, created=tx.now)
    audit.note(tx, "webhook set", by, project, url=url)
    return Webhook(project.id, url, secret, tx.now)


def remove(tx: Tx, project: Project, by: Person | None) -> bool:
    """Remove the webhook of a project, with its messages; return whether there was one."""
    tx.run(delete(deliveries).where(deliveries.c.project == project.id))
    removed = tx.run(delete(webhooks).where(webhooks.c.project == project.id)) > 0
    if removed:
        audit.note(tx, "webhook removed", by, project)
    return removed


def find(tx: Tx, project: int) -> Webhook | None:
    """Return the webhook of a project; None if it has none."""
    row = tx.first(select(webhooks).where(webhooks.c.project == project))
    return None if row is None else Webhook(**row)


def recent(tx: Tx, project: int, limit: int = 20) -> list[dict[str, Any]]:
    """Return the last messages of a project, newest first, with what became of them."""
    rows = (
        select(deliveries)
        .where(deliveries.c.project == project)
        .order_by(deliveries.c.id.desc())
        .limit(limit)
    )
    return [
        {
            "id": row["key"],
            "query": row["body"].get("query"),
            "created": row["created"],
            "attempts": row["attempts"],
            "delivered": row["delivered"],
            "next": row["due"],
            "error": row["error"],
        }
        for row in tx.all(rows)
    ]


def query_finished(tx: Tx, task: TaskRow) -> None:
    """Write a message if the task, which ends in this transaction, was the last of its query.

    A task ends when it is done or returned, or its assessor leaves; a query without a finished task
    is not finished.  The lock on the webhook lets concurrent transactions see each other's results.
    A message has a key of the results, so that the same ones are sent once.
    """
    hook = select(webhooks.c.project).where(webhooks.c.project == task.project).with_for_update()
    if tx.value(hook) is None:
        return
    same_query = (tasks.c.query == task.query) & (tasks.c.tool == task.tool)
    rows = tx.all(select(tasks).where(same_query).order_by(tasks.c.id))
    present = projects.present(tx, task.project, "assessor")
    if any(row["state"] in TO_DO and row["person"] in present for row in rows):
        return
    done = [row for row in rows if row["state"] == "done"]
    if not done:
        return
    results = json.dumps([[row["id"], row["result"]] for row in done], sort_keys=True)
    key = hashlib.sha256(f"{task.query} {task.tool} {results}".encode()).hexdigest()
    body = {
        "event": "query.finished", "id": key, "project": task.slug, "query": task.query_key,
        "text": task.query_text, "tool": task.tool, "assessors": len(done),
        "judgments": sum(row["judgments"] for row in done), "finished": tx.now,
    }  # fmt: skip
    _enqueue(tx, task.project, key, body)


def queries_finished(tx: Tx, ended_tasks: Iterable[TaskRow]) -> None:
    """Write a message for every query whose last task is among these."""
    by_query = {(row.query, row.tool): row for row in ended_tasks}
    hooks = {project: find(tx, project) for project in {r.project for r in by_query.values()}}
    for row in by_query.values():
        if hooks[row.project] is not None:
            query_finished(tx, row)


def _enqueue(tx: Tx, project: int, key: str, body: dict[str, Any]) -> None:
    if tx.value(select(deliveries.c.id).where(deliveries.c.key == key)) is not None:
        return
    pending = (deliveries.c.project == project) & deliveries.c.due.is_not(None)
    if tx.count(deliveries, pending) >= MAX_PENDING:
        audit.note(tx, "webhook message dropped", project=project, query=body["query"])
        return
    tx.add(deliveries, project=project, key=key, body=body, attempts=0, created=tx.now, due=tx.now)


def any_due(tx: Tx) -> bool:
    """Return whether a message is due."""
    due = select(deliveries.c.id).where(deliveries.c.due <= tx.now).limit(1)
    return tx.value(due) is not None


def claim(tx: Tx) -> Message | None:
    """Return the next due message, which no other process takes while it is sent; None if none."""
    row = tx.first(
        select(deliveries, webhooks.c.url, webhooks.c.secret)
        .join(webhooks, webhooks.c.project == deliveries.c.project)
        .where(deliveries.c.due <= tx.now)
        .order_by(deliveries.c.due, deliveries.c.id)
        .limit(1)
        .with_for_update(of=deliveries, skip_locked=True)
    )
    if row is None:
        return None
    tx.run(
        update(deliveries)
        .where(deliveries.c.id == row["id"])
        .values(due=tx.later(seconds=LEASE), attempts=row["attempts"] + 1)
    )
    return from_row(Message, row, attempts=row["attempts"] + 1)


def finish(tx: Tx, message: Message, error: str | None) -> None:
    """Record what became of a message; after an error it is sent again later, or given up."""
    values: dict[str, Any] = {"due": None, "error": None if error is None else error[:300]}
    if error is None:
        values["delivered"] = tx.now
    elif message.attempts <= len(DELAYS):
        values["due"] = tx.later(seconds=DELAYS[message.attempts - 1])
    tx.run(update(deliveries).where(deliveries.c.id == message.id).values(**values))
    old = deliveries.c.due.is_(None) & (deliveries.c.created < tx.later(days=-KEEP_DAYS))
    tx.run(delete(deliveries).where(old))
