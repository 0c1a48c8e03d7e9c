"""Projects: make, change, open, close, fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, HTTPException, Request, UploadFile

from firstpage.data.formats.row_reader import ReadLimits
from firstpage.errors import DataError
from firstpage.web.admission import AdmissionRoute
from firstpage.web.api import bodies
from firstpage.web.imports import bundle
from firstpage.web.imports.pictures import from_uploads
from firstpage.web.imports.texts import add
from firstpage.web.security import Anyone, CurrentPerson, Lead, csrf_header, settings_of, store_of
from firstpage.web.store import assigning, projects
from firstpage.web.store.logins import Login
from firstpage.web.store.projects import Member

router = APIRouter(tags=["projects"], route_class=AdmissionRoute)
IMPORT_PARTS = (
    "queries", "documents", "topics", "run", "letor", "collection", "golds", "training", "qrels",
    "images", "depth",
)  # fmt: skip
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


async def known_parts(request: Request) -> None:
    """Refuse a form with a part that the import does not know: its data would be ignored."""
    unknown = [name for name in await request.form() if name not in IMPORT_PARTS]
    if unknown:
        raise DataError(f"an import has no part {unknown[0]!r}; it has {', '.join(IMPORT_PARTS)}.")


@router.post("/projects/{slug}/import", dependencies=[Depends(known_parts)])
def import_texts(
    request: Request, member: Lead, login: Changing,
    queries: UploadFile | None = None, documents: UploadFile | None = None,
    topics: UploadFile | None = None, run: UploadFile | None = None,
    letor: UploadFile | None = None, collection: UploadFile | None = None,
    golds: UploadFile | None = None, training: UploadFile | None = None,
    qrels: UploadFile | None = None,
    images: Annotated[list[UploadFile], File(max_length=1000)] = [],  # noqa: B006
    depth: Annotated[int | None, Form(ge=1, le=10_000)] = None,
) -> dict[str, Any]:  # fmt: skip
    """Texts, a file each: all of it, or nothing; how much came in, and `notes` on the rest.

    Rows (JSON lines, CSV, Parquet) as `queries` and `documents`; or TREC `topics`, a `run` (its
    best `depth` a query, 50 by default) or a `letor` file, and the `collection` with the texts;
    `qrels` are the grades of the items of lists.
    """
    given = {
        "queries": queries, "documents": documents, "topics": topics, "run": run, "letor": letor,
        "collection": collection, "golds": golds, "training": training, "qrels": qrels,
    }  # fmt: skip
    read = _read(request, given, images, depth)
    done = add(store_of(request), member.project, read, member.person)
    return {**asdict(done), "notes": list(read.notes)}


def _read(
    request: Request, given: Mapping[str, UploadFile | None], images: Sequence[UploadFile],
    depth: int | None,
) -> bundle.Bundle:  # fmt: skip
    """The files of a form, by what they hold."""
    files = {
        name: bundle.File.uploaded(upload.filename or name, upload.file)
        for name, upload in given.items()
        if upload is not None and upload.filename
    }
    found = from_uploads({upload.filename or "": upload.file for upload in images})
    sources = bundle.Sources(**files, pictures=found, depth=depth)
    return bundle.read(sources, ReadLimits(bytes=settings_of(request).unpacked))


@router.post("/projects/{slug}/open")
def open_project(request: Request, member: Lead, login: Changing) -> dict[str, Any]:
    with store_of(request).write() as tx:
        if settings_of(request).open:
            assigning.work_alone(tx, member.project, login.person)
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
    return {**found, "setting": asdict(project.setting), "options": project.options.model_dump()}
