"""Routes of documents: pages of their own, their images, and the empty frame for their content."""

from __future__ import annotations

from sqlalchemy import RowMapping
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from firstpage.core.http import Routes
from firstpage.labeling.app.admission import DEFAULTS, LOGIN
from firstpage.labeling.app.api.bodies import Id
from firstpage.labeling.app.document_html import EMPTY_PAGE, EMPTY_URL, HEADERS, page_of
from firstpage.labeling.app.security import store_of
from firstpage.labeling.app.store import Login, Person, Tx, projects, tasks, texts

CACHED = {**HEADERS, "cache-control": "private, max-age=31536000, immutable"}
routes = Routes(DEFAULTS, admit=LOGIN, hidden=True)


@routes.get(EMPTY_URL, admit=None)
async def empty_frame(request: Request) -> HTMLResponse:
    """Return the page into which the judging page puts documents."""
    return HTMLResponse(EMPTY_PAGE, headers=CACHED)


@routes.get("/documents/{document}")
def frame(request: Request, login: Login, document: Id) -> HTMLResponse:
    """Return a document as a page of its own."""
    with store_of(request).read() as tx:
        row = _allowed(tx, document, login.person)
    return HTMLResponse(page_of(row), headers=HEADERS)


@routes.get("/documents/{document}/image")
def picture(request: Request, login: Login, document: Id) -> Response:
    """Return the image of a document; its media type is never one that a browser runs."""
    with store_of(request).read() as tx:
        row = _allowed(tx, document, login.person)
        image = texts.image(tx, row["image"]) if row["image"] else None
    if image is None:
        raise HTTPException(404, "This document has no image.")
    return Response(image["data"], media_type=image["type"], headers=HEADERS)


def _allowed(tx: Tx, document: int, person: Person) -> RowMapping:
    """Return a document to those who judge it or lead its project; 404 for all others."""
    row = texts.document(tx, document)
    if row is not None:
        project = projects.get(tx, row["project"])
        member = projects.member(tx, project.slug, person)
        if member is not None and (
            member.is_lead
            or row["purpose"] == "training"
            or tasks.sees_query(tx, person.id, row["query"])
        ):
            return row
    raise HTTPException(404, "There is no such document.")
