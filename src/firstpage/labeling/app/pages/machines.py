"""The page on machines: how far they judge like people, and where people are needed."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from firstpage.core import intervals
from firstpage.core.http import sentence
from firstpage.labeling.app.api.analysis import Margin, show_machines
from firstpage.labeling.app.pages.rendering import LEAD, page_routes, render, tool_labels
from firstpage.labeling.app.store.projects import Member
from firstpage.labeling.machines.calibration import DEFAULT_MARGIN

routes = page_routes(LEAD)


@routes.get("/p/{slug}/machines")
def machines(request: Request, member: Member, margin: Margin = DEFAULT_MARGIN) -> Response:
    """Show the calibration of the project's machines."""
    report = show_machines(request, member, margin)
    labels = tool_labels(member.project)
    return render(
        request,
        "lead/machines.html",
        member=member,
        machines=report["machines"],
        margin=margin,
        reason=sentence(report["reason"]) if report["reason"] else None,
        tool_labels=labels,
        chart=_chart(report["machines"], labels),
    )


def _chart(machines: list[dict[str, Any]], labels: dict[str, str]) -> Markup | None:
    """Return a plot of how much less often machines agree with a person than people do."""
    rows = [
        (f"{row['name']}, {labels[row['tool']]}", gap["value"], gap["low"], gap["high"])
        for row in machines
        if None not in (gap := row["gap"]).values()
    ]
    title = "Agreement of a machine with a person, minus that of two people"
    return Markup(intervals(rows, title, zero=True)) if rows else None
