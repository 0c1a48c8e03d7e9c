"""Cells as tables: a figure's with its x axis downward, any other's a cell a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firstpage.report.table import Table
from firstpage.studies.base import Cell, Drawing, Outcome


def tables(outcome: Outcome) -> list[Table]:
    """All cells of an entry."""
    found = list[Table]()
    for part, drawing in outcome.entry.drawings:
        cells = part_of(outcome, part)
        found.append(_long(cells) if drawing.across is None else _across(cells, drawing))
    if not found and len(outcome.cells):
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


def _across(cells: Sequence[Cell], drawing: Drawing) -> Table:
    assert drawing.across is not None
    lines = list(dict.fromkeys(name_of(c, drawing.line) for c in cells))
    at = {(name_of(c, drawing.line), c.where[drawing.across]): c for c in cells}
    said = [n for n in lines if any(c.paper is not None for (m, _), c in at.items() if m == n)]
    head = [drawing.across]
    for name in lines:
        head += [name, "paper"] if name in said else [name]
    rows = []
    for x in sorted({c.where[drawing.across] for c in cells}):
        row = [f"{x:g}"]
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
        [*labels, "paper", "ours", "se"], [_row(c, labels) for c in cells], left=len(labels)
    )


def _row(cell: Cell, labels: Sequence[str]) -> list[str]:
    where: dict[str, Any] = dict(cell.where)
    paper = "" if cell.paper is None else f"{cell.paper:g}"
    error = "" if cell.se is None else shown(cell.se)
    return [*(str(where.get(label, "")) for label in labels), paper, shown(cell.ours), error]


def every_cell(outcomes: Sequence[Outcome]) -> Table:
    """All cells of all entries, a row each: for spreadsheets."""
    cells = [(o.entry.name, c) for o in outcomes for c in o.cells]
    labels = list(dict.fromkeys(label for _, c in cells for label in c.where))
    rows = [[name, *_row(cell, labels)] for name, cell in cells]
    return Table(["entry", *labels, "paper", "ours", "se"], rows, left=1 + len(labels))
