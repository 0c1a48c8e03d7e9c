"""Assignment: the deal as it is, what dealing out would give, and doing it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from firstpage.errors import DataError
from firstpage.web.admission import AdmissionRoute
from firstpage.web.security import Lead, csrf_header, store_of
from firstpage.web.store import assigning
from firstpage.web.store.assigning import Plan
from firstpage.web.store.logins import Login

router = APIRouter(tags=["assignment"], prefix="/projects/{slug}", route_class=AdmissionRoute)


@router.get("/assignment")
def preview(request: Request, member: Lead) -> dict[str, Any]:
    """Who would do what, what is wrong with it, and what it costs; `current` is the deal as it is.

    `current` is null before the first deal.
    """
    with store_of(request).read() as tx:
        deal = assigning.overview(tx, member.project)
    if deal.next is None:
        raise DataError(deal.why)
    now = None if deal.current is None else shown(deal.current)
    return {**shown(deal.next), "changes": deal.changes, "current": now}


@router.post("/assignment")
def deal_out(
    request: Request, member: Lead, login: Annotated[Login, Depends(csrf_header)]
) -> dict[str, Any]:
    """Deal the open work out; begun work stays, unless who began it has left."""
    with store_of(request).write() as tx:
        return shown(assigning.deal(tx, member.project, login.person))


def shown(plan: Plan) -> dict[str, Any]:
    """A plan for JSON; people by id."""
    return {
        "tasks": [asdict(task) for task in plan.assignment.tasks],
        "problems": plan.problems,
        "effort": {"judgments": plan.judgments, "hours": plan.hours},
        "loads": [asdict(load) for load in plan.loads],
        "idle": plan.idle,
        "abandoned": [asdict(task) for task in plan.assignment.abandoned],
    }
