"""Projects: create, change, import into, open and close, archive and delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, HTTPException, Query, Request, UploadFile
from pydantic import Field as PydanticField

from firstpage.core import DataError
from firstpage.data.formats import ReadLimits
from firstpage.labeling.app.admission import AdmissionRoute
from firstpage.labeling.app.analysis import query_overview as query_list
from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.imports import bundle
from firstpage.labeling.app.imports.pictures import from_uploads
from firstpage.labeling.app.imports.texts import add
from firstpage.labeling.app.security import (
    Anyone,
    CurrentPerson,
    Lead,
    analyst_of,
    csrf_header,
    settings_of,
    store_of,
)
from firstpage.labeling.app.store import archive, assigning, projects
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.options import comparison_outcomes
from firstpage.labeling.app.store.projects import Member, Project
from firstpage.labeling.app.store.scales import grade_names

router = APIRouter(tags=["projects"], route_class=AdmissionRoute)
IMPORT_FIELDS = (
    "queries", "documents", "topics", "run", "letor", "collection", "gold_questions", "training",
    "qrels", "images", "depth", "pool", "first",
)  # fmt: skip
PoolMethod = Literal["depth", "rrf", "random", "stratified"]
MAX_RUNS = 100
Changing = Annotated[Login, Depends(csrf_header)]


@router.get("/projects")
def all_projects(request: Request, person: CurrentPerson) -> dict[str, Any]:
    """Return the projects of the signed-in person."""
    with store_of(request).read() as tx:
        return {"projects": [_record(m) for m in projects.of_person(tx, person)]}


@router.post("/projects", status_code=201)
def create(request: Request, body: bodies.ProjectBody, login: Changing) -> dict[str, Any]:
    """Create a project in draft; for admins and for leads of a project."""
    person = login.person
    with store_of(request).write() as tx:
        if not person.admin and not any(m.is_lead for m in projects.of_person(tx, person)):
            raise HTTPException(403, "Only a lead can create projects.")
        fields = body.model_dump(exclude={"slug"})
        project = projects.create(tx, body.slug, **fields, by=person)
        if settings_of(request).single_user:
            projects.join(tx, project, person, "assessor", by=person)
        return _record(Member(person, project, ("lead",)))


@router.get("/projects/{slug}")
def get_project(member: Anyone) -> dict[str, Any]:
    """Return a project; leads also get its setting and options."""
    return _record(member)


@router.patch("/projects/{slug}")
def change(
    request: Request, member: Lead, body: bodies.ChangeBody, login: Changing
) -> dict[str, Any]:
    """Change a project: the tool in draft, the setting before the first answer."""
    with store_of(request).write() as tx:
        changed = projects.change(
            tx, member.project, body.model_dump(exclude_unset=True), login.person
        )
    return _record(Member(member.person, changed, member.roles))


async def check_fields(request: Request) -> None:
    """Refuse a form with an unknown field, whose data would be ignored."""
    unknown = [name for name in await request.form() if name not in IMPORT_FIELDS]
    if unknown:
        raise DataError(
            f"an import has no field {unknown[0]!r}; it has {', '.join(IMPORT_FIELDS)}."
        )


@router.post("/projects/{slug}/import", dependencies=[Depends(check_fields)])
def import_texts(
    request: Request,
    member: Lead,
    login: Changing,
    queries: UploadFile | None = None,
    documents: UploadFile | None = None,
    topics: UploadFile | None = None,
    run: Annotated[list[UploadFile], File(max_length=MAX_RUNS)] = [],  # noqa: B006
    letor: UploadFile | None = None,
    collection: UploadFile | None = None,
    gold_questions: UploadFile | None = None,
    training: UploadFile | None = None,
    qrels: UploadFile | None = None,
    images: Annotated[list[UploadFile], File(max_length=1000)] = [],  # noqa: B006
    depth: Annotated[int | None, Form(ge=1, le=10_000)] = None,
    pool: Annotated[PoolMethod, Form()] = "depth",
    first: Annotated[int | None, Form(ge=1, le=1_000_000)] = None,
) -> dict[str, Any]:
    """Import files, all or nothing; return the counts, and `notes` on what was not imported.

    Rows (JSON lines, CSV, Parquet) as `queries` and `documents`; or TREC `topics`, one `run` or
    several (`depth` documents per query, 50 by default, chosen by `pool`) or a `letor` file, and
    the `collection` with the texts; `qrels` are the grades of the items of lists.  `first` takes
    the first queries only.  In a project that compares lists, the first `depth` documents of each
    run (10 by default) are a list.
    """
    uploads = {
        "queries": queries, "documents": documents, "topics": topics, "letor": letor,
        "collection": collection, "gold_questions": gold_questions, "training": training,
        "qrels": qrels,
    }  # fmt: skip
    options = {"depth": depth, "pool": pool, "first": first}
    parsed = _read(request, member.project, uploads, run, images, options)
    counts = add(store_of(request), member.project, parsed, member.person)
    return {**asdict(counts), "notes": list(parsed.notes)}


def _read(
    request: Request,
    project: Project,
    uploads: Mapping[str, UploadFile | None],
    runs: Sequence[UploadFile],
    images: Sequence[UploadFile],
    options: Mapping[str, Any],
) -> bundle.Bundle:
    """Read the files of a form."""
    files: dict[str, Any] = {
        name: bundle.File.uploaded(upload.filename or name, upload.file)
        for name, upload in uploads.items()
        if upload is not None and upload.filename
    }
    pictures = from_uploads({upload.filename or "": upload.file for upload in images})
    named_runs = tuple(
        bundle.File.uploaded(upload.filename, upload.file) for upload in runs if upload.filename
    )
    sources = bundle.Sources(
        **files,
        runs=named_runs,
        pictures=pictures,
        seed=project.setting.seed,
        pages="lists" in project.tools and bool(named_runs),
        grade_names=grade_names(project.options.grades),
        outcomes=comparison_outcomes(project.options, project.tools),
        **options,
    )
    return bundle.read(sources, ReadLimits(bytes=settings_of(request).max_unpacked))


@router.post("/projects/{slug}/open")
def open_project(request: Request, member: Lead, login: Changing) -> dict[str, Any]:
    """Open a project for judging."""
    with store_of(request).write() as tx:
        if settings_of(request).single_user:
            assigning.assign_to_single_person(tx, member.project, login.person)
        changed = projects.set_state(tx, member.project, "open", login.person)
    return _record(Member(member.person, changed, member.roles))


@router.post("/projects/{slug}/close")
def close_project(request: Request, member: Lead, login: Changing) -> dict[str, Any]:
    """Close a project; no answers are accepted until it is reopened."""
    with store_of(request).write() as tx:
        changed = projects.set_state(tx, member.project, "closed", login.person)
    return _record(Member(member.person, changed, member.roles))


@router.post("/projects/{slug}/archive")
def archive_project(request: Request, member: Lead, login: Changing) -> dict[str, Any]:
    """Close and archive a project; only its leads see it."""
    with store_of(request).write() as tx:
        changed = archive.archive_project(tx, member.project, login.person)
    return _record(Member(member.person, changed, member.roles))


@router.post("/projects/{slug}/restore")
def restore_project(request: Request, member: Lead, login: Changing) -> dict[str, Any]:
    """Restore an archived project; it stays closed."""
    with store_of(request).write() as tx:
        changed = archive.restore_project(tx, member.project, login.person)
    return _record(Member(member.person, changed, member.roles))


@router.delete("/projects/{slug}", status_code=204)
def delete_project(request: Request, member: Lead, login: Changing) -> None:
    """Delete an archived project with all its texts and judgments, for good."""
    archive.delete_project(store_of(request), member.project, login.person)


@router.get("/projects/{slug}/queries")
def all_queries(
    request: Request, member: Lead, search: Annotated[str, Query(max_length=200)] = ""
) -> dict[str, Any]:
    """Return the queries whose id or text contains `search`, with their state and confidence."""
    found: dict[str, Any] = analyst_of(request).compute(
        query_list.queries, member.project, search.strip()
    )
    return found


class QueriesBody(bodies.Body):
    queries: Annotated[list[bodies.Text], PydanticField(min_length=1, max_length=10_000)]


class DocumentsBody(bodies.Body):
    query: bodies.Text
    documents: Annotated[list[bodies.Text], PydanticField(min_length=1, max_length=10_000)]


Removal = Literal["archive", "restore", "delete"]


@router.post("/projects/{slug}/queries/{action}", status_code=204)
def change_queries(
    request: Request, member: Lead, action: Removal, body: QueriesBody, login: Changing
) -> None:
    """Archive or restore queries, or delete archived ones for good."""
    store = store_of(request)
    if action == "delete":
        archive.delete_queries(store, member.project, body.queries, login.person)
        return
    change = archive.archive_queries if action == "archive" else archive.restore_queries
    with store.write() as tx:
        change(tx, member.project, body.queries, login.person)


@router.post("/projects/{slug}/documents/{action}", status_code=204)
def change_documents(
    request: Request, member: Lead, action: Removal, body: DocumentsBody, login: Changing
) -> None:
    """Archive, restore or delete documents of a query that has no answer yet."""
    change = {
        "archive": archive.archive_documents,
        "restore": archive.restore_documents,
        "delete": archive.delete_documents,
    }[action]
    with store_of(request).write() as tx:
        change(tx, member.project, body.query, body.documents, login.person)


def _record(member: Member) -> dict[str, Any]:
    project = member.project
    record: dict[str, Any] = {
        "slug": project.slug, "title": project.title, "guidelines": project.guidelines,
        "tool": project.tool, "state": project.state, "created": project.created,
        "roles": list(member.roles), "is_lead": member.is_lead, "archived": project.archived,
    }  # fmt: skip
    if not member.is_lead:
        return record
    return {**record, "setting": asdict(project.setting), "options": project.options.model_dump()}
