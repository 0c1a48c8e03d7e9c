"""Reports on a tuned fusion of stages: text, JSON and an HTML page."""

from __future__ import annotations

import json
from typing import Any

from firstpage.core import Table
from firstpage.evaluation.aggregation import TunedFusion, weight_drawing
from firstpage.evaluation.planning import PoolReport, UnjudgedEffect
from firstpage.interop.report.html_page import figure, page, paragraph


def hybrid_text(tuned: TunedFusion, against: str, effect: UnjudgedEffect) -> str:
    """Return a report as plain text; the effect of unjudged documents is against this stage."""
    return f"{tuned}\n\nfusion minus {against}\n{effect}"


def hybrid_json(tuned: TunedFusion, against: str, effect: UnjudgedEffect, pool: PoolReport) -> str:
    """Return a report as JSON."""
    record: dict[str, Any] = tuned.to_dict()
    record["curve"] = tuned.curve()
    record["unjudged"] = {"against": against, **effect.to_dict(), "systems": pool.to_dict()["rows"]}
    return json.dumps(record, indent=2)


def hybrid_page(
    tuned: TunedFusion, against: str, effect: UnjudgedEffect, pool: PoolReport, source: str
) -> str:
    """Return a report as an HTML page."""
    last = tuned.best.stages[-1]
    caption = (
        f"Quality by the weight of {last} on all queries, with 95 % intervals of the best method. "
        f"At 0, {last} only adds documents below the others; at 1, the others only add documents."
    )
    sections = [
        ("Result", [paragraph(tuned.verdict), tuned.summary_table().html()]),
        ("Quality by weight", [figure(weight_drawing(tuned), caption)]),
        (
            "Unjudged documents",
            [
                paragraph(f"Fusion minus {against}:"),
                *(paragraph(line[0].upper() + line[1:]) for line in str(effect).splitlines()),
                pool.summary_table().html(),
            ],
        ),
        ("Choices", [paragraph(f"To use: {tuned.fusion}."), _choices(tuned).html()]),
    ]
    lead = f"Fusion of {' and '.join(tuned.fusion.stages)} by {tuned.measure}, {source}"
    return page("Hybrid search", lead, sections)


def _choices(tuned: TunedFusion) -> Table:
    """Return what each fold chose."""
    rows = [[str(number), str(choice)] for number, choice in enumerate(tuned.choices, 1)]
    return Table(
        ["fold", "fusion"],
        rows,
        note="Each fold takes the fusion that is best on the queries of the other folds.",
        left_aligned=2,
    )
