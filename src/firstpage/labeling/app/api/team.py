"""The team of a project: members, invitations, audit log."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from firstpage.labeling.app.admission import AdmissionRoute
from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.security import Lead, csrf_header, store_of
from firstpage.labeling.app.store import assigning, audit, invitations, people, projects
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.sessions import NotFound

router = APIRouter(tags=["team"], prefix="/projects/{slug}", route_class=AdmissionRoute)
Changing = Annotated[Login, Depends(csrf_header)]


@router.get("/people")
def members(request: Request, member: Lead) -> dict[str, Any]:
    """Return all present and former members of the project."""
    with store_of(request).read() as tx:
        return {"people": [dict(row) for row in projects.members(tx, member.project)]}


@router.post("/people", status_code=201)
def add_member(
    request: Request, member: Lead, body: bodies.MemberBody, login: Changing
) -> dict[str, Any]:
    """Add a member by login; a new account comes with a link to set its password.

    An account that the lead does not manage is invited instead: `joined` is false, and its owner
    accepts `link`.
    """
    with store_of(request).write() as tx:
        person, by = people.by_login(tx, body.login), login.person
        if person is not None and not projects.may_add(tx, by, person, member.project):
            link = invitations.invite(tx, member.project, body.role, by, target=person)
            return {"id": None, "joined": False, "link": asdict(link)}
        added = person or people.create(tx, body.login, body.name)
        projects.join(tx, member.project, added, body.role, by=by)
        reset = invitations.reset_link(tx, added, by) if person is None else None
    return {"id": added.id, "joined": True, "link": asdict(reset) if reset else None}


@router.delete("/people/{person}", status_code=204)
def remove_member(request: Request, member: Lead, person: bodies.Id, login: Changing) -> None:
    """Remove a member; finished tasks stay, open and started ones are reassigned."""
    with store_of(request).write() as tx:
        target = people.get(tx, person)
        if target is None or not projects.leave(tx, member.project, target, login.person):
            raise NotFound("there is no such person in this project.")
        assigning.reassign_open_tasks(tx, member.project, target, login.person)


@router.get("/invitations")
def links(request: Request, member: Lead) -> dict[str, Any]:
    """Return invitations and password links without their tokens; `open` ones still work."""
    with store_of(request).read() as tx:
        rows = invitations.links_of_project(tx, member.project, member.person)
    return {"invitations": [asdict(link) for link in rows]}


@router.post("/invitations", status_code=201)
def invite(
    request: Request, member: Lead, body: bodies.InviteBody, login: Changing
) -> dict[str, Any]:
    """Create a link to join; its token is returned only here."""
    with store_of(request).write() as tx:
        link = invitations.invite(tx, member.project, body.role, login.person, body.days)
    return asdict(link)


@router.delete("/invitations/{invitation}", status_code=204)
def revoke(request: Request, member: Lead, invitation: bodies.Id, login: Changing) -> None:
    """Revoke an unused link."""
    with store_of(request).write() as tx:
        if not invitations.revoke(tx, invitation, login.person, member.project):
            raise NotFound("there is no such open link.")


@router.get("/audit")
def changes(
    request: Request,
    member: Lead,
    before: bodies.BeforeId = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> dict[str, Any]:
    """Return the audit log of the project, newest first."""
    with store_of(request).read() as tx:
        return {"audit": audit.changes(tx, member.project.id, limit, before)}
