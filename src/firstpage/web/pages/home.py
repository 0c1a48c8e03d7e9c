"""The first page: one's projects, or the only one."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from firstpage.web.pages.shell import PageRoute, go, render
from firstpage.web.security import CurrentPerson, store_of
from firstpage.web.store import projects

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/")
def home(request: Request, person: CurrentPerson) -> Response:
    """An assessor of one project goes straight to work."""
    with store_of(request).read() as tx:
        mine = projects.of_person(tx, person)
    may_create = person.admin or any(m.leads for m in mine)
    if len(mine) == 1 and not may_create:
        return go(f"/p/{mine[0].project.slug}")
    return render(request, "home.html", members=mine, may_create=may_create)
