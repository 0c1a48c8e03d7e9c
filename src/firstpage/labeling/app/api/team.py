"""The team of a project: members, invitations, audit log."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.requests import Request

from firstpage.labeling.app.admission import LEAD, api_routes
from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.security import store_of
from firstpage.labeling.app.store import Member, assigning, audit, invitations, people, projects
from firstpage.labeling.app.store.sessions import NotFound

routes = api_routes("team", "/projects/{slug}", admit=LEAD)


@routes.get("/people")
def members(request: Request, member: Member) -> dict[str, Any]:
    """Return all present and former members of the project."""
    with store_of(request).read() as tx:
        return {"people": [dict(row) for row in projects.members(tx, member.project)]}


@routes.post("/people", status=201)
def add_member(request: Request, member: Member, body: bodies.MemberBody) -> dict[str, Any]:
    """Add a member by login; a new account comes with a link to set its password.

    An account that the lead does not manage is invited instead: `joined` is false, and its owner
    accepts `link`.
    """
    with store_of(request).write() as tx:
        person, by = people.by_login(tx, body.login), member.person
        if person is not None and not projects.may_add(tx, by, person, member.project):
            link = invitations.invite(tx, member.project, body.role, by, target=person)
            return {"id": None, "joined": False, "link": asdict(link)}
        added = person or people.create(tx, body.login, body.name)
        projects.join(tx, member.project, added, body.role, by=by)
        reset = invitations.reset_link(tx, added, by) if person is None else None
    return {"id": added.id, "joined": True, "link": asdict(reset) if reset else None}


@routes.delete("/people/{person}", status=204)
def remove_member(request: Request, member: Member, person: bodies.Id) -> None:
    """Remove a member; finished tasks stay, open and started ones are reassigned."""
    with store_of(request).write() as tx:
        target = people.get(tx, person)
        if target is None or not projects.leave(tx, member.project, target, member.person):
            raise NotFound("there is no such person in this project.")
        assigning.reassign_open_tasks(tx, member.project, target, member.person)


@routes.get("/invitations")
def links(request: Request, member: Member) -> dict[str, Any]:
    """Return invitations and password links without their tokens; `open` ones still work."""
    with store_of(request).read() as tx:
        rows = invitations.links_of_project(tx, member.project, member.person)
    return {"invitations": [asdict(link) for link in rows]}


@routes.post("/invitations", status=201)
def invite(request: Request, member: Member, body: bodies.InviteBody) -> dict[str, Any]:
    """Create a link to join; its token is returned only here."""
    with store_of(request).write() as tx:
        link = invitations.invite(tx, member.project, body.role, member.person, body.days)
    return asdict(link)


@routes.delete("/invitations/{invitation}", status=204)
def revoke(request: Request, member: Member, invitation: bodies.Id) -> None:
    """Revoke an unused link."""
    with store_of(request).write() as tx:
        if not invitations.revoke(tx, invitation, member.person, member.project):
            raise NotFound("there is no such open link.")


@routes.get("/audit")
def changes(
    request: Request, member: Member, before: bodies.Id | None = None, limit: bodies.Limit = 200
) -> dict[str, Any]:
    """Return the audit log of the project, newest first."""
    with store_of(request).read() as tx:
        return {"audit": audit.changes(tx, member.project.id, limit, before)}
