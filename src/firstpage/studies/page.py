"""What a reproduction found, for people: text, Markdown, or one page with every figure drawn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from html import escape

from firstpage import __version__
from firstpage.report.curves import curves
from firstpage.report.draw import intervals
from firstpage.report.page import figure, page, paragraph
from firstpage.report.table import Table
from firstpage.studies.base import Cell, Drawing, Outcome, Verdict
from firstpage.studies.keep import code_digest, versions
from firstpage.studies.run import Reproduction
from firstpage.studies.tables import name_of, part_of, tables

COUNTED: dict[Verdict, str] = {
    "holds": "hold",
    "does not hold": "do not hold",
    "cannot be tested": "cannot be tested",
}


def summary(found: Reproduction) -> str:
    """Verdicts, counted."""
    counts = Counter(claim.verdict for o in found.outcomes for claim in o.claims)
    said = ", ".join(f"{counts[v]} {name}" for v, name in COUNTED.items() if counts[v])
    return f"Claims: {said}"


def text(found: Reproduction, command: str) -> str:
    """For a terminal."""
    lines = [found.study.title, ""]
    for outcome in found.outcomes:
        lines += [f"{outcome.entry.name}: {outcome.entry.title}", ""]
        for table in tables(outcome):
            lines += [table.text(), ""]
        for claim in outcome.claims:
            ours = " (ours)" if claim.whose == "ours" else ""
            lines += [f"  {claim.verdict}: {claim.text}{ours}", f"      {claim.why}"]
        if outcome.entry.note and not outcome.missing:
            lines.append(f"  note: {outcome.entry.note}")
        lines.append("")
    return "\n".join(
        [*lines, summary(found), *(f"{a}: {b}" for a, b in provenance(found, command))]
    )


def markdown(found: Reproduction, command: str) -> str:
    lines = [f"# {found.study.title}", "", summary(found) + ".", ""]
    for outcome in found.outcomes:
        entry = outcome.entry
        lines += [f"## {entry.name}: {entry.title}", "", f"The paper: {entry.says}", ""]
        if entry.note:
            lines += [entry.note, ""]
        for table in tables(outcome):
            lines += [table.markdown(), ""]
        lines += [claims_table(outcome).markdown(), ""]
    lines += [
        "## How it was made",
        "",
        Table(["", ""], provenance(found, command), left=2).markdown(),
    ]
    return "\n".join(lines)


def html(found: Reproduction, command: str) -> str:
    """One page that needs nothing but itself."""
    sections: list[tuple[str, Sequence[str]]] = [("Verdicts", [_verdicts(found).html()])]
    for outcome in found.outcomes:
        entry = outcome.entry
        parts = [paragraph(f"The paper: {entry.says}")]
        parts += [_drawn(outcome, *drawing) for drawing in entry.drawings if len(outcome.cells)]
        parts.append(_claims(outcome))
        numbers = "".join(table.html() for table in tables(outcome))
        if numbers:
            parts.append(f"<details><summary>Numbers</summary>{numbers}</details>")
        if entry.note:
            parts.append(f'<p class="note">{escape(entry.note)}</p>')
        sections.append((f"{entry.name}: {entry.title}", parts))
    made = [Table(["", ""], provenance(found, command), left=2).html()]
    made += [paragraph(f"Noted on the way: {note}") for note in _notes(found)]
    sections.append(("How it was made", made))
    lead = "The paper's figures, computed again; bars are two standard errors over runs. "
    return page(found.study.title, lead + summary(found) + ".", sections)


def _notes(found: Reproduction) -> list[str]:
    """One of each kind: those that differ in their numbers only are one."""
    kinds: dict[str, str] = {}
    for note in found.notes:
        kinds.setdefault(re.sub(r"[\d.]+", "#", note), note)
    return list(kinds.values())


def claims_table(outcome: Outcome) -> Table:
    rows = [
        [c.text + (" (ours)" if c.whose == "ours" else ""), c.verdict, c.why]
        for c in outcome.claims
    ]
    bold = frozenset((r, 1) for r, c in enumerate(outcome.claims) if c.verdict != "holds")
    return Table(["claim", "verdict", "numbers"], rows, left=3, bold=bold)


def _claims(outcome: Outcome) -> str:
    """As a list, for the numbers of some are many."""
    items = []
    for claim in outcome.claims:
        text = escape(claim.text) + (" (ours)" if claim.whose == "ours" else "")
        items.append(
            f'<li><b>{claim.verdict}</b>: {text}<p class="note">{escape(claim.why)}</p></li>'
        )
    return f"<ul>{''.join(items)}</ul>"


def _verdicts(found: Reproduction) -> Table:
    """An entry a row, how many of its claims hold."""
    rows = []
    for outcome in found.outcomes:
        counts = Counter(claim.verdict for claim in outcome.claims)
        rows.append(
            [outcome.entry.name, outcome.entry.title, *(str(counts[v] or "") for v in COUNTED)]
        )
    return Table(["entry", "", "holds", "does not", "not tested"], rows, left=2)


def provenance(found: Reproduction, command: str) -> list[tuple[str, str]]:
    """What the numbers come from."""
    plan, told = found.plan, [("command", command)]
    seeds = "as each entry has it" if plan.seeds is None else str(plan.seeds)
    told.append(("runs", seeds + (", in haste" if plan.fast else "")))
    told.append(("seed", f"{plan.seed}; runs 0, 1, .. of every stream"))
    told += [(f"data {name}", f"sha256 {mark}..") for name, mark in found.data.items()]
    told.append(("code", f"Firstpage {__version__}, sha256 {code_digest(found.study.rooms)}.."))
    told.append(("versions", ", ".join(f"{name} {v}" for name, v in versions().items())))
    return told


def _drawn(outcome: Outcome, part: str, drawing: Drawing) -> str:
    cells = part_of(outcome, part)
    drawn = _bars(cells, drawing) if drawing.across is None else _lines(cells, drawing)
    return figure(drawn, f"{drawing.up}; {_runs(cells)}.")


def _runs(cells: Sequence[Cell]) -> str:
    counts = sorted({len(cell.values) for cell in cells})
    return f"{' to '.join(dict.fromkeys(map(str, (counts[0], counts[-1]))))} runs"


def _lines(cells: Sequence[Cell], drawing: Drawing) -> str:
    assert drawing.across is not None
    points: dict[str, list[tuple[float, float]]] = {}
    bars: dict[str, list[tuple[float, float]]] = {}
    for cell in cells:
        name = name_of(cell, drawing.line)
        points.setdefault(name, []).append((float(cell.where[drawing.across]), cell.ours))
        far = 2 * (cell.se or 0.0)
        bars.setdefault(name, []).append((cell.ours - far, cell.ours + far))
    return curves(points, drawing.up, drawing.across, drawing.up, bars, drawing.dashed)


def _bars(cells: Sequence[Cell], drawing: Drawing) -> str:
    """A row a cell, the rest of its labels first."""
    rows = []
    for cell in cells:
        rest = [str(v) for k, v in cell.where.items() if k != drawing.line]
        name = ", ".join([*rest, name_of(cell, drawing.line)])
        far = 2 * (cell.se or 0.0)
        rows.append((name, cell.ours, cell.ours - far, cell.ours + far))
    rows.sort(key=lambda row: row[0].split(", ")[0] if ", " in row[0] else "")
    return intervals(rows, drawing.up)
