"""Links that a lead hands out: to join a project, or to set a new password.

A link works once, for some days; the database keeps only a digest of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import RowMapping, delete, select, update

from firstpage.errors import DataError
from firstpage.web.store import audit, logins, people, projects
from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.tables import invitations
from firstpage.web.store.tables import projects as project_table

DAYS = 14
MOST_DAYS = 365
OVER = "this link was used already, or its time is over; ask for another."


@dataclass(frozen=True)
class Invitation:
    """What a link offers; without a project, the place of the first lead."""

    id: int
    kind: str  # join or reset
    role: str | None
    project: int | None
    title: str
    person: int | None
    expires: str


@dataclass(frozen=True)
class Link:
    """A new link: its secret is told once and kept nowhere."""

    id: int
    path: str
    token: str
    expires: str


def invite(
    tx: Tx, project: Project | None, role: str, by: Person | None, days: float = DAYS
) -> Link:
    """A link to join as lead or assessor; without a project, to become the first lead."""
    if role not in projects.ROLES:
        raise DataError(f"a role is one of {', '.join(projects.ROLES)}; got {role!r}.")
    place = None if project is None else project.id
    made = _make(tx, "join", by, days, project=place, role=role)
    audit.note(
        tx, "invitation made", person=by.id if by else None, project=place, role=role, id=made.id
    )
    return made


def reset_link(tx: Tx, person: Person, by: Person | None, days: float = 2) -> Link:
    """A link to set a new password; older ones of the same person end."""
    tx.run(
        delete(invitations).where(
            invitations.c.kind == "reset",
            invitations.c.person == person.id,
            invitations.c.used_at.is_(None),
        )
    )
    made = _make(tx, "reset", by, days, person=person.id)
    audit.note(tx, "reset link made", person=by.id if by else None, whose=person.id)
    return made


def look(tx: Tx, token: str, kind: str) -> Invitation:
    """What a link offers, if it still does."""
    row = tx.first(
        select(invitations, project_table.c.title)
        .outerjoin(project_table, project_table.c.id == invitations.c.project)
        .where(
            invitations.c.token_hash == logins.token_hash(token),
            invitations.c.kind == kind,
            invitations.c.used_at.is_(None),
            invitations.c.expires > tx.now,
        )
    )
    if row is None:
        raise DataError(OVER)
    return Invitation(
        row["id"], kind, row["role"], row["project"], row["title"] or "Firstpage", row["person"],
        row["expires"],
    )  # fmt: skip


def use(tx: Tx, offer: Invitation, person: Person) -> None:
    """Once: of two who come at the same time, one is refused."""
    free = (invitations.c.id == offer.id) & invitations.c.used_at.is_(None)
    if not tx.run(update(invitations).where(free).values(used_by=person.id, used_at=tx.now)):
        raise DataError(OVER)


def join(tx: Tx, offer: Invitation, person: Person) -> Project | None:
    """Take up an invitation; the project, if it was for one."""
    use(tx, offer, person)
    if offer.project is None:
        people.make_admin(tx, person)
        return None
    project = projects.get(tx, offer.project)
    projects.join(tx, project, person, offer.role or "assessor")
    return project


def of_project(tx: Tx, project: Project) -> Sequence[RowMapping]:
    """Its invitations, newest first, without their secrets."""
    columns = [invitations.c[n] for n in ("id", "role", "created", "expires", "used_by", "used_at")]
    return tx.all(
        select(*columns)
        .where(invitations.c.project == project.id, invitations.c.kind == "join")
        .order_by(invitations.c.id.desc())
        .limit(500)
    )


def revoke(tx: Tx, project: Project, number: int, by: Person) -> bool:
    """Take back one that was not used; False where there is none."""
    gone = tx.run(
        delete(invitations).where(
            invitations.c.id == number,
            invitations.c.project == project.id,
            invitations.c.used_at.is_(None),
        )
    )
    if gone:
        audit.note(tx, "invitation revoked", person=by.id, project=project.id, id=number)
    return gone > 0


def _make(tx: Tx, kind: str, by: Person | None, days: float, **row: object) -> Link:
    if not 0 < days <= MOST_DAYS:
        raise DataError(f"a link works up to {MOST_DAYS} days; got {days}.")
    token = secrets.token_urlsafe(32)
    expires = tx.later(days=days)
    number = tx.add(
        invitations, token_hash=logins.token_hash(token), kind=kind, created=tx.now,
        expires=expires, made_by=by.id if by else None, **row,
    )  # fmt: skip
    page = "invitation" if kind == "join" else "reset"
    return Link(number, f"/{page}/{token}", token, expires)
