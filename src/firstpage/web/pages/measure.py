"""For leads: the measure that judgments of lists teach, how good it is, and whether to go on."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

from firstpage.report.measure import drawn
from firstpage.web.analysis.choosing import told
from firstpage.web.analysis.measure import learned
from firstpage.web.pages.rendering import PageRoute, render, sentence
from firstpage.web.security import Lead, store_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)

CHOICES = [  # the option, its name, and what comes next by it
    ("order", "Order of work", "whatever is next in the order of work"),
    ("simple-margin", "Simple margin", "the pair that the measure is least sure of"),
    ("diverse", "Diverse", "the pair whose verdict may most easily turn round"),
    ("committee", "Committee", "the pair that measures from parts of the judgments quarrel about"),
]

ADVICE = {
    "stop": "More judgments hardly pay.",
    "go on": "Go on judging.",
    "unclear": "It is open whether more judgments pay.",
    "too few": "Too few judgments to say whether more pay.",
}


@router.get("/p/{slug}/measure")
def measure_page(request: Request, member: Lead) -> Response:
    """Show the measure with its intervals, how it compares with DCG, and whether to go on."""
    with store_of(request).read() as tx:
        found = learned(tx, member.project)
    choice = told(member.project, found)
    return render(
        request, "lead/measure.html", member=member, found=found, choice=choice,
        words={name: words for name, _, words in CHOICES}, advice_words=ADVICE,
        advice=sentence(found.advice) if found.advice else None,
        comparison=sentence(found.comparison) if found.comparison else None,
        pictures=Markup(drawn(found.utility, found.intervals)) if found.utility else None,
    )  # fmt: skip
