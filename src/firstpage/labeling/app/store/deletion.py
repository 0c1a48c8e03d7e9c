"""Deletion of a person's data: the account always, the judgments by choice."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import delete, select, update

from firstpage.labeling.app.store import (
    assigning,
    attempts,
    audit,
    logins,
    projects,
    tokens,
    webhooks,
)
from firstpage.labeling.app.store import tasks as task_rows
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.tables import (
    adjudications,
    events,
    invitations,
    memberships,
    people,
    spans,
    tasks,
    training_answers,
)
from firstpage.labeling.app.store.tables import audit as audit_table
from firstpage.labeling.app.store.tasks import TO_DO, TaskRow

Judgments = Literal["anonymize", "remove"]
PERSONAL = ("reason", "address", "comment")  # details of the audit log


def forget(tx: Tx, person: Person, judgments: Judgments, by: Person) -> dict[str, int]:
    """Delete a person's data; return how many tasks and judgments were removed or anonymized.

    Anonymized judgments stay with an account without name, login and password, so that agreement
    and truth do not change.  Comments, and the reasons of verdicts,
    are personal and always deleted.  Queries that are no longer
    covered are reassigned.
    """
    uncovered = _projects_to_reassign(tx, person, judgments)
    ended_tasks = _tasks_to_do(tx, person)
    own_tasks = select(tasks.c.id).where(tasks.c.person == person.id)
    count = {
        "tasks": len(tx.all(own_tasks)),
        "judgments": len(tx.all(select(events.c.id).where(events.c.task.in_(own_tasks)))),
    }
    logins.end_all(tx, person.id)
    tokens.revoke_all(tx, person.id)
    tx.run(delete(training_answers).where(training_answers.c.person == person.id))
    if judgments == "remove":
        _remove(tx, person)
    else:
        tx.run(update(events).where(events.c.person == person.id).values(comment=None))
        tx.run(update(tasks).where(tasks.c.person == person.id).values(reason=None))
    tx.run(update(adjudications).where(adjudications.c.person == person.id).values(reason=None))
    _anonymize(tx, person)
    for project in projects.projects_of(tx, person.id):
        details = {"account": person.id, "judgments": judgments, "count": count}
        audit.note(tx, "data deleted", by, project, **details)
    present = memberships.c.departed_at.is_(None) & (memberships.c.person == person.id)
    tx.run(update(memberships).where(present).values(departed_at=tx.now))
    for project in uncovered:
        assigning.reassign_uncovered(tx, projects.get(tx, project), person, by)
    webhooks.queries_finished(tx, ended_tasks)
    return count


def _tasks_to_do(tx: Tx, person: Person) -> list[TaskRow]:
    """Return the open and started tasks of a person in all projects."""
    return [
        row
        for project in sorted(projects.projects_of(tx, person.id))
        for row in task_rows.of_person(tx, projects.get(tx, project), person.id)
        if row.state in TO_DO
    ]


def _projects_to_reassign(tx: Tx, person: Person, judgments: Judgments) -> list[int]:
    """Return the projects in which a query loses its assessor when this person leaves."""
    rows = select(tasks.c.project).where(tasks.c.person == person.id).distinct()
    if judgments == "anonymize":
        rows = rows.where(tasks.c.state.in_(TO_DO))
    return sorted(tx.column(rows))


def _remove(tx: Tx, person: Person) -> None:
    own_tasks = select(tasks.c.id).where(tasks.c.person == person.id)
    tx.run(delete(events).where(events.c.task.in_(own_tasks)))
    tx.run(delete(spans).where(spans.c.task.in_(own_tasks)))
    tx.run(delete(tasks).where(tasks.c.person == person.id))


def _anonymize(tx: Tx, person: Person) -> None:
    placeholder = f"deleted-{person.id}"
    tx.run(
        update(people)
        .where(people.c.id == person.id)
        .values(
            login=placeholder, name=placeholder, password_hash=None, admin=False, deleted=tx.now
        )
    )
    tx.run(
        update(invitations)
        .where(invitations.c.person == person.id)
        .values(used_at=tx.now, used_by=None)
    )
    attempts.forget(tx, person.login)
    _redact_audit(tx, person)


def _redact_audit(tx: Tx, person: Person) -> None:
    """Remove a person's words and addresses from the audit log; the actions stay."""
    own_rows = audit_table.c.person == person.id
    addresses = audit_table.c.action.in_(("logged in", "login failed", "signed in by proxy"))
    tx.run(update(audit_table).where(own_rows, addresses).values(details={}))
    for row in tx.all(select(audit_table.c.id, audit_table.c.details).where(own_rows)):
        details = {k: v for k, v in row["details"].items() if k not in PERSONAL}
        if details != row["details"]:
            tx.run(update(audit_table).where(audit_table.c.id == row["id"]).values(details=details))
