"""A table of text cells, and the notations it can be written in."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Cells are text; `bold` marks some as (row, column); columns after `left` align right."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    note: str = ""
    left: int = 1
    bold: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    star: str = "*"  # what stands for bold in plain text

    def _widths(self) -> list[int]:
        cells = [self.head, *self.rows]
        return [max(len(row[c]) for row in cells) for c in range(len(self.head))]

    def text(self) -> str:
        """For a terminal; bold cells get the star."""
        rows = [
            [cell + (self.star if (r, c) in self.bold else "") for c, cell in enumerate(row)]
            for r, row in enumerate(self.rows)
        ]
        starred = Table(self.head, rows, left=self.left)
        widths = starred._widths()

        def line(cells: Sequence[str]) -> str:
            parts = [
                f"{cell:<{w}}" if c < self.left else f"{cell:>{w}}"
                for c, (cell, w) in enumerate(zip(cells, widths, strict=True))
            ]
            return "  ".join(parts).rstrip()

        lines = [self.title] if self.title else []
        lines += [line(self.head), "  ".join("─" * w for w in widths)]
        lines += [line(row) for row in rows]
        return "\n".join(lines + ([self.note] if self.note else []))

    def markdown(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

        rule = ["---" if c < self.left else "---:" for c in range(len(self.head))]
        body = [
            line([f"**{x}**" if (r, c) in self.bold else x for c, x in enumerate(row)])
            for r, row in enumerate(self.rows)
        ]
        lines = [f"**{self.title}**", ""] if self.title else []
        lines += [line(self.head), line(rule), *body]
        return "\n".join(lines + (["", self.note] if self.note else []))

    def latex(self) -> str:
        def cell(text: str, strong: bool = False) -> str:
            safe = "".join(LATEX.get(c, c) for c in text).replace("−", "$-$")
            return rf"\textbf{{{safe}}}" if strong else safe

        columns = "l" * self.left + "r" * (len(self.head) - self.left)
        lines = [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\hline",
            " & ".join(cell(h) for h in self.head) + r" \\",
            r"\hline",
        ]
        lines += [
            " & ".join(cell(x, (r, c) in self.bold) for c, x in enumerate(row)) + r" \\"
            for r, row in enumerate(self.rows)
        ]
        lines += [r"\hline", r"\end{tabular}"]
        note = f"% {self.title}" if self.title else ""
        return "\n".join(([note] if note else []) + lines)

    def csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.head)
        writer.writerows(self.rows)
        return out.getvalue().rstrip("\n")

    def html(self) -> str:
        def row(cells: Sequence[str], tag: str, r: int = -1) -> str:
            parts = []
            for c, text in enumerate(cells):
                kind = "" if c < self.left else ' class="n"'
                inner = f"<b>{escape(text)}</b>" if (r, c) in self.bold else escape(text)
                parts.append(f"<{tag}{kind}>{inner}</{tag}>")
            return f"<tr>{''.join(parts)}</tr>"

        body = "".join(row(cells, "td", r) for r, cells in enumerate(self.rows))
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        return (
            f"<table>{caption}<thead>{row(self.head, 'th')}</thead><tbody>{body}</tbody></table>"
            + note
        )


NOTATIONS: dict[str, Callable[[Table], str]] = {
    "text": Table.text,
    "markdown": Table.markdown,
    "csv": Table.csv,
    "latex": Table.latex,
}
