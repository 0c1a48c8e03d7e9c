"""A model for people: bars in a terminal, and a page."""

from __future__ import annotations

from typing import Any

from firstpage.rankers.explain import Explanation
from firstpage.report import draw
from firstpage.report.page import figure, page
from firstpage.table import Table

WIDE = 40  # characters of the longest bar
SHAPES = 8  # step functions drawn, at most


def _lead(found: Explanation) -> str:
    record: dict[str, Any] = found.model.training
    data = record.get("data") or {}
    text = (
        f"{found.model.ranker}, trained on {data.get('queries', '?')} queries and "
        f"{data.get('documents', '?')} documents"
    )
    if record.get("score") is not None:
        text += f"; {record['measure']} on validation data {record['score']:.4f}"
    return text


def explanation_text(found: Explanation, top: int) -> str:
    """Bars of blocks, to the right for positive and marked for negative weights."""
    rows = found.ordered()[:top]
    most = max((abs(v) for _, v in rows), default=0.0) or 1.0
    width = max((len(n) for n, _ in rows), default=1)
    lines = [_lead(found), "", f"{'feature':<{width}}  {found.kind}"]
    for name, value in rows:
        bar = ("█" if value >= 0 else "░") * max(round(WIDE * abs(value) / most), 1 if value else 0)
        lines.append(f"{name:<{width}}  {value:+.4g}".ljust(width + 14) + bar)
    if len(found.names) > top:
        lines.append(f"({len(found.names) - top} more; --top shows them)")
    if any(v < 0 for _, v in rows):
        lines.append("░ lowers the score")
    return "\n".join(lines)


def explanation_page(found: Explanation, top: int) -> str:
    rows = found.ordered()
    kept = [[n, f"{v:+.6g}"] for n, v in rows]
    curve = [(int(i), m) for i, _, m in found.model.training.get("curve", []) if m is not None]
    drawn = [figure(draw.bars(rows[:top], found.kind), f"{found.kind}, the {top} greatest")]
    if len(curve) > 1:
        title = f"{found.model.training['measure']} on validation data, by iteration"
        drawn.append(figure(draw.line(curve, title), title))
    shapes = [
        figure(draw.steps(*found.steps[n], f"what {n} adds to the score"), n)
        for n, _ in rows[: min(top, SHAPES)]
        if n in found.steps
    ]
    parameters = [[k, str(v)] for k, v in found.model.parameters.items()]
    sections = [
        ("What it looks at", drawn),
        *([("How it reads them", shapes)] if shapes else []),
        ("All features", [Table(["feature", found.kind], kept).html()]),
        ("Parameters", [Table(["parameter", "value"], parameters, left=2).html()]),
    ]
    return page(found.model.ranker, _lead(found), sections)
