"""Links that are handed out: to join a project, to become the first lead, to set a password.

A link works once, for some days, and only while whoever made it could still make it: a lead who
left takes their links along.  The database stores only a digest of it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, Select, or_, select, update

from firstpage.errors import DataError
from firstpage.web.store import audit, logins, people, projects
from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.tables import invitations, memberships
from firstpage.web.store.tables import people as people_table
from firstpage.web.store.tables import projects as project_table

DAYS, RESET_DAYS = 14, 2
MOST_DAYS = 365
MAX_LISTED = 500
OVER = "this link was used already, or its time is over; ask for another."
NOUNS = {"join": "invitation", "reset": "reset link"}

MAKER, USER = people_table.alias("maker"), people_table.alias("user")
LINKS: Select[Any] = (
    select(
        invitations, project_table.c.title, project_table.c.slug,
        people_table.c.login, people_table.c.name,
        MAKER.c.name.label("maker"), USER.c.name.label("user"),
    )
    .outerjoin(project_table, project_table.c.id == invitations.c.project)
    .outerjoin(people_table, people_table.c.id == invitations.c.person)
    .outerjoin(MAKER, MAKER.c.id == invitations.c.made_by)
    .outerjoin(USER, USER.c.id == invitations.c.used_by)
)  # fmt: skip


@dataclass(frozen=True)
class Invitation:
    """What a link offers; without a project, the place of the first lead.

    `person`, `login`: whose password a reset link sets, or for whom alone an invitation is.
    """

    id: int
    kind: str  # join or reset
    role: str | None
    project: int | None
    title: str
    person: int | None
    login: str | None
    expires: str


@dataclass(frozen=True)
class Link:
    """A new link: its secret is told once and stored nowhere."""

    id: int
    path: str
    token: str
    expires: str


@dataclass(frozen=True)
class Listed:
    """A link in a list, without its secret.  `open`: it still works."""

    id: int
    kind: str
    role: str | None
    project: str | None  # its slug
    login: str | None  # for this account alone
    made_by: str | None  # names; a link of the server's shell has no maker
    used_by: str | None
    created: str
    expires: str
    used_at: str | None
    open: bool


def invite(
    tx: Tx, project: Project | None, role: str, by: Person | None, days: float = DAYS,
    whom: Person | None = None,
) -> Link:  # fmt: skip
    """Make a link to join as lead or assessor, for `whom` alone where they are named.

    Without a project it makes the first lead, and older links of that kind end.
    """
    if role not in projects.ROLES:
        raise DataError(f"a role is one of {', '.join(projects.ROLES)}; got {role!r}.")
    if project is None:
        first = (invitations.c.kind == "join") & invitations.c.project.is_(None)
        for row in tx.all(LINKS.where(first, invitations.c.used_at.is_(None))):
            _end(tx, row, "ended", by)
    return _make(
        tx, "join", by, days, project=project.id if project else None, role=role,
        person=whom.id if whom else None,
    )  # fmt: skip


def reset_link(tx: Tx, person: Person, by: Person | None, days: float = RESET_DAYS) -> Link:
    """Make a link to set a new password; older ones of the same person end."""
    theirs = (invitations.c.kind == "reset") & (invitations.c.person == person.id)
    for row in tx.all(LINKS.where(theirs, invitations.c.used_at.is_(None))):
        _end(tx, row, "ended", by)
    return _make(tx, "reset", by, days, person=person.id)


def end_all(tx: Tx) -> int:
    """End every link that was not used; return how many there were."""
    rows = tx.all(LINKS.where(invitations.c.used_at.is_(None)))
    for row in rows:
        _end(tx, row, "ended", None)
    return len(rows)


def look(tx: Tx, token: str, kind: str) -> Invitation:
    """Return what a link offers, if it still does."""
    row = tx.first(
        LINKS.where(
            invitations.c.token_hash == logins.token_hash(token), invitations.c.kind == kind
        )
    )
    if row is None or not _works(tx, row):
        raise DataError(OVER)
    return Invitation(
        row["id"], kind, row["role"], row["project"], row["title"] or "Firstpage", row["person"],
        row["login"], row["expires"],
    )  # fmt: skip


def offered(tx: Tx, token: str, person: Person | None) -> Invitation:
    """Return an invitation that `person`, or somebody without an account (None), may accept."""
    offer = look(tx, token, "join")
    if offer.person is not None and (person is None or person.id != offer.person):
        raise DataError(f"this invitation is for the account {offer.login!r}; sign in to it first.")
    return offer


def use(tx: Tx, offer: Invitation, person: Person) -> None:
    """Use up a link: of two who come at the same time, one is refused."""
    free = (invitations.c.id == offer.id) & invitations.c.used_at.is_(None)
    if not tx.run(update(invitations).where(free).values(used_by=person.id, used_at=tx.now)):
        raise DataError(OVER)
    audit.note(
        tx, f"{NOUNS[offer.kind]} used", person=person.id, project=offer.project, id=offer.id
    )


def join(tx: Tx, offer: Invitation, person: Person) -> Project | None:
    """Take up an invitation; return the project, if it was for one."""
    use(tx, offer, person)
    if offer.project is None:
        people.make_admin(tx, person)
        return None
    project = projects.get(tx, offer.project)
    projects.join(tx, project, person, offer.role or "assessor")
    return project


def of_all(tx: Tx) -> list[Listed]:
    """Return all links, those not used first."""
    return [_listed(tx, row) for row in _newest(tx, LINKS)]


def of_project(tx: Tx, project: Project, by: Person) -> list[Listed]:
    """Return a project's invitations, and reset links of its people whom `by` may manage."""
    return [
        _listed(tx, row)
        for row in _newest(tx, LINKS.where(_belongs(project)))
        if _seen(tx, row, by)
    ]


def revoke(tx: Tx, number: int, by: Person, project: Project | None = None) -> bool:
    """Take back a link that was not used; return False where there is none.

    With a project, one that `of_project` lists.
    """
    found = LINKS.where(invitations.c.id == number, invitations.c.used_at.is_(None))
    row = tx.first(found if project is None else found.where(_belongs(project)))
    if row is None or not _seen(tx, row, by):
        return False
    _end(tx, row, "revoked", by)
    return True


def _make(tx: Tx, kind: str, by: Person | None, days: float, **row: Any) -> Link:
    if not 0 < days <= MOST_DAYS:
        raise DataError(f"a link works up to {MOST_DAYS} days; got {days}.")
    token = secrets.token_urlsafe(32)
    expires = tx.later(days=days)
    number = tx.add(
        invitations, token_hash=logins.token_hash(token), kind=kind, created=tx.now,
        expires=expires, made_by=by.id if by else None, **row,
    )  # fmt: skip
    what = {"id": number, "role": row.get("role"), "whose": row.get("person")}
    audit.note(
        tx, f"{NOUNS[kind]} made", person=by.id if by else None, project=row.get("project"),
        **{name: value for name, value in what.items() if value is not None},
    )  # fmt: skip
    page = "invitation" if kind == "join" else "reset"
    return Link(number, f"/{page}/{token}", token, expires)


def _end(tx: Tx, row: RowMapping, how: str, by: Person | None) -> None:
    """End an unused link.  Its row stays, used by nobody, so that no other link gets its number."""
    tx.run(update(invitations).where(invitations.c.id == row["id"]).values(used_at=tx.now))
    audit.note(
        tx, f"{NOUNS[row['kind']]} {how}", person=by.id if by else None, project=row["project"],
        id=row["id"], **({} if row["person"] is None else {"whose": row["person"]}),
    )  # fmt: skip


def _works(tx: Tx, row: RowMapping) -> bool:
    """Is a link unused, in its time, and still its maker's to give?"""
    if row["used_at"] is not None or row["expires"] <= tx.now:
        return False
    if row["kind"] == "join" and row["project"] is None:
        return not people.an_admin(tx)
    if row["made_by"] is None:  # by the server's shell
        return True
    maker = people.get(tx, row["made_by"])
    if maker is None or maker.admin:
        return maker is not None
    if row["kind"] == "join":
        return row["project"] in projects.projects_of(tx, maker.id, "lead")
    whom = people.get(tx, row["person"])
    return whom is not None and projects.may_manage(tx, maker, whom)


def _belongs(project: Project) -> Any:
    members = select(memberships.c.person).where(memberships.c.project == project.id)
    reset = (invitations.c.kind == "reset") & invitations.c.person.in_(members)
    return or_(invitations.c.project == project.id, reset)


def _seen(tx: Tx, row: RowMapping, by: Person) -> bool:
    """Is a link theirs to see and to revoke?"""
    if by.admin:
        return True
    if row["kind"] == "join":
        return row["project"] in projects.projects_of(tx, by.id, "lead")
    whom = people.get(tx, row["person"])
    return whom is not None and projects.may_manage(tx, by, whom)


def _newest(tx: Tx, found: Select[Any]) -> list[RowMapping]:
    """Return rows, those that were not used first: no open link is ever cut off unseen.

    Links that were ended without being used are not listed; the audit tells of them.
    """
    order = (invitations.c.used_at.is_not(None), invitations.c.id.desc())
    known = or_(invitations.c.used_at.is_(None), invitations.c.used_by.is_not(None))
    return list(tx.all(found.where(known).order_by(*order).limit(MAX_LISTED)))


def _listed(tx: Tx, row: RowMapping) -> Listed:
    return Listed(
        row["id"], row["kind"], row["role"], row["slug"], row["login"], row["maker"], row["user"],
        row["created"], row["expires"], row["used_at"], _works(tx, row),
    )  # fmt: skip
