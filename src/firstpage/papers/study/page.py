"""What a reproduction found, for people: text, Markdown, or one page with every figure drawn.

Cells become tables as papers print them; a figure's with its x axis downward; else a cell a row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from firstpage import __version__
from firstpage.papers.study.run import Reproduction, code_digest, versions
from firstpage.papers.study.study import Cell, Claim, Drawing, Grid, Outcome, Verdict
from firstpage.report.draw import curves, intervals
from firstpage.report.page import anchor, figure, page, paragraph
from firstpage.table import Table


def tables(outcome: Outcome) -> list[Table]:
    """All cells of an entry."""
    if not len(outcome.cells):
        return []
    found = [_grid(part_of(outcome, part), grid) for part, grid in outcome.entry.grids]
    if found:
        return found
    for part, drawing in outcome.entry.drawings:
        cells = part_of(outcome, part)
        found.append(_long(cells) if drawing.across is None else _across(cells, drawing))
    if not found:
        found.append(_long(list(outcome.cells)))
    return found


def part_of(outcome: Outcome, part: str) -> list[Cell]:
    """The cells of one picture: those with this word among their labels."""
    return [c for c in outcome.cells if not part or part in c.where.values()]


def name_of(cell: Cell, label: str) -> str:
    """What a line is called: `DCGLearn`, or `data 1` where the value says too little."""
    value = cell.where[label]
    return value if isinstance(value, str) else f"{label} {value}"


def shown(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"


def _with_error(cell: Cell) -> str:
    return shown(cell.ours) + ("" if cell.se is None else f" ±{shown(cell.se)}")


def _grid(cells: Sequence[Cell], grid: Grid) -> Table:
    """Rows and columns in the order of cells; the paper's row below ours, where it has one."""
    at = {(str(c.where.get(grid.row)), str(c.where.get(grid.column))): c for c in cells}
    names = list(dict.fromkeys(row for row, _ in at))
    columns = list(dict.fromkeys(column for _, column in at))
    rows = list[list[str]]()
    for name in names:
        own = [at.get((name, column)) for column in columns]
        rows.append([name, *("-" if c is None else _with_error(c) for c in own)])
        papers = [None if c is None else c.paper for c in own]
        if any(paper is not None for paper in papers):
            rows.append(["  paper", *("" if p is None else f"{p:.4f}" for p in papers)])
    return Table([grid.row, *columns], rows, title=grid.title)


def _across(cells: Sequence[Cell], drawing: Drawing) -> Table:
    assert drawing.across is not None
    lines = list(dict.fromkeys(name_of(c, drawing.line) for c in cells))
    at = {(name_of(c, drawing.line), c.where[drawing.across]): c for c in cells}
    said = [n for n in lines if any(c.paper is not None for (m, _), c in at.items() if m == n)]
    head = [drawing.across]
    for name in lines:
        head += [name, "paper"] if name in said else [name]
    rows = []
    for x in sorted(
        {c.where[drawing.across] for c in cells}, key=lambda x: (isinstance(x, str), x)
    ):
        row = [x if isinstance(x, str) else f"{x:g}"]
        for name in lines:
            cell = at.get((name, x))
            row.append("-" if cell is None else _with_error(cell))
            if name in said:
                paper = None if cell is None else cell.paper
                row.append("" if paper is None else f"{paper:g}")
        rows.append(row)
    return Table(head, rows, title=drawing.up)


def _long(cells: Sequence[Cell]) -> Table:
    labels = list(dict.fromkeys(label for cell in cells for label in cell.where))
    return Table(
        [*labels, "paper", "ours", "se"], [_row(c, labels) for c in cells], left_aligned=len(labels)
    )


def _row(cell: Cell, labels: Sequence[str]) -> list[str]:
    where: dict[str, Any] = dict(cell.where)
    paper = "" if cell.paper is None else f"{cell.paper:g}"
    error = "" if cell.se is None else shown(cell.se)
    return [*(str(where.get(label, "")) for label in labels), paper, shown(cell.ours), error]


def every_cell(found: Sequence[Reproduction]) -> Table:
    """All cells of all entries, a row each: for spreadsheets."""
    cells = [
        (each.study.name, o.entry, c) for each in found for o in each.outcomes for c in o.cells
    ]
    labels = list(dict.fromkeys(label for *_, c in cells for label in c.where))
    rows = [
        [study, entry.name, *_row(cell, labels), entry.held_equal] for study, entry, cell in cells
    ]
    head = ["study", "entry", *labels, "paper", "ours", "se", "held equal"]
    return Table(head, rows, left_aligned=2 + len(labels))


COUNTED: dict[Verdict, str] = {
    "holds": "hold",
    "does not hold": "do not hold",
    "cannot be tested": "cannot be tested",
}


def summary(every: Sequence[Reproduction]) -> str:
    """Verdicts, counted."""
    counts = Counter(claim.verdict for _, outcome in _named(every) for claim in outcome.claims)
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
        lines += [f"  {claim.verdict}: {claim.label}", f"      {claim.why}"]
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
    made = Table(["", ""], provenance(every, command), left_aligned=2)
    return "\n".join([*lines, "## How it was made", "", made.markdown()])


def latex(every: Sequence[Reproduction], command: str) -> str:
    """Tables alone, to be put into a paper; `% ..` says what each is."""
    lines = [f"% {a}: {b}" for a, b in provenance(every, command)]
    for name, outcome in _named(every):
        for table in tables(outcome):
            lines += ["", f"% {name}: {outcome.entry.title}",
                      f"% held equal: {outcome.entry.held_equal}", table.latex()]  # fmt: skip
    return "\n".join(lines)


def _named(every: Sequence[Reproduction]) -> Iterator[tuple[str, Outcome]]:
    """Yield all outcomes with the names of their entries in full: `zhou2013/figure7`."""
    for found in every:
        for outcome in found.outcomes:
            yield f"{found.study.name}/{outcome.entry.name}", outcome


def html(every: Sequence[Reproduction], command: str) -> str:
    """One page that needs nothing but itself."""
    sections: list[tuple[str, Sequence[str]]] = [("Verdicts", [_linked(every)])]
    for name, outcome in _named(every):
        sections.append((f"{name}: {outcome.entry.title}", _entry_html(outcome)))
    made = [Table(["", ""], provenance(every, command), left_aligned=2).html()]
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
            c.label,
            c.verdict,
            "; ".join([c.why, *(f"held equal: {own}" for own in _own(outcome, c))]),
        ]
        for c in outcome.claims
    ]
    bold = frozenset((r, 1) for r, c in enumerate(outcome.claims) if c.verdict != "holds")
    return Table(["claim", "verdict", "numbers"], rows, left_aligned=3, bold=bold)


def _claims(outcome: Outcome) -> str:
    """As a list, for the numbers of some are many."""
    items = []
    for claim in outcome.claims:
        notes = [claim.why, *(f"Held equal: {own}" for own in _own(outcome, claim))]
        shown = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
        items.append(f"<li><b>{claim.verdict}</b>: {escape(claim.label)}{shown}</li>")
    return f"<ul>{''.join(items)}</ul>"


def _linked(every: Sequence[Reproduction]) -> str:
    """An entry per row, how many of its claims hold, with a link to its section."""
    rows = []
    for name, outcome in _named(every):
        counts = Counter(claim.verdict for claim in outcome.claims)
        rows.append([name, outcome.entry.title, *(str(counts[v] or "") for v in COUNTED)])
    table = Table(["entry", "", "holds", "does not", "not tested"], rows, left_aligned=2).html()
    for name, _ in _named(every):
        link = f'<a href="#{anchor(name)}">{escape(name)}</a>'
        table = table.replace(f"<td>{escape(name)}</td>", f"<td>{link}</td>")
    return table


def provenance(every: Sequence[Reproduction], command: str) -> list[tuple[str, str]]:
    """What the numbers come from."""
    plan, told = every[0].plan, [("command", command)]
    seeds = "as each entry has it" if plan.seeds is None else str(plan.seeds)
    told.append(("runs", seeds + (", in haste" if plan.fast else "")))
    told.append(("seed", f"{plan.seed}; runs 0, 1, .. of every stream"))
    data = {name: mark for found in every for name, mark in found.data.items()}
    told += [(f"data {name}", f"sha256 {mark}..") for name, mark in data.items()]
    code = ", ".join(f"{f.study.name} {code_digest(f.study.modules)}.." for f in every)
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
