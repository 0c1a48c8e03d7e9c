"""For leads: the measure that judgments of lists teach, how good it is, and whether to go on."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

from firstpage.report.gains import drawn
from firstpage.web.findings.choosing import told
from firstpage.web.findings.measure import Learned, learned
from firstpage.web.pages.shell import PageRoute, render, sentence
from firstpage.web.security import Lead, store_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)

CHOICES = [  # the option, its name, and what comes next by it
    ("order", "Order of work", "whatever is next in the order of work"),
    ("simple-margin", "Simple margin", "the pair that the measure is least sure of"),
    ("diverse", "Diverse", "the pair whose verdict may most easily turn round"),
    ("committee", "Committee", "the pair that measures from parts of the judgments quarrel about"),
]


@router.get("/p/{slug}/measure")
def measure_page(request: Request, member: Lead, intervals: bool = False) -> Response:
    """Intervals take a second, so a button asks for them."""
    with store_of(request).read() as tx:
        found = learned(tx, member.project)
    choice = told(member.project, found)
    return render(
        request, "lead/measure.html", member=member, found=found, choice=choice,
        words={name: words for name, _, words in CHOICES},
        advice=sentence(found.advice) if found.advice else None,
        pictures=_pictures(found, intervals), intervals=intervals,
    )  # fmt: skip


def _pictures(found: Learned, intervals: bool) -> Markup | None:
    if found.utility is None:
        return None
    return Markup(drawn(found.utility, found.intervals if intervals else None))
