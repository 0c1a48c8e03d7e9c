"""Reports of reproductions: text, Markdown, LaTeX, CSV, or an HTML page with all figures.

Cells become tables as papers print them; of a figure, tables with the x axis downward; without
plots and layouts, tables with a row per cell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from firstpage import __version__
from firstpage.core import Table, curves, intervals
from firstpage.interop.report import anchor, figure, page, paragraph
from firstpage.papers.study.run import Reproduction, code_digest, library_versions
from firstpage.papers.study.study import (
    Cell,
    Claim,
    ClaimVerdict,
    EntryResult,
    Plot,
    Protocol,
    TableLayout,
)


def tables(result: EntryResult) -> list[Table]:
    """Return tables with all cells of an entry."""
    if not len(result.cells):
        return []
    entry = result.entry
    if entry.layouts:
        return [_layout_table(select_cells(result, v), layout) for v, layout in entry.layouts]
    if entry.plots:
        return [_plot_table(select_cells(result, value), plot) for value, plot in entry.plots]
    return [_list_table(list(result.cells))]


def select_cells(result: EntryResult, label_value: str) -> list[Cell]:
    """Return the cells with this value among their labels; "" selects all cells."""
    return [c for c in result.cells if not label_value or label_value in c.labels.values()]


def series_name(cell: Cell, label: str) -> str:
    """Return the name of a line: `DCGLearn`, or `data 1` where the value is not a string."""
    value = cell.labels[label]
    return value if isinstance(value, str) else f"{label} {value}"


def format_value(value: float) -> str:
    """Return a number with four decimals, or with one from 10 up."""
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"


def _with_error(cell: Cell) -> str:
    return format_value(cell.ours) + ("" if cell.se is None else f" ±{format_value(cell.se)}")


def _layout_table(cells: Sequence[Cell], layout: TableLayout) -> Table:
    """Return rows and columns in the order of cells, with printed values below ours."""
    by_position = {
        (str(c.labels.get(layout.row)), str(c.labels.get(layout.column))): c for c in cells
    }
    names = list(dict.fromkeys(row for row, _ in by_position))
    columns = list(dict.fromkeys(column for _, column in by_position))
    rows = list[list[str]]()
    for name in names:
        row_cells = [by_position.get((name, column)) for column in columns]
        rows.append([name, *("-" if c is None else _with_error(c) for c in row_cells)])
        printed = [None if c is None else c.paper for c in row_cells]
        if any(value is not None for value in printed):
            rows.append(["  paper", *("" if p is None else f"{p:.4f}" for p in printed)])
    return Table([layout.row, *columns], rows, title=layout.title)


def _plot_table(cells: Sequence[Cell], plot: Plot) -> Table:
    """Return a row per value of the x axis and a column per line."""
    if plot.x is None:
        return _list_table(cells)
    lines = list(dict.fromkeys(series_name(c, plot.series) for c in cells))
    by_position = {(series_name(c, plot.series), c.labels[plot.x]): c for c in cells}
    with_paper = {line for (line, _), c in by_position.items() if c.paper is not None}
    head = [plot.x]
    for name in lines:
        head += [name, "paper"] if name in with_paper else [name]
    rows = []
    for x in sorted({c.labels[plot.x] for c in cells}, key=lambda x: (isinstance(x, str), x)):
        row = [x if isinstance(x, str) else f"{x:g}"]
        for name in lines:
            cell = by_position.get((name, x))
            row.append("-" if cell is None else _with_error(cell))
            if name in with_paper:
                paper = None if cell is None else cell.paper
                row.append("" if paper is None else f"{paper:g}")
        rows.append(row)
    return Table(head, rows, title=plot.y)


def _list_table(cells: Sequence[Cell]) -> Table:
    """Return a row per cell."""
    labels = list(dict.fromkeys(label for cell in cells for label in cell.labels))
    return Table(
        [*labels, "paper", "ours", "se"],
        [_cell_row(c, labels) for c in cells],
        left_aligned=len(labels),
    )


def _cell_row(cell: Cell, labels: Sequence[str]) -> list[str]:
    cell_labels: dict[str, Any] = dict(cell.labels)
    paper = "" if cell.paper is None else f"{cell.paper:g}"
    error = "" if cell.se is None else format_value(cell.se)
    return [
        *(str(cell_labels.get(label, "")) for label in labels),
        paper,
        format_value(cell.ours),
        error,
    ]


def cell_table(reproductions: Sequence[Reproduction]) -> Table:
    """Return all cells of all entries, a row per cell, for spreadsheets."""
    cells = [
        (reproduction.study.name, result.entry, cell)
        for reproduction in reproductions
        for result in reproduction.results
        for cell in result.cells
    ]
    labels = list(dict.fromkeys(label for *_, c in cells for label in c.labels))
    rows = [
        [study, entry.name, *_cell_row(cell, labels), entry.held_equal]
        for study, entry, cell in cells
    ]
    head = ["study", "entry", *labels, "paper", "ours", "se", "held_equal"]
    return Table(head, rows, left_aligned=2 + len(labels))


VERDICT_PLURALS: dict[ClaimVerdict, str] = {
    "holds": "hold",
    "does not hold": "do not hold",
    "inconclusive": "inconclusive",
}


def summary(reproductions: Sequence[Reproduction]) -> str:
    """Return how many claims have each verdict."""
    counts = Counter(
        claim.verdict for _, result in _named_results(reproductions) for claim in result.claims
    )
    counted = (f"{counts[v]} {plural}" for v, plural in VERDICT_PLURALS.items() if counts[v])
    return f"Claims: {', '.join(counted)}"


def text(reproductions: Sequence[Reproduction], command: str) -> str:
    """Return the report for a terminal."""
    lines = list[str]()
    for reproduction in reproductions:
        lines += [reproduction.study.title, ""]
        for result in reproduction.results:
            lines += _entry_text(result)
    origin = [f"{name}: {value}" for name, value in provenance(reproductions, command)]
    return "\n".join([*lines, summary(reproductions), *origin])


def _entry_text(result: EntryResult) -> list[str]:
    lines = [f"{result.entry.name}: {result.entry.title}", ""]
    for table in tables(result):
        lines += [table.text(), ""]
    for claim in result.claims:
        lines += [f"  {claim.verdict}: {claim.label}", f"      {claim.evidence}"]
        lines += [f"      held equal: {text}" for text in _own_held_equal(result, claim)]
    lines.append(f"  held equal: {result.entry.held_equal}")
    if result.entry.note and not result.missing:
        lines.append(f"  note: {result.entry.note}")
    if result.entry.thinned:
        lines.append(f"  thinned: {result.entry.thinned}")
    return [*lines, ""]


def markdown(reproductions: Sequence[Reproduction], command: str) -> str:
    """Return the report as Markdown."""
    lines = list[str]()
    for reproduction in reproductions:
        lines += [f"# {reproduction.study.title}", "", summary([reproduction]) + ".", ""]
        for result in reproduction.results:
            entry = result.entry
            lines += [f"## {entry.name}: {entry.title}", "", f"The paper: {entry.statement}", ""]
            if entry.note:
                lines += [entry.note, ""]
            if entry.thinned:
                lines += [f"Thinned: {entry.thinned}", ""]
            for table in tables(result):
                lines += [table.markdown(), ""]
            lines += [claims_table(result).markdown(), "", f"Held equal: {entry.held_equal}", ""]
    origin = Table(["", ""], provenance(reproductions, command), left_aligned=2)
    return "\n".join([*lines, "## Provenance", "", origin.markdown()])


def latex(reproductions: Sequence[Reproduction], command: str) -> str:
    """Return the tables alone, each with its title in a comment."""
    lines = [f"% {name}: {value}" for name, value in provenance(reproductions, command)]
    for name, result in _named_results(reproductions):
        for table in tables(result):
            lines += [
                "",
                f"% {name}: {result.entry.title}",
                f"% held equal: {result.entry.held_equal}",
                table.latex(),
            ]
    return "\n".join(lines)


def _named_results(reproductions: Sequence[Reproduction]) -> Iterator[tuple[str, EntryResult]]:
    """Yield all results with the full names of their entries, such as `zhou2013/figure7`."""
    for reproduction in reproductions:
        for result in reproduction.results:
            yield f"{reproduction.study.name}/{result.entry.name}", result


def html(reproductions: Sequence[Reproduction], command: str) -> str:
    """Return one self-contained page."""
    sections: list[tuple[str, Sequence[str]]] = [("Verdicts", [_verdict_table(reproductions)])]
    for name, result in _named_results(reproductions):
        sections.append((f"{name}: {result.entry.title}", _entry_html(result)))
    origin = [Table(["", ""], provenance(reproductions, command), left_aligned=2).html()]
    origin += [
        paragraph(f"Warning during the runs: {note}")
        for reproduction in reproductions
        for note in _distinct_notes(reproduction)
    ]
    sections.append(("Provenance", origin))
    lead = (
        "Tables and figures, recomputed; error bars are two standard errors, over queries or else "
        f"over runs. {summary(reproductions)}."
    )
    several = len(reproductions) > 1
    title = "Reproduction of the papers" if several else reproductions[0].study.title
    return page(title, lead, sections)


def _entry_html(result: EntryResult) -> list[str]:
    entry = result.entry
    blocks = [paragraph(f"The paper: {entry.statement}")]
    blocks += [_plot_figure(result, *plot) for plot in entry.plots if len(result.cells)]
    numbers = "".join(table.html() for table in tables(result))
    if numbers and entry.layouts:
        blocks.append(numbers)
    blocks += [_claims_list(result), paragraph(f"Held equal: {entry.held_equal}")]
    if numbers and not entry.layouts:
        blocks.append(f"<details><summary>Numbers</summary>{numbers}</details>")
    if entry.note:
        blocks.append(f'<p class="note">{escape(entry.note)}</p>')
    if entry.thinned:
        blocks.append(f'<p class="note">Thinned: {escape(entry.thinned)}</p>')
    return blocks


def _distinct_notes(reproduction: Reproduction) -> list[str]:
    """Return the notes without those that differ from another one in numbers only."""
    notes: dict[str, str] = {}
    for note in reproduction.notes:
        notes.setdefault(re.sub(r"[\d.]+", "#", note), note)
    return list(notes.values())


def _own_held_equal(result: EntryResult, claim: Claim) -> list[str]:
    """Return what a claim holds equal, where it differs from that of its entry."""
    return [claim.held_equal] if claim.held_equal != result.entry.held_equal else []


def claims_table(result: EntryResult) -> Table:
    """Return a row per claim; verdicts other than "holds" are bold."""
    rows = [
        [
            c.label,
            c.verdict,
            "; ".join(
                [c.evidence, *(f"held equal: {text}" for text in _own_held_equal(result, c))]
            ),
        ]
        for c in result.claims
    ]
    bold = frozenset((r, 1) for r, c in enumerate(result.claims) if c.verdict != "holds")
    return Table(["claim", "verdict", "numbers"], rows, left_aligned=3, bold=bold)


def _claims_list(result: EntryResult) -> str:
    """Return the claims as a list; the evidence may be long."""
    items = []
    for claim in result.claims:
        notes = [
            claim.evidence,
            *(f"Held equal: {text}" for text in _own_held_equal(result, claim)),
        ]
        paragraphs = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
        items.append(f"<li><b>{claim.verdict}</b>: {escape(claim.label)}{paragraphs}</li>")
    return f"<ul>{''.join(items)}</ul>"


def _verdict_table(reproductions: Sequence[Reproduction]) -> str:
    """Return a row per entry with counts of verdicts and a link to its section."""
    rows = []
    for name, result in _named_results(reproductions):
        counts = Counter(claim.verdict for claim in result.claims)
        rows.append([name, result.entry.title, *(str(counts[v] or "") for v in VERDICT_PLURALS)])
    table = Table(["entry", "", *VERDICT_PLURALS], rows, left_aligned=2).html()
    for name, _ in _named_results(reproductions):
        link = f'<a href="#{anchor(name)}">{escape(name)}</a>'
        table = table.replace(f"<td>{escape(name)}</td>", f"<td>{link}</td>")
    return table


PROTOCOL_TEXTS: dict[Protocol, str] = {
    "quick": "quick; entries say what is thinned",
    "paper": "paper: the printed grids, rates and numbers of iterations in full",
}


def provenance(reproductions: Sequence[Reproduction], command: str) -> list[tuple[str, str]]:
    """Return command, options, data, code and versions behind the numbers."""
    plan = reproductions[0].plan
    runs = "as each entry defines them" if plan.seeds is None else str(plan.seeds)
    digests = {name: digest for r in reproductions for name, digest in r.data_digests.items()}
    code = ", ".join(f"{r.study.name} {code_digest(r.study.modules)}.." for r in reproductions)
    return [
        ("command", command),
        ("protocol", PROTOCOL_TEXTS[plan.protocol]),
        ("runs", runs + (", fast" if plan.fast else "")),
        ("seed", f"{plan.seed}; runs 0, 1, .. of every random stream"),
        *((f"data {name}", f"sha256 {digest}..") for name, digest in digests.items()),
        ("code", f"Firstpage {__version__}, sha256 of {code}"),
        ("versions", ", ".join(f"{name} {v}" for name, v in library_versions().items())),
    ]


def _plot_figure(result: EntryResult, label_value: str, plot: Plot) -> str:
    cells = select_cells(result, label_value)
    drawing = _dots(cells, plot) if plot.x is None else _lines(cells, plot)
    return figure(drawing, f"{plot.y}; {_sample_sizes(cells)}.")


def _sample_sizes(cells: Sequence[Cell]) -> str:
    """Return the number of queries or runs that error bars are based on."""
    counts = sorted({len(cell.samples) for cell in cells})
    kind = "runs" if all(cell.queries is None for cell in cells) else "queries"
    return f"{' to '.join(dict.fromkeys(map(str, (counts[0], counts[-1]))))} {kind}"


def _lines(cells: Sequence[Cell], plot: Plot) -> str:
    assert plot.x is not None
    points: dict[str, list[tuple[float, float]]] = {}
    bars: dict[str, list[tuple[float, float]]] = {}
    positions = _x_positions([cell.labels[plot.x] for cell in cells], plot.log_x)
    for cell in cells:
        name = series_name(cell, plot.series)
        points.setdefault(name, []).append((positions[cell.labels[plot.x]], cell.ours))
        half_width = 2 * (cell.se or 0.0)
        bars.setdefault(name, []).append((cell.ours - half_width, cell.ours + half_width))
    words = {x: value for value, x in positions.items() if isinstance(value, str)}
    return curves(points, plot.y, plot.x, plot.y, bars, plot.dashed, plot.log_x, words)


def _x_positions(values: Sequence[Any], log: bool) -> dict[Any, float]:
    """Return positions on the x axis; strings such as `full` come after the largest number."""
    numbers = [float(v) for v in values if not isinstance(v, str)]
    end = max(numbers, default=1.0)
    after = 2 * end if log else end + 0.15 * (end - min(numbers, default=0.0))
    return {v: after if isinstance(v, str) else float(v) for v in values}


def _dots(cells: Sequence[Cell], plot: Plot) -> str:
    """Draw a row per cell, named by its other labels and its line, grouped by the others."""
    groups: dict[str, list[tuple[str, float, float, float]]] = {}
    for cell in cells:
        others = [str(v) for k, v in cell.labels.items() if k != plot.series]
        name = ", ".join([*others, series_name(cell, plot.series)])
        half_width = 2 * (cell.se or 0.0)
        row = (name, cell.ours, cell.ours - half_width, cell.ours + half_width)
        groups.setdefault(", ".join(others), []).append(row)
    return intervals([row for rows in groups.values() for row in rows], plot.y)
