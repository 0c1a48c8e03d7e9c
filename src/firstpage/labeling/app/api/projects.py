"""Projects: create, change, import into, open and close, archive and delete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import IO, Annotated, Any, Literal

from msgspec import Meta, Struct, structs
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from firstpage.data.formats import ReadLimits
from firstpage.labeling.app.admission import LEAD, LOGIN, MEMBER, api_routes
from firstpage.labeling.app.analysis import query_overview as query_list
from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.imports import bundle
from firstpage.labeling.app.imports.pictures import from_uploads
from firstpage.labeling.app.imports.texts import add
from firstpage.labeling.app.security import analyst_of, settings_of, store_of
from firstpage.labeling.app.store import archive, assigning, projects
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.options import comparison_outcomes
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Member, Project
from firstpage.labeling.app.store.scales import grade_names

routes = api_routes("projects", admit=LEAD)
MAX_RUNS = 100


@routes.get("/projects", admit=LOGIN)
def all_projects(request: Request, login: Login) -> dict[str, Any]:
    """Return the projects of the signed-in person."""
    with store_of(request).read() as tx:
        return {"projects": [_record(m) for m in projects.of_person(tx, login.person)]}


@routes.post("/projects", status=201, admit=LOGIN)
def create(request: Request, login: Login, body: bodies.ProjectBody) -> dict[str, Any]:
    """Create a project in draft; for admins and for leads of a project."""
    project = new_project(request, login.person, **structs.asdict(body))
    return _record(Member(login.person, project, ("lead",)))


def new_project(request: Request, person: Person, **fields: Any) -> Project:
    """Create a project, in which a single user is also the assessor."""
    with store_of(request).write() as tx:
        check_may_create(tx, person)
        project = projects.create(tx, **fields, by=person)
        if settings_of(request).single_user:
            projects.join(tx, project, person, "assessor", by=person)
    return project


def check_may_create(tx: Tx, person: Person) -> None:
    if not person.admin and not any(m.is_lead for m in projects.of_person(tx, person)):
        raise HTTPException(403, "Only a lead can create projects.")


@routes.get("/projects/{slug}", admit=MEMBER)
def get_project(request: Request, member: Member) -> dict[str, Any]:
    """Return a project; leads also get its setting and options."""
    return _record(member)


@routes.patch("/projects/{slug}")
def change(request: Request, member: Member, body: bodies.ChangeBody) -> dict[str, Any]:
    """Change a project: the tool in draft, the setting before the first answer."""
    with store_of(request).write() as tx:
        changed = projects.change(tx, member.project, structs.asdict(body), member.person)
    return _changed(member, changed)


class ImportForm(Struct, forbid_unknown_fields=True, kw_only=True):
    """The files of an import, and how many documents of runs are taken."""

    queries: UploadFile | None = None
    documents: UploadFile | None = None
    topics: UploadFile | None = None
    run: Annotated[list[UploadFile], Meta(max_length=MAX_RUNS)] = []
    letor: UploadFile | None = None
    collection: UploadFile | None = None
    gold_questions: UploadFile | None = None
    training: UploadFile | None = None
    qrels: UploadFile | None = None
    images: Annotated[list[UploadFile], Meta(max_length=1000)] = []
    depth: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    pool: Literal["depth", "rrf", "random", "stratified"] = "depth"
    first: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


@routes.post("/projects/{slug}/import")
def import_texts(request: Request, member: Member, upload: ImportForm) -> dict[str, Any]:
    """Import files, all or nothing; return the counts, and `notes` on what was not imported.

    Rows (JSON lines, CSV, Parquet) as `queries` and `documents`; or TREC `topics`, one `run` or
    several (`depth` documents per query, 50 by default, chosen by `pool`) or a `letor` file, and
    the `collection` with the texts; `qrels` are the grades of the items of lists.  `first` takes
    the first queries only.  In a project that compares lists, the first `depth` documents of each
    run (10 by default) are a list.
    """
    sent = structs.asdict(upload)
    chosen = {name: sent.pop(name) for name in ("depth", "pool", "first")}
    parsed = read_uploads(request, member.project, sent, **chosen)
    counts = add(store_of(request), member.project, parsed, member.person)
    return {**asdict(counts), "notes": list(parsed.notes)}


def read_uploads(
    request: Request, project: Project, fields: Mapping[str, Any], **chosen: Any
) -> bundle.Bundle:
    """Read the files of a form; the fields `run` and `images` are lists of files."""

    def sent(uploads: Any) -> list[tuple[str, IO[bytes]]]:
        files = uploads if isinstance(uploads, list) else [uploads]
        return [(f.filename, f.file) for f in files if isinstance(f, UploadFile) and f.filename]

    several = {name: sent(fields[name]) for name in ("run", "images")}
    files: dict[str, Any] = {
        name: bundle.File.uploaded(*file)
        for name, value in fields.items()
        for file in (sent(value) if name not in several else ())
    }
    runs = tuple(bundle.File.uploaded(*file) for file in several["run"])
    sources = bundle.Sources(
        **files,
        runs=runs,
        pictures=from_uploads(dict(several["images"])),
        seed=project.setting.seed,
        pages="lists" in project.tools and bool(runs),
        grade_names=grade_names(project.options.grades),
        outcomes=comparison_outcomes(project.options, project.tools),
        **chosen,
    )
    return bundle.read(sources, ReadLimits(bytes=settings_of(request).max_unpacked))


@routes.post("/projects/{slug}/open")
def open_project(request: Request, member: Member) -> dict[str, Any]:
    """Open a project for judging."""
    with store_of(request).write() as tx:
        if settings_of(request).single_user:
            assigning.assign_to_single_person(tx, member.project, member.person)
        return _changed(member, projects.set_state(tx, member.project, "open", member.person))


@routes.post("/projects/{slug}/close")
def close_project(request: Request, member: Member) -> dict[str, Any]:
    """Close a project; no answers are accepted until it is reopened."""
    with store_of(request).write() as tx:
        return _changed(member, projects.set_state(tx, member.project, "closed", member.person))


@routes.post("/projects/{slug}/archive")
def archive_project(request: Request, member: Member) -> dict[str, Any]:
    """Close and archive a project; only its leads see it."""
    with store_of(request).write() as tx:
        return _changed(member, archive.archive_project(tx, member.project, member.person))


@routes.post("/projects/{slug}/restore")
def restore_project(request: Request, member: Member) -> dict[str, Any]:
    """Restore an archived project; it stays closed."""
    with store_of(request).write() as tx:
        return _changed(member, archive.restore_project(tx, member.project, member.person))


@routes.delete("/projects/{slug}", status=204)
def delete_project(request: Request, member: Member) -> None:
    """Delete an archived project with all its texts and judgments, for good."""
    archive.delete_project(store_of(request), member.project, member.person)


@routes.get("/projects/{slug}/queries")
def all_queries(request: Request, member: Member, search: bodies.Text = "") -> dict[str, Any]:
    """Return the queries whose id or text contains `search`, with their state and confidence."""
    return analyst_of(request).compute(query_list.queries, member.project, search.strip())


@routes.post("/projects/{slug}/queries/{action}", status=204)
def change_queries(
    request: Request, member: Member, action: archive.Action, body: bodies.QueriesBody
) -> None:
    """Archive or restore queries, or delete archived ones for good."""
    store = store_of(request)
    archive.change_queries(store, member.project, body.queries, action, member.person)


@routes.post("/projects/{slug}/documents/{action}", status=204)
def change_documents(
    request: Request, member: Member, action: archive.Action, body: bodies.DocumentsBody
) -> None:
    """Archive, restore or delete documents of a query that has no answer yet."""
    what = member.project, body.query, body.documents, action
    with store_of(request).write() as tx:
        archive.change_documents(tx, *what, member.person)


def _changed(member: Member, project: Project) -> dict[str, Any]:
    return _record(replace(member, project=project))


def _record(member: Member) -> dict[str, Any]:
    project = member.project
    record: dict[str, Any] = {
        "slug": project.slug, "title": project.title, "guidelines": project.guidelines,
        "tool": project.tool, "state": project.state, "created": project.created,
        "roles": list(member.roles), "is_lead": member.is_lead, "archived": project.archived,
    }  # fmt: skip
    if not member.is_lead:
        return record
    return {**record, "setting": asdict(project.setting), "options": project.options.to_dict()}
