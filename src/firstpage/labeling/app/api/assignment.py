"""Assignment: the current one, a proposed one, and assigning the queries."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.requests import Request

from firstpage.core import DataError
from firstpage.labeling.app.admission import LEAD, api_routes
from firstpage.labeling.app.security import store_of
from firstpage.labeling.app.store import Member, assigning
from firstpage.labeling.app.store.assigning import AssignmentPlan

routes = api_routes("assignment", "/projects/{slug}", admit=LEAD)


@routes.get("/assignment")
def preview(request: Request, member: Member) -> dict[str, Any]:
    """Return the proposed assignment, its problems and effort, and the `current` one.

    `current` is null before the first assignment.
    """
    with store_of(request).read() as tx:
        overview = assigning.overview(tx, member.project)
    if overview.next is None:
        raise DataError(overview.reason)
    current = None if overview.current is None else plan_record(overview.current)
    return {**plan_record(overview.next), "changes": overview.changes, "current": current}


@routes.post("/assignment")
def assign(request: Request, member: Member) -> dict[str, Any]:
    """Assign the open queries; started tasks stay unless their assessor has left."""
    with store_of(request).write() as tx:
        return plan_record(assigning.assign_tasks(tx, member.project, member.person))


def plan_record(plan: AssignmentPlan) -> dict[str, Any]:
    """Return a plan for JSON, with people by id."""
    return {
        "tasks": [asdict(task) for task in plan.assignment.tasks],
        "problems": plan.problems,
        "effort": {"judgments": plan.judgments, "hours": plan.hours},
        "workloads": [asdict(load) for load in plan.workloads],
        "idle": plan.idle,
        "abandoned": [asdict(task) for task in plan.assignment.abandoned],
    }
