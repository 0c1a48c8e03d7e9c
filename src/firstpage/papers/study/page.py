"""What a reproduction found, for people: text, Markdown, or one page with every figure drawn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from firstpage import __version__
from firstpage.papers.study.cache import code_digest, versions
from firstpage.papers.study.run import Reproduction
from firstpage.papers.study.study import Cell, Claim, Drawing, Outcome, Verdict
from firstpage.papers.study.tables import name_of, part_of, tables
from firstpage.report.draw import curves, intervals
from firstpage.report.page import anchor, figure, page, paragraph
from firstpage.table import Table

COUNTED: dict[Verdict, str] = {
    "holds": "hold",
    "does not hold": "do not hold",
    "cannot be tested": "cannot be tested",
}


def summary(every: Sequence[Reproduction]) -> str:
    """Verdicts, counted."""
    counts = Counter(c.verdict for found in every for o in found.outcomes for c in o.claims)
    said = ", ".join(f"{counts[v]} {name}" for v, name in COUNTED.items() if counts[v])
    return f"Claims: {said}"


def text(every: Sequence[Reproduction], command: str) -> str:
    """For a terminal."""
    lines = list[str]()
    for found in every:
        lines += [found.study.title, ""]
        for outcome in found.outcomes:
            lines += _entry_text(outcome)
    return "\n".join(
        [*lines, summary(every), *(f"{a}: {b}" for a, b in provenance(every, command))]
    )


def _entry_text(outcome: Outcome) -> list[str]:
    lines = [f"{outcome.entry.name}: {outcome.entry.title}", ""]
    for table in tables(outcome):
        lines += [table.text(), ""]
    for claim in outcome.claims:
        ours = " (ours)" if claim.whose == "ours" else ""
        lines += [f"  {claim.verdict}: {claim.text}{ours}", f"      {claim.why}"]
        lines += [f"      held equal: {own}" for own in _own(outcome, claim)]
    lines.append(f"  held equal: {outcome.entry.held_equal}")
    if outcome.entry.note and not outcome.missing:
        lines.append(f"  note: {outcome.entry.note}")
    return [*lines, ""]


def markdown(every: Sequence[Reproduction], command: str) -> str:
    lines = list[str]()
    for found in every:
        lines += [f"# {found.study.title}", "", summary([found]) + ".", ""]
        for outcome in found.outcomes:
            entry = outcome.entry
            lines += [f"## {entry.name}: {entry.title}", "", f"The paper: {entry.says}", ""]
            if entry.note:
                lines += [entry.note, ""]
            for table in tables(outcome):
                lines += [table.markdown(), ""]
            lines += [claims_table(outcome).markdown(), "", f"Held equal: {entry.held_equal}", ""]
    made = Table(["", ""], provenance(every, command), left=2)
    return "\n".join([*lines, "## How it was made", "", made.markdown()])


def latex(every: Sequence[Reproduction], command: str) -> str:
    """Tables alone, to be put into a paper; `% ..` says what each is."""
    lines = [f"% {a}: {b}" for a, b in provenance(every, command)]
    for found in every:
        for outcome in found.outcomes:
            entry = outcome.entry
            for table in tables(outcome):
                lines += ["", f"% {found.study.name}/{entry.name}: {entry.title}",
                          f"% held equal: {entry.held_equal}", table.latex()]  # fmt: skip
    return "\n".join(lines)


def html(every: Sequence[Reproduction], command: str) -> str:
    """One page that needs nothing but itself."""
    sections: list[tuple[str, Sequence[str]]] = [("Verdicts", [_linked(every)])]
    for found in every:
        for outcome in found.outcomes:
            head = f"{_full_name(found, outcome)}: {outcome.entry.title}"
            sections.append((head, _entry_html(outcome)))
    made = [Table(["", ""], provenance(every, command), left=2).html()]
    made += [paragraph(f"Noted on the way: {note}") for found in every for note in _notes(found)]
    sections.append(("How it was made", made))
    lead = (
        "Tables and figures, computed again; bars are two standard errors, over queries or else "
        f"over runs. {summary(every)}."
    )
    title = every[0].study.title if len(every) == 1 else "What the papers say, computed again"
    return page(title, lead, sections)


def _entry_html(outcome: Outcome) -> list[str]:
    entry = outcome.entry
    parts = [paragraph(f"The paper: {entry.says}")]
    parts += [_drawn(outcome, *drawing) for drawing in entry.drawings if len(outcome.cells)]
    numbers = "".join(table.html() for table in tables(outcome))
    if numbers and entry.grids:
        parts.append(numbers)
    parts += [_claims(outcome), paragraph(f"Held equal: {entry.held_equal}")]
    if numbers and not entry.grids:
        parts.append(f"<details><summary>Numbers</summary>{numbers}</details>")
    if entry.note:
        parts.append(f'<p class="note">{escape(entry.note)}</p>')
    return parts


def _full_name(found: Reproduction, outcome: Outcome) -> str:
    return f"{found.study.name}/{outcome.entry.name}"


def _notes(found: Reproduction) -> list[str]:
    """One of each kind: those that differ in their numbers only are one."""
    kinds: dict[str, str] = {}
    for note in found.notes:
        kinds.setdefault(re.sub(r"[\d.]+", "#", note), note)
    return list(kinds.values())


def _own(outcome: Outcome, claim: Claim) -> list[str]:
    """What a claim holds equal, where that is not what its entry says."""
    return [claim.held_equal] if claim.held_equal != outcome.entry.held_equal else []


def claims_table(outcome: Outcome) -> Table:
    rows = [
        [
            c.text + (" (ours)" if c.whose == "ours" else ""),
            c.verdict,
            "; ".join([c.why, *(f"held equal: {own}" for own in _own(outcome, c))]),
        ]
        for c in outcome.claims
    ]
    bold = frozenset((r, 1) for r, c in enumerate(outcome.claims) if c.verdict != "holds")
    return Table(["claim", "verdict", "numbers"], rows, left=3, bold=bold)


def _claims(outcome: Outcome) -> str:
    """As a list, for the numbers of some are many."""
    items = []
    for claim in outcome.claims:
        text = escape(claim.text) + (" (ours)" if claim.whose == "ours" else "")
        notes = [claim.why, *(f"Held equal: {own}" for own in _own(outcome, claim))]
        shown = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
        items.append(f"<li><b>{claim.verdict}</b>: {text}{shown}</li>")
    return f"<ul>{''.join(items)}</ul>"


def _verdicts(every: Sequence[Reproduction]) -> Table:
    """An entry a row, how many of its claims hold."""
    rows = []
    for found in every:
        for outcome in found.outcomes:
            counts = Counter(claim.verdict for claim in outcome.claims)
            name = _full_name(found, outcome)
            rows.append([name, outcome.entry.title, *(str(counts[v] or "") for v in COUNTED)])
    return Table(["entry", "", "holds", "does not", "not tested"], rows, left=2)


def _linked(every: Sequence[Reproduction]) -> str:
    """Verdicts, each entry with a link to its section."""
    table = _verdicts(every).html()
    for found in every:
        for outcome in found.outcomes:
            name = _full_name(found, outcome)
            table = table.replace(
                f"<td>{escape(name)}</td>",
                f'<td><a href="#{anchor(name)}">{escape(name)}</a></td>',
            )
    return table


def provenance(every: Sequence[Reproduction], command: str) -> list[tuple[str, str]]:
    """What the numbers come from."""
    plan, told = every[0].plan, [("command", command)]
    seeds = "as each entry has it" if plan.seeds is None else str(plan.seeds)
    told.append(("runs", seeds + (", in haste" if plan.fast else "")))
    told.append(("seed", f"{plan.seed}; runs 0, 1, .. of every stream"))
    data = {name: mark for found in every for name, mark in found.data.items()}
    told += [(f"data {name}", f"sha256 {mark}..") for name, mark in data.items()]
    code = ", ".join(f"{f.study.name} {code_digest(f.study.rooms)}.." for f in every)
    told.append(("code", f"Firstpage {__version__}, sha256 of {code}"))
    told.append(("versions", ", ".join(f"{name} {v}" for name, v in versions().items())))
    return told


def _drawn(outcome: Outcome, part: str, drawing: Drawing) -> str:
    cells = part_of(outcome, part)
    drawn = _bars(cells, drawing) if drawing.across is None else _lines(cells, drawing)
    return figure(drawn, f"{drawing.up}; {_counted(cells)}.")


def _counted(cells: Sequence[Cell]) -> str:
    """What bars are over."""
    counts = sorted({len(cell.units) for cell in cells})
    what = "runs" if all(cell.queries is None for cell in cells) else "queries"
    return f"{' to '.join(dict.fromkeys(map(str, (counts[0], counts[-1]))))} {what}"


def _lines(cells: Sequence[Cell], drawing: Drawing) -> str:
    assert drawing.across is not None
    points: dict[str, list[tuple[float, float]]] = {}
    bars: dict[str, list[tuple[float, float]]] = {}
    places = _places([cell.where[drawing.across] for cell in cells], drawing.log)
    for cell in cells:
        name = name_of(cell, drawing.line)
        points.setdefault(name, []).append((places[cell.where[drawing.across]], cell.ours))
        far = 2 * (cell.se or 0.0)
        bars.setdefault(name, []).append((cell.ours - far, cell.ours + far))
    words = {x: value for value, x in places.items() if isinstance(value, str)}
    return curves(
        points, drawing.up, drawing.across, drawing.up, bars, drawing.dashed, drawing.log, words
    )


def _places(values: Sequence[Any], log: bool) -> dict[Any, float]:
    """Where along the axis; words, such as `full`, come after the greatest number."""
    numbers = [float(v) for v in values if not isinstance(v, str)]
    end = max(numbers, default=1.0)
    after = 2 * end if log else end + 0.15 * (end - min(numbers, default=0.0))
    return {v: after if isinstance(v, str) else float(v) for v in values}


def _bars(cells: Sequence[Cell], drawing: Drawing) -> str:
    """A row a cell, the rest of its labels first; lines that share them stand together."""
    groups: dict[str, list[tuple[str, float, float, float]]] = {}
    for cell in cells:
        rest = [str(v) for k, v in cell.where.items() if k != drawing.line]
        name = ", ".join([*rest, name_of(cell, drawing.line)])
        far = 2 * (cell.se or 0.0)
        row = (name, cell.ours, cell.ours - far, cell.ours + far)
        groups.setdefault(", ".join(rest), []).append(row)
    return intervals([row for rows in groups.values() for row in rows], drawing.up)
