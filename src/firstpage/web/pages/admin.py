"""For admins: all links of the server, and the changes that belong to no project."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from firstpage.web.api.bodies import Before
from firstpage.web.pages.people import number_of
from firstpage.web.pages.shell import Form, PageRoute, go, render
from firstpage.web.security import Admin, store_of
from firstpage.web.store import audit, invitations

router = APIRouter(route_class=PageRoute, include_in_schema=False)
PAGE = 100  # rows


@router.get("/links")
def links(request: Request, person: Admin) -> Response:
    with store_of(request).read() as tx:
        found = invitations.of_all(tx)
    return render(request, "admin/links.html", open_links=[link for link in found if link.open])


@router.post("/links/revoke")
def revoke(request: Request, person: Admin, form: Form) -> Response:
    with store_of(request).write() as tx:
        done = invitations.revoke(tx, number_of(form, "link"), person)
    return go("/links", "revoked" if done else None)


@router.get("/audit")
def changes(request: Request, person: Admin, before: Before = None) -> Response:
    with store_of(request).read() as tx:
        rows = audit.changes(tx, None, PAGE, before)
    older = rows[-1]["id"] if len(rows) == PAGE else None
    return render(request, "admin/audit.html", rows=rows, older=older)
