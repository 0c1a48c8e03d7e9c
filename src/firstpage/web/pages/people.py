"""Who is in a project: invitations, leaving, passwords, deletion of data."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from fastapi import APIRouter, HTTPException, Request, Response
from starlette.datastructures import FormData

from firstpage.labeling.strategies.registry import STRATEGIES
from firstpage.web.api.bodies import Before, Id
from firstpage.web.pages.rendering import Form, PageRoute, field, go, render
from firstpage.web.pages.setup import ready
from firstpage.web.security import Admin, Lead, desk_of, store_of
from firstpage.web.store import assigning, audit, deletion, invitations, people, projects, tasks
from firstpage.web.store.connect import Tx
from firstpage.web.store.invitations import Link
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Member, Project

router = APIRouter(route_class=PageRoute, include_in_schema=False)
NOBODY = "There is no such person in this project."


@router.get("/p/{slug}/people")
def team_page(request: Request, member: Lead) -> Response:
    return _team(request, member)


@router.get("/p/{slug}/setup/people")
def setup_page(request: Request, member: Lead) -> Response:
    return _team(request, member, setting_up=True)


@router.post("/p/{slug}/people/invite")
def invite(request: Request, member: Lead, form: Form) -> Response:
    """The link is shown once, on the page that answers."""
    with store_of(request).write() as tx:
        made = invitations.invite(tx, member.project, field(form, "role"), member.person)
    link = _link(request, made, "Here is the invitation.")
    return _team(request, member, setting_up=form.get("back") == "setup", link=link)


@router.post("/p/{slug}/people/revoke")
def revoke(request: Request, member: Lead, form: Form) -> Response:
    with store_of(request).write() as tx:
        done = invitations.revoke(tx, number_of(form, "link"), member.person, member.project)
    return go(f"/p/{member.project.slug}/people", "revoked" if done else None)


@router.post("/p/{slug}/people/myself")
def myself(request: Request, member: Lead, form: Form) -> Response:
    """A lead who judges too."""
    with store_of(request).write() as tx:
        projects.join(tx, member.project, member.person, "assessor", by=member.person)
    part = "setup/people" if form.get("back") == "setup" else "people"
    return go(f"/p/{member.project.slug}/{part}", "saved")


@router.get("/p/{slug}/people/{person}")
def person_page(request: Request, member: Lead, person: Id) -> Response:
    return _person(request, member, person)


@router.post("/p/{slug}/people/{person}/switch")
def switch(request: Request, member: Lead, person: Id, form: Form) -> Response:
    """Another strategy or k for a query that somebody is at."""
    k, name, number = field(form, "k"), field(form, "strategy"), field(form, "task")
    changes: dict[str, Any] = {"strategy": name} if name in STRATEGIES else {}
    if k:
        changes["k"] = int(k) if k.isdecimal() and len(k) < 6 else 0
    with store_of(request).read() as tx:
        whom = _present(tx, member.project, person)
        mine = {str(t.id): t.id for t in tasks.of_person(tx, member.project, whom.id)}
    if number not in mine:
        raise HTTPException(404, NOBODY)
    if changes:
        desk_of(request).switch(mine[number], member.person, uuid4().hex, changes)
    return go(f"/p/{member.project.slug}/people/{person}", "switched")


@router.post("/p/{slug}/people/{person}/leave")
def leave(request: Request, member: Lead, person: Id, form: Form) -> Response:
    with store_of(request).write() as tx:
        whom = _present(tx, member.project, person)
        if projects.leave(tx, member.project, whom, member.person):
            assigning.leave_project(tx, member.project, whom, member.person)
    return go(f"/p/{member.project.slug}/people", "departed")


@router.post("/p/{slug}/people/{person}/reset")
def reset(request: Request, member: Lead, person: Id, form: Form) -> Response:
    with store_of(request).write() as tx:
        whom = _managed(tx, member, person)
        made = invitations.reset_link(tx, whom, member.person)
    link = _link(request, made, "Here is the link to set a new password.")
    return _person(request, member, person, link)


@router.post("/p/{slug}/people/{person}/delete")
def delete(request: Request, member: Lead, person: Id, form: Form) -> Response:
    with store_of(request).write() as tx:
        whom = _managed(tx, member, person)
        what = "remove" if form.get("judgments") == "remove" else "anonymize"
        deletion.forget(tx, whom, what, member.person)  # type: ignore[arg-type]
    return go(f"/p/{member.project.slug}/people", "deleted")


def number_of(form: FormData, name: str) -> int:
    """Return the id that a form carries; 0, which nothing has, where it is none."""
    text = field(form, name)
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _person(
    request: Request, member: Member, person: int, link: dict[str, str] | None = None
) -> Response:
    with store_of(request).read() as tx:
        whom = _present(tx, member.project, person)
        may = projects.may_manage(tx, member.person, whom)
        work = tasks.of_person(tx, member.project, whom.id)
        rows = projects.members(tx, member.project)
    here = [r for r in rows if r["person"] == whom.id and r["departed_at"] is None]
    return render(
        request, "lead/person.html", member=member, whom=whom, manageable=may, link=link,
        here=f"/p/{member.project.slug}/people/{person}", work=work, present=bool(here),
        unbegun=[t for t in work if t.state == "open"],
        begun=[t for t in work if t.state == "started"],
        switchable=[t for t in work if t.tool == "pairs" and t.state != "skipped"],
        strategies=[name for name in STRATEGIES if name not in ("five-grade", "pairs")],
    )  # fmt: skip


def _team(
    request: Request, member: Member, setting_up: bool = False, link: dict[str, str] | None = None
) -> Response:
    with store_of(request).read() as tx:
        rows = projects.members(tx, member.project)
        links = invitations.of_project(tx, member.project, member.person)
    team: dict[int, dict[str, Any]] = {}
    for row in rows:
        mine = team.setdefault(row["person"], {**row, "id": row["person"], "roles": []})
        mine["roles"].append(row["role"])
    judging = any(
        r["person"] == member.person.id and r["role"] == "assessor" and not r["departed_at"]
        for r in rows
    )
    base = f"/p/{member.project.slug}"
    return render(
        request, "lead/people.html", member=member, team=list(team.values()), link=link,
        open_links=[i for i in links if i.open], setting_up=setting_up,
        ready=ready(request, member), judging_too=judging,
        here=f"{base}/{'setup/' if setting_up else ''}people",
    )  # fmt: skip


def _link(request: Request, made: Link, words: str) -> dict[str, str]:
    url = str(request.base_url).rstrip("/") + made.path
    return {"url": url, "expires": made.expires, "words": words}


def _present(tx: Tx, project: Project, person: int) -> Person:
    whom = people.get(tx, person)
    if whom is None or all(r["person"] != person for r in projects.members(tx, project)):
        raise HTTPException(404, NOBODY)
    return whom


def _managed(tx: Tx, member: Member, person: int) -> Person:
    whom = _present(tx, member.project, person)
    if whom.id == member.person.id or not projects.may_manage(tx, member.person, whom):
        raise HTTPException(404, NOBODY)
    return whom


PAGE = 100  # rows


@router.get("/links")
def links(request: Request, person: Admin) -> Response:
    with store_of(request).read() as tx:
        found = invitations.of_all(tx)
    return render(request, "admin/links.html", open_links=[link for link in found if link.open])


@router.post("/links/revoke")
def revoke_any(request: Request, person: Admin, form: Form) -> Response:
    with store_of(request).write() as tx:
        done = invitations.revoke(tx, number_of(form, "link"), person)
    return go("/links", "revoked" if done else None)


@router.get("/audit")
def changes(request: Request, person: Admin, before: Before = None) -> Response:
    with store_of(request).read() as tx:
        rows = audit.changes(tx, None, PAGE, before)
    older = rows[-1]["id"] if len(rows) == PAGE else None
    return render(request, "admin/audit.html", rows=rows, older=older)
