"""Projects: make, change, open, close, fill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, UploadFile

from firstpage.web.api import bodies
from firstpage.web.imports import lines, rows
from firstpage.web.imports.texts import add_queries
from firstpage.web.security import Anyone, CurrentPerson, Lead, csrf_header, settings_of, store_of
from firstpage.web.store import assigning, projects
from firstpage.web.store.logins import Login
from firstpage.web.store.projects import Member

router = APIRouter(tags=["projects"])
Changing = Annotated[Login, Depends(csrf_header)]


@router.get("/projects")
def all_projects(request: Request, person: CurrentPerson) -> dict[str, Any]:
    """Those that one belongs to."""
    with store_of(request).read() as tx:
        return {"projects": [_shown(m) for m in projects.of_person(tx, person)]}


@router.post("/projects", status_code=201)
def create(request: Request, body: bodies.ProjectBody, login: Changing) -> dict[str, Any]:
    """A new project in draft, led by who makes it; for those who lead one already, and admins."""
    person = login.person
    with store_of(request).write() as tx:
        if not person.admin and not any(m.leads for m in projects.of_person(tx, person)):
            raise HTTPException(403, "Only a lead may make projects.")
        given = body.model_dump(exclude={"slug"})
        made = projects.create(tx, body.slug, **given, by=person)
        if settings_of(request).open:
            projects.join(tx, made, person, "assessor", by=person)
        return _shown(Member(person, made, ("lead",)))


@router.get("/projects/{slug}")
def one(member: Anyone) -> dict[str, Any]:
    return _shown(member)


@router.patch("/projects/{slug}")
def change(
    request: Request, member: Lead, body: bodies.ChangeBody, login: Changing
) -> dict[str, Any]:
    with store_of(request).write() as tx:
        changed = projects.change(
            tx, member.project, body.model_dump(exclude_unset=True), login.person
        )
    return _shown(Member(member.person, changed, member.roles))


@router.post("/projects/{slug}/import")
def import_texts(
    request: Request, member: Lead, login: Changing, documents: UploadFile,
    queries: UploadFile | None = None,
) -> dict[str, int]:  # fmt: skip
    """Queries and documents, a file each; all of it, or nothing."""
    limit = settings_of(request).unpacked
    found = {}
    if queries is not None:
        found = rows.queries_from(lines.rows(queries.filename or "", queries.file, limit))
    given = rows.documents_from(lines.rows(documents.filename or "", documents.file, limit), {})
    with store_of(request).write() as tx:
        done = add_queries(tx, member.project, rows.joined(found, given), login.person)
    return asdict(done)


@router.post("/projects/{slug}/open")
def open_project(request: Request, member: Lead, login: Changing) -> dict[str, Any]:
    with store_of(request).write() as tx:
        if settings_of(request).open:
            assigning.give_all(tx, member.project, login.person)
        changed = projects.set_state(tx, member.project, "open", login.person)
    return _shown(Member(member.person, changed, member.roles))


@router.post("/projects/{slug}/close")
def close_project(request: Request, member: Lead, login: Changing) -> dict[str, Any]:
    with store_of(request).write() as tx:
        changed = projects.set_state(tx, member.project, "closed", login.person)
    return _shown(Member(member.person, changed, member.roles))


def _shown(member: Member) -> dict[str, Any]:
    project = member.project
    found: Mapping[str, Any] = {
        "slug": project.slug, "title": project.title, "guidelines": project.guidelines,
        "tool": project.tool, "state": project.state, "created": project.created,
        "roles": list(member.roles), "leads": member.leads,
    }  # fmt: skip
    if not member.leads:
        return dict(found)
    return {**found, "setting": asdict(project.setting), "options": dict(project.options)}
