"""Forget a person: the account always, the judgments by choice."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import delete, select, update

from firstpage.web.store import assigning, attempts, audit, logins, projects
from firstpage.web.store import projects as project_rows
from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person
from firstpage.web.store.tables import audit as audit_table
from firstpage.web.store.tables import (
    events,
    invitations,
    memberships,
    people,
    spans,
    tasks,
    trained,
)
from firstpage.web.store.tasks import TO_DO

Judgments = Literal["anonymize", "remove"]
PERSONAL = ("reason", "address", "comment")  # words of a person, and where they were


def forget(tx: Tx, person: Person, judgments: Judgments, by: Person) -> dict[str, int]:
    """Delete a person's data; how many tasks and judgments went or lost their name.

    Anonymized judgments stay with an account that has no name, login or password any more, so
    that agreement and truth stay what they were.  Comments are personal and go in any case.
    Work that nobody covers any more goes to the others.
    """
    worked_in = _projects_to_pass_on(tx, person, judgments)
    mine = select(tasks.c.id).where(tasks.c.person == person.id)
    count = {
        "tasks": len(tx.all(mine)),
        "judgments": len(tx.all(select(events.c.id).where(events.c.task.in_(mine)))),
    }
    logins.end_all(tx, person.id)
    tx.run(delete(trained).where(trained.c.person == person.id))
    if judgments == "remove":
        _remove(tx, person)
    else:
        tx.run(update(events).where(events.c.person == person.id).values(comment=None))
        tx.run(update(tasks).where(tasks.c.person == person.id).values(reason=None))
    _unname(tx, person)
    for project in projects.projects_of(tx, person.id):
        audit.note(
            tx, "data deleted", person=by.id, project=project, who=person.id,
            judgments=judgments, **{"count": count},
        )  # fmt: skip
    present = memberships.c.departed_at.is_(None) & (memberships.c.person == person.id)
    tx.run(update(memberships).where(present).values(departed_at=tx.now))
    for project in worked_in:
        assigning.pass_on(tx, project_rows.get(tx, project), person, by)
    return count


def _projects_to_pass_on(tx: Tx, person: Person, judgments: Judgments) -> list[int]:
    """Return the projects in which a query loses its assessor when this person goes."""
    found = select(tasks.c.project).where(tasks.c.person == person.id).distinct()
    if judgments == "anonymize":
        found = found.where(tasks.c.state.in_(TO_DO))
    return sorted(row["project"] for row in tx.all(found))


def _remove(tx: Tx, person: Person) -> None:
    mine = select(tasks.c.id).where(tasks.c.person == person.id)
    tx.run(delete(events).where(events.c.task.in_(mine)))
    tx.run(delete(spans).where(spans.c.task.in_(mine)))
    tx.run(delete(tasks).where(tasks.c.person == person.id))


def _unname(tx: Tx, person: Person) -> None:
    nobody = f"deleted-{person.id}"
    tx.run(
        update(people).where(people.c.id == person.id)
        .values(login=nobody, name=nobody, password_hash=None, admin=False, deleted=tx.now)
    )  # fmt: skip
    tx.run(
        update(invitations).where(invitations.c.person == person.id)
        .values(used_at=tx.now, used_by=None)
    )  # fmt: skip
    attempts.forget(tx, person.login)
    _blot(tx, person)


def _blot(tx: Tx, person: Person) -> None:
    """Take out of the audit what somebody wrote and where they came from; what was done stays."""
    mine = audit_table.c.person == person.id
    addresses = audit_table.c.action.in_(("logged in", "login failed"))
    tx.run(update(audit_table).where(mine, addresses).values(what={}))
    for row in tx.all(select(audit_table.c.id, audit_table.c.what).where(mine)):
        what = {k: v for k, v in row["what"].items() if k not in PERSONAL}
        if what != row["what"]:
            tx.run(update(audit_table).where(audit_table.c.id == row["id"]).values(what=what))
