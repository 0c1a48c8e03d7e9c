"""Pages of a project's queries and documents: search, archive, restore, delete."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from firstpage.core import DataError
from firstpage.core.http import sentence
from firstpage.labeling.app.analysis import query_overview as query_list
from firstpage.labeling.app.api.analysis import Part
from firstpage.labeling.app.api.bodies import Id
from firstpage.labeling.app.pages.rendering import LEAD, field, page_routes, redirect, render
from firstpage.labeling.app.security import analyst_of, store_of
from firstpage.labeling.app.store import Member, archive, projects, texts

routes = page_routes(LEAD)
SHOWN_ROWS = 500
OFFERED = ("log.jsonl", "truth.jsonl", "pool.jsonl")  # exports before a deletion


@routes.get("/p/{slug}/queries")
def queries_page(request: Request, member: Member, search: Part = "") -> Response:
    """List the queries with their state and confidence; archived ones last."""
    return _queries(request, member, search)


@routes.post("/p/{slug}/queries")
def change_queries(request: Request, member: Member, form: FormData) -> Response:
    """Archive, restore or delete the chosen queries."""
    keys = [key for key in form.getlist("query") if isinstance(key, str)]
    store, action = store_of(request), _action(form)
    try:
        if not keys:
            raise DataError("choose at least one query.")
        archive.change_queries(store, member.project, keys, action, member.person)
    except DataError as error:
        return _queries(request, member, "", status=400, problem=sentence(error))
    return redirect(f"/p/{member.project.slug}/queries", "saved")


@routes.get("/p/{slug}/queries/{query}")
def query_page(request: Request, member: Member, query: Id) -> Response:
    """Show the documents of a query, and archived ones."""
    return _query(request, member, query)


@routes.post("/p/{slug}/queries/{query}")
def change_documents(request: Request, member: Member, query: Id, form: FormData) -> Response:
    """Archive, restore or delete the chosen documents of a query."""
    keys = [key for key in form.getlist("document") if isinstance(key, str)]
    try:
        if not keys:
            raise DataError("choose at least one document.")
        with store_of(request).write() as tx:
            what = member.project, _key(tx, member, query), keys, _action(form)
            archive.change_documents(tx, *what, member.person)
    except DataError as error:
        return _query(request, member, query, status=400, problem=sentence(error))
    return redirect(f"/p/{member.project.slug}/queries/{query}", "saved")


@routes.post("/p/{slug}/archive")
def archive_project(request: Request, member: Member, form: FormData) -> Response:
    with store_of(request).write() as tx:
        archive.archive_project(tx, member.project, member.person)
    return redirect(f"/p/{member.project.slug}/queries", "archived")


@routes.post("/p/{slug}/restore")
def restore_project(request: Request, member: Member, form: FormData) -> Response:
    with store_of(request).write() as tx:
        archive.restore_project(tx, member.project, member.person)
    return redirect(f"/p/{member.project.slug}/queries", "restored")


@routes.post("/p/{slug}/delete")
def delete_project(request: Request, member: Member, form: FormData) -> Response:
    """Delete an archived project whose short name was typed."""
    try:
        if field(form, "name") != member.project.slug:
            raise DataError(f"type {member.project.slug} to delete the project.")
        archive.delete_project(store_of(request), member.project, member.person)
    except DataError as error:
        return _queries(request, member, "", status=400, problem=sentence(error))
    return redirect("/", "project-deleted")


def _action(form: FormData) -> archive.Action:
    actions: dict[str, archive.Action] = {"restore": "restore", "delete": "delete"}
    return actions.get(field(form, "action"), "archive")


def _queries(request: Request, member: Member, search: str, **context: Any) -> Response:
    listed = analyst_of(request).compute(query_list.queries, member.project, search.strip())
    with store_of(request).read() as tx:
        answers = projects.answer_count(tx, member.project)
    return render(
        request,
        "lead/queries.html",
        member=member,
        search=search.strip(),
        answers=answers,
        shown=listed["queries"][:SHOWN_ROWS],
        total=len(listed["queries"]),
        offered=OFFERED,
        **context,
    )


def _query(request: Request, member: Member, query: int, **context: Any) -> Response:
    with store_of(request).read() as tx:
        _key(tx, member, query)
        row = texts.query(tx, query)
        documents = texts.documents_of(tx, query)
        archived = archive.archived_documents(tx, query)
        fixed = archive.document_change_problem(tx, row)
    return render(
        request,
        "lead/query.html",
        member=member,
        query=row,
        documents=documents,
        archived=archived,
        fixed=sentence(fixed) if fixed else None,
        **context,
    )


def _key(tx: Any, member: Member, query: int) -> str:
    for row in texts.of_project(tx, member.project.id, archived=True):
        if row["id"] == query:
            return str(row["key"])
    raise HTTPException(404, "There is no such query.")
