"""For admins: all links, and changes outside of projects."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.requests import Request

from firstpage.labeling.app.admission import ADMIN, api_routes
from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.security import store_of
from firstpage.labeling.app.store import Login, audit, invitations
from firstpage.labeling.app.store.sessions import NotFound

routes = api_routes("admin", admit=ADMIN)


@routes.get("/links")
def links(request: Request, login: Login) -> dict[str, Any]:
    """Return all links of the server without their tokens, the unused ones first."""
    with store_of(request).read() as tx:
        return {"links": [asdict(link) for link in invitations.all_links(tx)]}


@routes.delete("/links/{link}", status=204)
def revoke(request: Request, login: Login, link: bodies.Id) -> None:
    """Revoke an unused link."""
    with store_of(request).write() as tx:
        if not invitations.revoke(tx, link, login.person):
            raise NotFound("there is no such open link.")


@routes.get("/audit")
def changes(
    request: Request, login: Login, before: bodies.Id | None = None, limit: bodies.Limit = 200
) -> dict[str, Any]:
    """Return changes of accounts, sign-ins and links of the server, newest first."""
    with store_of(request).read() as tx:
        return {"audit": audit.changes(tx, None, limit, before)}
