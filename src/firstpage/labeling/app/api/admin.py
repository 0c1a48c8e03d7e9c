"""For admins: all links, and changes outside of projects."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.security import Admin, csrf_header, store_of
from firstpage.labeling.app.store import audit, invitations
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.sessions import NotFound

router = APIRouter(tags=["admin"])


@router.get("/links")
def links(request: Request, person: Admin) -> dict[str, Any]:
    """Return all links of the server without their tokens, the unused ones first."""
    with store_of(request).read() as tx:
        return {"links": [asdict(link) for link in invitations.all_links(tx)]}


@router.delete("/links/{link}", status_code=204)
def revoke(
    request: Request, link: bodies.Id, person: Admin, login: Annotated[Login, Depends(csrf_header)]
) -> None:
    """Revoke an unused link."""
    with store_of(request).write() as tx:
        if not invitations.revoke(tx, link, person):
            raise NotFound("there is no such open link.")


@router.get("/audit")
def changes(
    request: Request,
    person: Admin,
    before: bodies.BeforeId = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> dict[str, Any]:
    """Return changes of accounts, sign-ins and links of the server, newest first."""
    with store_of(request).read() as tx:
        return {"audit": audit.changes(tx, None, limit, before)}
