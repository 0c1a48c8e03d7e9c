"""Pages of a project's people: invitations, removal, passwords, deletion of data."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from firstpage.labeling.app.api.analysis import Part
from firstpage.labeling.app.api.bodies import Id
from firstpage.labeling.app.pages.rendering import ADMIN, LEAD, field, page_routes, redirect, render
from firstpage.labeling.app.pages.setup import ready
from firstpage.labeling.app.security import service_of, store_of
from firstpage.labeling.app.store import (
    assigning,
    audit,
    deletion,
    invitations,
    people,
    projects,
    tasks,
)
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.invitations import Link
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Member, Project
from firstpage.labeling.strategies.registry import STRATEGIES

routes = page_routes(LEAD)
NEVER: dict[str, str | None] = {"seen": None, "answered": None}
NO_MEMBER = "There is no such person in this project."


@routes.get("/p/{slug}/people")
def team_page(request: Request, member: Member, search: Part = "") -> Response:
    return _team(request, member, search=search.strip())


@routes.get("/p/{slug}/setup/people")
def setup_page(request: Request, member: Member) -> Response:
    return _team(request, member, setting_up=True)


@routes.post("/p/{slug}/people/invite")
def invite(request: Request, member: Member, form: FormData) -> Response:
    """Create an invitation; the link is shown once, on the next page."""
    with store_of(request).write() as tx:
        invitation = invitations.invite(tx, member.project, field(form, "role"), member.person)
    link = _link(request, invitation, "The invitation link is ready.")
    return _team(request, member, setting_up=form.get("back") == "setup", link=link)


@routes.post("/p/{slug}/people/revoke")
def revoke(request: Request, member: Member, form: FormData) -> Response:
    with store_of(request).write() as tx:
        done = invitations.revoke(tx, number_of(form, "link"), member.person, member.project)
    return redirect(f"/p/{member.project.slug}/people", "revoked" if done else None)


@routes.post("/p/{slug}/people/join")
def join(request: Request, member: Member, form: FormData) -> Response:
    """Make a lead an assessor too."""
    with store_of(request).write() as tx:
        projects.join(tx, member.project, member.person, "assessor", by=member.person)
    page = "setup/people" if form.get("back") == "setup" else "people"
    return redirect(f"/p/{member.project.slug}/{page}", "saved")


@routes.get("/p/{slug}/people/{person}")
def person_page(request: Request, member: Member, person: Id) -> Response:
    return _person(request, member, person)


@routes.post("/p/{slug}/people/{person}/switch")
def switch(request: Request, member: Member, person: Id, form: FormData) -> Response:
    """Change the strategy or k of a person's query."""
    k, name, number = field(form, "k"), field(form, "strategy"), field(form, "task")
    changes: dict[str, Any] = {"strategy": name} if name in STRATEGIES else {}
    if k:
        changes["k"] = int(k) if k.isdecimal() and len(k) < 6 else 0
    with store_of(request).read() as tx:
        target = _known_member(tx, member.project, person)
        ids = {str(t.id): t.id for t in tasks.of_person(tx, member.project, target.id)}
    if number not in ids:
        raise HTTPException(404, NO_MEMBER)
    if changes:
        service_of(request).switch(ids[number], member.person, uuid4().hex, changes)
    return redirect(f"/p/{member.project.slug}/people/{person}", "switched")


@routes.post("/p/{slug}/people/{person}/remove")
def leave(request: Request, member: Member, person: Id, form: FormData) -> Response:
    with store_of(request).write() as tx:
        target = _known_member(tx, member.project, person)
        if projects.leave(tx, member.project, target, member.person):
            assigning.reassign_open_tasks(tx, member.project, target, member.person)
    return redirect(f"/p/{member.project.slug}/people", "departed")


@routes.post("/p/{slug}/people/{person}/reset")
def reset(request: Request, member: Member, person: Id, form: FormData) -> Response:
    with store_of(request).write() as tx:
        target = _managed(tx, member, person)
        reset_link = invitations.reset_link(tx, target, member.person)
    link = _link(request, reset_link, "The link to set a new password is ready.")
    return _person(request, member, person, link)


@routes.post("/p/{slug}/people/{person}/delete")
def delete(request: Request, member: Member, person: Id, form: FormData) -> Response:
    with store_of(request).write() as tx:
        target = _managed(tx, member, person)
        judgments = "remove" if form.get("judgments") == "remove" else "anonymize"
        deletion.forget(tx, target, judgments, member.person)  # type: ignore[arg-type]
    return redirect(f"/p/{member.project.slug}/people", "deleted")


def number_of(form: FormData, name: str) -> int:
    """Return an id of a form; 0, which is not a valid id, if it is not a number."""
    text = field(form, name)
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _person(
    request: Request, member: Member, person: int, link: dict[str, str] | None = None
) -> Response:
    with store_of(request).read() as tx:
        target = _known_member(tx, member.project, person)
        manageable = projects.may_manage(tx, member.person, target)
        work = tasks.of_person(tx, member.project, target.id)
        rows = projects.members(tx, member.project)
    present = [r for r in rows if r["person"] == target.id and r["departed_at"] is None]
    return render(
        request,
        "lead/person.html",
        member=member,
        target=target,
        manageable=manageable,
        link=link,
        here=f"/p/{member.project.slug}/people/{person}",
        work=work,
        present=bool(present),
        unstarted=[t for t in work if t.state == "open"],
        started=[t for t in work if t.state == "started"],
        switchable=[t for t in work if t.tool == "pairs" and t.state != "skipped"],
        strategies=[name for name in STRATEGIES if name not in ("five-grade", "pairs")],
    )


def _team(
    request: Request,
    member: Member,
    setting_up: bool = False,
    link: dict[str, str] | None = None,
    search: str = "",
) -> Response:
    with store_of(request).read() as tx:
        rows = projects.members(tx, member.project)
        activity = projects.last_activity(tx, member.project)
        links = invitations.links_of_project(tx, member.project, member.person)
    team: dict[int, dict[str, Any]] = {}
    for row in rows:
        own = {**row, "id": row["person"], "roles": [], **activity.get(row["person"], NEVER)}
        person = team.setdefault(row["person"], own)
        person["roles"].append(row["role"])
    named = [
        person
        for person in team.values()
        if search.casefold() in f"{person['name']}\n{person['login']}".casefold()
    ]
    judging = any(
        r["person"] == member.person.id and r["role"] == "assessor" and not r["departed_at"]
        for r in rows
    )
    base = f"/p/{member.project.slug}"
    return render(
        request,
        "lead/people.html",
        member=member,
        team=named,
        link=link,
        search=search,
        open_links=[i for i in links if i.open],
        setting_up=setting_up,
        ready=ready(request, member),
        judging_too=judging,
        here=f"{base}/{'setup/' if setting_up else ''}people",
    )


def _link(request: Request, link: Link, message: str) -> dict[str, str]:
    url = str(request.base_url).rstrip("/") + link.path
    return {"url": url, "expires": link.expires, "message": message}


def _known_member(tx: Tx, project: Project, person: int) -> Person:
    target = people.get(tx, person)
    if target is None or all(r["person"] != person for r in projects.members(tx, project)):
        raise HTTPException(404, NO_MEMBER)
    return target


def _managed(tx: Tx, member: Member, person: int) -> Person:
    target = _known_member(tx, member.project, person)
    if target.id == member.person.id or not projects.may_manage(tx, member.person, target):
        raise HTTPException(404, NO_MEMBER)
    return target


PAGE_ROWS = 100


@routes.get("/links", admit=ADMIN)
def links(request: Request, login: Login) -> Response:
    with store_of(request).read() as tx:
        rows = invitations.all_links(tx)
    return render(request, "admin/links.html", open_links=[link for link in rows if link.open])


@routes.post("/links/revoke", admit=ADMIN)
def revoke_any(request: Request, login: Login, form: FormData) -> Response:
    with store_of(request).write() as tx:
        done = invitations.revoke(tx, number_of(form, "link"), login.person)
    return redirect("/links", "revoked" if done else None)


@routes.get("/audit", admit=ADMIN)
def changes(request: Request, login: Login, before: Id | None = None) -> Response:
    with store_of(request).read() as tx:
        rows = audit.changes(tx, None, PAGE_ROWS, before)
    older = rows[-1]["id"] if len(rows) == PAGE_ROWS else None
    return render(request, "admin/audit.html", rows=rows, older=older)
