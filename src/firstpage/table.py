"""A table of text cells, and the notations it can be written in."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$",
    ">": r"$>$", "−": r"$-$", "±": r"$\pm$", "×": r"$\times$", "†": r"$\dagger$",
    "▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$", "≤": r"$\le$", "≥": r"$\ge$",
    "→": r"$\to$", "·": r"$\cdot$", "…": r"\ldots{}", "–": "--", "—": "---",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Cells are text; `bold` marks some as (row, column); columns after `left` align right.

    meaning  what bold says, for the legend below the table
    mark     what stands for bold in plain text; an asterisk would read as significance
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    note: str = ""
    left: int = 1
    bold: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    meaning: str = ""
    mark: str = ""

    def _notes(self, plain: bool = False) -> list[str]:
        """Return the lines below the table: the legend of what is bold, and the note."""
        shown = bool(self.bold and self.meaning) and (not plain or bool(self.mark))
        legend = f"{self.mark} {self.meaning}" if plain else f"bold: {self.meaning}"
        return ([legend] if shown else []) + ([self.note] if self.note else [])

    def text(self) -> str:
        """For a terminal; bold cells get the mark."""
        rows = [
            [cell + (self.mark if (r, c) in self.bold else "") for c, cell in enumerate(row)]
            for r, row in enumerate(self.rows)
        ]
        widths = [max(map(len, column)) for column in zip(self.head, *rows, strict=True)]

        def line(cells: Sequence[str]) -> str:
            parts = [
                f"{cell:<{w}}" if c < self.left else f"{cell:>{w}}"
                for c, (cell, w) in enumerate(zip(cells, widths, strict=True))
            ]
            return "  ".join(parts).rstrip()

        lines = [self.title] if self.title else []
        lines += [line(self.head), "  ".join("─" * w for w in widths)]
        lines += [line(row) for row in rows]
        return "\n".join(lines + self._notes(plain=True))

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
        return "\n".join(lines + [text for note in self._notes() for text in ("", note)])

    def latex(self) -> str:
        """A tabular with the notes below it; comments say the title and the package it needs."""
        columns = "l" * self.left + "r" * (len(self.head) - self.left)
        lines = [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\hline",
            " & ".join(map(latex_text, self.head)) + r" \\",
            r"\hline",
        ]
        for r, row in enumerate(self.rows):
            cells = [
                rf"\textbf{{{latex_text(x)}}}" if (r, c) in self.bold else latex_text(x)
                for c, x in enumerate(row)
            ]
            lines.append(" & ".join(cells) + r" \\")
        lines += [r"\hline", r"\end{tabular}"]
        for note in self._notes():
            lines.append(rf"\par\smallskip{{\footnotesize {latex_text(note)}\par}}")
        comments = [f"% {self.title}"] if self.title else []
        if any(r"\blacktriangle" in line for line in lines):
            comments.append(r"% needs \usepackage{amssymb}")
        return "\n".join(comments + lines)

    def csv(self, delimiter: str = ",") -> str:
        out = io.StringIO()
        writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
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
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self._notes())
        return (
            f"<table>{caption}<thead>{row(self.head, 'th')}</thead><tbody>{body}</tbody></table>"
            + notes
        )


def latex_text(text: str) -> str:
    """Return a text with what LaTeX reads as commands, or lacks, written in LaTeX."""
    return "".join(LATEX.get(letter, letter) for letter in text)


NOTATIONS: dict[str, Callable[[Table], str]] = {
    "text": Table.text,
    "markdown": Table.markdown,
    "csv": Table.csv,
    "latex": Table.latex,
}
