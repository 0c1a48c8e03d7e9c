"""Cells as tables: as papers print them; a figure's with its x axis downward; else a cell a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firstpage.papers.study.run import Reproduction
from firstpage.papers.study.study import Cell, Drawing, Grid, Outcome
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
    for x in sorted({c.where[drawing.across] for c in cells}, key=_along):
        row = [x if isinstance(x, str) else f"{x:g}"]
        for name in lines:
            cell = at.get((name, x))
            row.append("-" if cell is None else _with_error(cell))
            if name in said:
                paper = None if cell is None else cell.paper
                row.append("" if paper is None else f"{paper:g}")
        rows.append(row)
    return Table(head, rows, title=drawing.up)


def _along(value: Any) -> tuple[bool, Any]:
    """Numbers first, then words such as `full`."""
    return isinstance(value, str), value


def _long(cells: Sequence[Cell]) -> Table:
    labels = list(dict.fromkeys(label for cell in cells for label in cell.where))
    return Table(
        [*labels, "paper", "ours", "se"], [_row(c, labels) for c in cells], left=len(labels)
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
    return Table(head, rows, left=2 + len(labels))
