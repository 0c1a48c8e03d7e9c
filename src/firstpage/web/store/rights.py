"""Who may manage whose account, and add it to a project."""

from __future__ import annotations

from sqlalchemy import select

from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.tables import memberships


def may_manage(tx: Tx, by: Person, whom: Person) -> bool:
    """May `by` reset the password or delete the data of `whom`?

    An admin may.  A lead may for an assessor who leads nothing and whose projects, past and
    present, this lead leads all: otherwise leading one project would open the others.
    """
    if by.admin:
        return True
    if whom.admin or by.id == whom.id or projects_of(tx, whom.id, "lead"):
        return False
    theirs = projects_of(tx, whom.id)
    return bool(theirs) and theirs <= projects_of(tx, by.id, "lead")


def may_add(tx: Tx, by: Person, whom: Person, project: Project) -> bool:
    """May `by`, who leads the project, add `whom` without their consent?

    Those who are in it, and those whom `by` manages; others consent by accepting an invitation.
    """
    if by.id == whom.id or may_manage(tx, by, whom):
        return True
    return any(project.id in projects_of(tx, whom.id, role) for role in ("lead", "assessor"))


def projects_of(tx: Tx, person: int, role: str | None = None) -> set[int]:
    """Return the projects that somebody is or was in; with a role, where they have it now."""
    found = select(memberships.c.project).where(memberships.c.person == person)
    if role is not None:
        found = found.where(memberships.c.role == role, memberships.c.left.is_(None))
    return {row["project"] for row in tx.all(found)}
