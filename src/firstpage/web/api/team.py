"""Who belongs to a project: members, invitations, changes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from firstpage.web.admission import AdmissionRoute
from firstpage.web.api import bodies
from firstpage.web.security import Lead, csrf_header, store_of
from firstpage.web.store import assigning, audit, invitations, people, projects
from firstpage.web.store.logins import Login
from firstpage.web.store.sessions import NotThere

router = APIRouter(tags=["team"], prefix="/projects/{slug}", route_class=AdmissionRoute)
Changing = Annotated[Login, Depends(csrf_header)]


@router.get("/people")
def members(request: Request, member: Lead) -> dict[str, Any]:
    """Everyone who is or was in the project."""
    with store_of(request).read() as tx:
        return {"people": [dict(row) for row in projects.members(tx, member.project)]}


@router.post("/people", status_code=201)
def add_member(
    request: Request, member: Lead, body: bodies.MemberBody, login: Changing
) -> dict[str, Any]:
    """Add somebody by login; a new account comes with a link to set its password.

    An account of others is not added but invited: `joined` is false, and its owner accepts `link`.
    """
    with store_of(request).write() as tx:
        person, by = people.by_login(tx, body.login), login.person
        if person is not None and not projects.may_add(tx, by, person, member.project):
            link = invitations.invite(tx, member.project, body.role, by, whom=person)
            return {"id": None, "joined": False, "link": asdict(link)}
        known = person or people.create(tx, body.login, body.name)
        projects.join(tx, member.project, known, body.role, by=by)
        new = invitations.reset_link(tx, known, by) if person is None else None
    return {"id": known.id, "joined": True, "link": asdict(new) if new else None}


@router.delete("/people/{person}", status_code=204)
def remove_member(request: Request, member: Lead, person: bodies.Id, login: Changing) -> None:
    """Somebody goes; finished work stays, open and begun queries go to the others."""
    with store_of(request).write() as tx:
        whom = people.get(tx, person)
        if whom is None or not projects.leave(tx, member.project, whom, login.person):
            raise NotThere("there is no such person in this project.")
        assigning.leave_project(tx, member.project, whom, login.person)


@router.get("/invitations")
def links(request: Request, member: Lead) -> dict[str, Any]:
    """Invitations, and links to set a password, without their secrets; `open`: it still works."""
    with store_of(request).read() as tx:
        found = invitations.of_project(tx, member.project, member.person)
    return {"invitations": [asdict(link) for link in found]}


@router.post("/invitations", status_code=201)
def invite(
    request: Request, member: Lead, body: bodies.InviteBody, login: Changing
) -> dict[str, Any]:
    """A link to join; it is told once."""
    with store_of(request).write() as tx:
        made = invitations.invite(tx, member.project, body.role, login.person, body.days)
    return asdict(made)


@router.delete("/invitations/{invitation}", status_code=204)
def revoke(request: Request, member: Lead, invitation: bodies.Id, login: Changing) -> None:
    """Take back a link that nobody used."""
    with store_of(request).write() as tx:
        if not invitations.revoke(tx, invitation, login.person, member.project):
            raise NotThere("there is no such open link.")


@router.get("/audit")
def changes(
    request: Request, member: Lead,
    before: bodies.Before = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> dict[str, Any]:  # fmt: skip
    """Who changed what, newest first."""
    with store_of(request).read() as tx:
        return {"audit": audit.changes(tx, member.project.id, limit, before)}
