"""One-time links: to join a project, to become the first lead, or to set a password.

A link works once, for some days, and only while its creator could still create it: the links of a
lead who has left no longer work.  Using a link ends the others with the same offer.  The database
stores only a digest of the token.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, or_, select, true, update

from firstpage.core import DataError
from firstpage.labeling.app.store import audit, logins, people, projects
from firstpage.labeling.app.store.connect import Tx, from_row
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.tables import invitations, memberships
from firstpage.labeling.app.store.tables import people as people_table
from firstpage.labeling.app.store.tables import projects as project_table

DAYS, RESET_DAYS = 14, 2
MAX_DAYS = 365
MAX_LISTED = 500
EXPIRED = "this link was used already or has expired; ask for a new one."
NOUNS = {"join": "invitation", "reset": "reset link"}

MAKER, USER = people_table.alias("maker"), people_table.alias("user")
LINKS: Select[Any] = (
    select(
        invitations,
        project_table.c.title,
        project_table.c.slug,
        people_table.c.login,
        people_table.c.name,
        MAKER.c.name.label("maker"),
        USER.c.name.label("user"),
    )
    .outerjoin(project_table, project_table.c.id == invitations.c.project)
    .outerjoin(people_table, people_table.c.id == invitations.c.person)
    .outerjoin(MAKER, MAKER.c.id == invitations.c.created_by)
    .outerjoin(USER, USER.c.id == invitations.c.used_by)
)
FOR_FIRST_LEAD = (invitations.c.kind == "join") & invitations.c.project.is_(None)


@dataclass(frozen=True)
class Invitation:
    """The offer of a link; without a project, to become the first lead.

    `person` and `login` are the account whose password a reset link sets, or the only account that
    may accept the invitation.
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
    """A new link; its token is shown once and not stored."""

    id: int
    path: str
    token: str
    expires: str


@dataclass(frozen=True)
class LinkInfo:
    """A link in a list, without its token; `open` links still work."""

    id: int
    kind: str
    role: str | None
    project: str | None  # its slug
    login: str | None  # the only account that may use it
    created_by: str | None  # names; a link made on the command line has none
    used_by: str | None
    created: str
    expires: str
    used_at: str | None
    open: bool


def invite(
    tx: Tx,
    project: Project | None,
    role: str,
    by: Person | None,
    days: float = DAYS,
    target: Person | None = None,
) -> Link:
    """Create a link to join as lead or assessor, which only `target` can use if given.

    Without a project it is for the first lead.
    """
    if role not in projects.ROLES:
        raise DataError(f"a role must be one of {', '.join(projects.ROLES)}; got {role!r}.")
    ids = {"project": project.id if project else None, "person": target.id if target else None}
    return _make(tx, "join", by, days, role=role, **ids)


def reset_link(tx: Tx, person: Person, by: Person | None, days: float = RESET_DAYS) -> Link:
    """Create a link to set a new password; older ones of the same person end."""
    _end_unused(tx, _resets(person.id), by)
    return _make(tx, "reset", by, days, person=person.id)


def first_password_link(tx: Tx, person: Person) -> Link:
    """Create a link to set a first password; older ones work until one of them is used."""
    return _make(tx, "reset", None, DAYS, person=person.id)


def end_all(tx: Tx) -> int:
    """End every unused link; return how many there were."""
    return _end_unused(tx, true(), None)


def find_offer(tx: Tx, token: str, kind: str) -> Invitation:
    """Return the offer of a link; raise if it no longer works."""
    same_token = invitations.c.token_hash == logins.token_hash(token)
    row = tx.first(LINKS.where(same_token, invitations.c.kind == kind))
    if row is None or not _works(tx, row):
        raise DataError(EXPIRED)
    return from_row(Invitation, row, title=row["title"] or "Firstpage")


def acceptable_offer(tx: Tx, token: str, person: Person | None) -> Invitation:
    """Return an invitation if `person`, or somebody without an account (None), may accept it."""
    offer = find_offer(tx, token, "join")
    if offer.person is not None and (person is None or person.id != offer.person):
        raise DataError(f"this invitation is for the account {offer.login!r}; sign in to it first.")
    return offer


def use(tx: Tx, offer: Invitation, person: Person) -> None:
    """Use a link, and end the others with its offer; of two simultaneous uses one is refused."""
    unused = (invitations.c.id == offer.id) & invitations.c.used_at.is_(None)
    if not tx.run(update(invitations).where(unused).values(used_by=person.id, used_at=tx.now)):
        raise DataError(EXPIRED)
    if offer.kind == "reset":
        _end_unused(tx, _resets(offer.person), person)
    elif offer.project is None:
        _end_unused(tx, FOR_FIRST_LEAD, person)
    audit.note(tx, f"{NOUNS[offer.kind]} used", person, offer.project, id=offer.id)


def join(tx: Tx, offer: Invitation, person: Person) -> Project | None:
    """Accept an invitation; return its project, or None for the first lead."""
    use(tx, offer, person)
    if offer.project is None:
        people.make_admin(tx, person)
        return None
    project = projects.get(tx, offer.project)
    projects.join(tx, project, person, offer.role or "assessor")
    return project


def all_links(tx: Tx) -> list[LinkInfo]:
    """Return all links, the unused ones first."""
    return [_listed(tx, row) for row in _newest(tx, LINKS)]


def links_of_project(tx: Tx, project: Project, by: Person) -> list[LinkInfo]:
    """Return a project's invitations, and the reset links of members whom `by` may manage."""
    rows = _newest(tx, LINKS.where(_belongs(project)))
    return [_listed(tx, row) for row in rows if _visible(tx, row, by)]


def revoke(tx: Tx, number: int, by: Person, project: Project | None = None) -> bool:
    """Revoke an unused link; return whether there was one.

    With a project, only a link that `links_of_project` lists.
    """
    links = LINKS.where(invitations.c.id == number, invitations.c.used_at.is_(None))
    row = tx.first(links if project is None else links.where(_belongs(project)))
    if row is None or not _visible(tx, row, by):
        return False
    _end(tx, row, "revoked", by)
    return True


def _make(tx: Tx, kind: str, by: Person | None, days: float, **row: Any) -> Link:
    if not 0 < days <= MAX_DAYS:
        raise DataError(f"a link can be valid for up to {MAX_DAYS} days; got {days}.")
    token = secrets.token_urlsafe(32)
    expires = tx.later(days=days)
    number = tx.add(
        invitations,
        token_hash=logins.token_hash(token),
        kind=kind,
        created=tx.now,
        expires=expires,
        created_by=by.id if by else None,
        **row,
    )
    details = {"id": number, "role": row.get("role"), "account": row.get("person")}
    given = {name: value for name, value in details.items() if value is not None}
    audit.note(tx, f"{NOUNS[kind]} created", by, row.get("project"), **given)
    page = "invitation" if kind == "join" else "reset"
    return Link(number, f"/{page}/{token}", token, expires)


def _resets(person: int | None) -> ColumnElement[bool]:
    """Select the links that set the password of a person."""
    return (invitations.c.kind == "reset") & (invitations.c.person == person)


def _end_unused(tx: Tx, links: ColumnElement[bool], by: Person | None) -> int:
    """End those of these links that are unused; return how many there were."""
    rows = tx.all(LINKS.where(links, invitations.c.used_at.is_(None)))
    for row in rows:
        _end(tx, row, "ended", by)
    return len(rows)


def _end(tx: Tx, row: RowMapping, verb: str, by: Person | None) -> None:
    """End an unused link; its row stays, so that no other link gets its number."""
    tx.run(update(invitations).where(invitations.c.id == row["id"]).values(used_at=tx.now))
    account = {} if row["person"] is None else {"account": row["person"]}
    audit.note(tx, f"{NOUNS[row['kind']]} {verb}", by, row["project"], id=row["id"], **account)


def _works(tx: Tx, row: RowMapping) -> bool:
    """Return whether a link is unused, not expired, and could still be created by its creator."""
    if row["used_at"] is not None or row["expires"] <= tx.now:
        return False
    if row["kind"] == "join" and row["project"] is None:
        return not people.has_admin(tx)
    if row["created_by"] is None:  # made on the command line
        return True
    maker = people.get(tx, row["created_by"])
    if maker is None or maker.admin:
        return maker is not None
    if row["kind"] == "join":
        return row["project"] in projects.projects_of(tx, maker.id, "lead")
    target = people.get(tx, row["person"])
    return target is not None and projects.may_manage(tx, maker, target)


def _belongs(project: Project) -> Any:
    members = select(memberships.c.person).where(memberships.c.project == project.id)
    reset = (invitations.c.kind == "reset") & invitations.c.person.in_(members)
    return or_(invitations.c.project == project.id, reset)


def _visible(tx: Tx, row: RowMapping, by: Person) -> bool:
    """Return whether a person may see and revoke a link."""
    if by.admin:
        return True
    if row["kind"] == "join":
        return row["project"] in projects.projects_of(tx, by.id, "lead")
    target = people.get(tx, row["person"])
    return target is not None and projects.may_manage(tx, by, target)


def _newest(tx: Tx, links: Select[Any]) -> list[RowMapping]:
    """Return rows, the unused ones first, so that the limit never hides an open link.

    Links that ended unused are not listed; the audit log has them.
    """
    order = (invitations.c.used_at.is_not(None), invitations.c.id.desc())
    listed = or_(invitations.c.used_at.is_(None), invitations.c.used_by.is_not(None))
    return list(tx.all(links.where(listed).order_by(*order).limit(MAX_LISTED)))


def _listed(tx: Tx, row: RowMapping) -> LinkInfo:
    names = {"project": row["slug"], "created_by": row["maker"], "used_by": row["user"]}
    return from_row(LinkInfo, row, open=_works(tx, row), **names)
