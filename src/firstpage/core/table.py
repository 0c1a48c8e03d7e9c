"""A table of text cells, and the formats in which it can be rendered."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$",
    ">": r"$>$", "−": r"$-$", "±": r"$\pm$", "×": r"$\times$", "†": r"$\dagger$",
    "▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$", "≤": r"$\le$", "≥": r"$\ge$",
    "→": r"$\to$", "·": r"$\cdot$", "…": r"\ldots{}", "–": "--", "—": "---",
    "≈": r"$\approx$", "∞": r"$\infty$", "α": r"$\alpha$", "κ": r"$\kappa$", "λ": r"$\lambda$",
    "μ": r"$\mu$", "σ": r"$\sigma$", "τ": r"$\tau$", "²": r"$^2$", "’": "'", "|": r"\textbar{}",
}  # fmt: skip

NUMBER = r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?%?|inf|nan)"
MARKS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"  # the last four are the full-width forms of = + - @
FORMULA = re.compile(rf"(?!'*(?:{NUMBER}|.)\Z)'*[{re.escape(MARKS)}]", re.DOTALL)
FIRST = frozenset(f"'{MARKS}")


def counted(count: int, units: str) -> str:
    """Return a number of units in words, such as "1 query" or "2 queries"."""
    single = units.removesuffix("s") if units != "queries" else "query"
    return f"{count:,} {single if count == 1 else units}"


def escape_formula(cell: str) -> str:
    """Return a cell of a CSV file as spreadsheets may open it: an apostrophe precedes formulas.

    Formulas begin with = + - @, a tab or a line break and are not numbers.  Text that begins with
    apostrophes before such a mark gets one more, so that `unescape_formula` returns every text.
    """
    return f"'{cell}" if cell[:1] in FIRST and FORMULA.match(cell) else cell


def csv_line(cells: Iterable[object], delimiter: str = ",") -> str:
    """Return a line of a CSV file; texts that spreadsheets would run as formulas are escaped.

    Cells with a carriage return are quoted, since what follows it would begin another row.
    """
    out = io.StringIO()
    safe = [escape_formula(cell) if isinstance(cell, str) else cell for cell in cells]
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerow(safe)
    return out.getvalue()[:-2] + "\n"


def unescape_formula(cell: str) -> str:
    """Return the text that `escape_formula` wrote as this cell."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


@dataclass(frozen=True)
class Table:
    """A table of text cells.

    Attributes
    ----------
    head : sequence of str
        The column headings.
    rows : sequence of sequence of str
        The cells, row by row.
    title, note : str
        Texts above and below the table.
    left_aligned : int
        How many columns, from the first, are aligned left; the others are aligned right.
    bold : frozenset of (int, int)
        The (row, column) of the cells in bold.
    bold_legend : str
        What bold means, for the legend below the table.
    bold_mark : str
        The character that follows a bold cell in plain text.  An asterisk would suggest
        significance.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    note: str = ""
    left_aligned: int = 1
    bold: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    bold_legend: str = ""
    bold_mark: str = ""

    def _notes(self, plain: bool = False) -> list[str]:
        """Return the lines below the table: the legend of bold cells, and the note."""
        shown = bool(self.bold and self.bold_legend) and (not plain or bool(self.bold_mark))
        legend = f"{self.bold_mark} {self.bold_legend}" if plain else f"bold: {self.bold_legend}"
        return ([legend] if shown else []) + ([self.note] if self.note else [])

    def text(self) -> str:
        """Return the table as plain text for a terminal; the mark follows bold cells."""
        rows = [
            [cell + (self.bold_mark if (r, c) in self.bold else "") for c, cell in enumerate(row)]
            for r, row in enumerate(self.rows)
        ]
        widths = [max(map(len, column)) for column in zip(self.head, *rows, strict=True)]

        def line(cells: Sequence[str]) -> str:
            padded = [
                f"{cell:<{w}}" if c < self.left_aligned else f"{cell:>{w}}"
                for c, (cell, w) in enumerate(zip(cells, widths, strict=True))
            ]
            return "  ".join(padded).rstrip()

        lines = [self.title] if self.title else []
        lines += [line(self.head), "  ".join("─" * w for w in widths)]
        lines += [line(row) for row in rows]
        return "\n".join(lines + self._notes(plain=True))

    def markdown(self) -> str:
        """Return the table in GitHub-flavored Markdown."""

        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

        rule = ["---" if c < self.left_aligned else "---:" for c in range(len(self.head))]
        body = [
            line([f"**{x}**" if (r, c) in self.bold else x for c, x in enumerate(row)])
            for r, row in enumerate(self.rows)
        ]
        lines = [f"**{self.title}**", ""] if self.title else []
        lines += [line(self.head), line(rule), *body]
        return "\n".join(lines + [text for note in self._notes() for text in ("", note)])

    def latex(self) -> str:
        """Return a LaTeX tabular; comments give the title and the packages that it needs."""
        columns = "l" * self.left_aligned + "r" * (len(self.head) - self.left_aligned)
        rows = [
            [
                rf"\textbf{{{latex_text(x)}}}" if (r, c) in self.bold else latex_text(x)
                for c, x in enumerate(row)
            ]
            for r, row in enumerate(self.rows)
        ]
        lines = latex_tabular(columns, [latex_text(cell) for cell in self.head], rows)
        lines += map(latex_note, self._notes())
        comments = [f"% {self.title}"] if self.title else []
        comments.append(r"% needs \usepackage{booktabs}")
        if any(r"\blacktriangle" in line for line in lines):
            comments.append(r"% needs \usepackage{amssymb}")
        return "\n".join(comments + lines)

    def csv(self, delimiter: str = ",") -> str:
        """Return the head and the rows as delimited text, without title, notes and formulas."""
        lines = (csv_line(row, delimiter) for row in (self.head, *self.rows))
        return "".join(lines).rstrip("\n")

    def html(self) -> str:
        """Return an HTML table with the notes as paragraphs below it."""

        def row(cells: Sequence[str], tag: str, r: int = -1) -> str:
            columns = []
            for c, text in enumerate(cells):
                kind = "" if c < self.left_aligned else ' class="n"'
                inner = f"<b>{escape(text)}</b>" if (r, c) in self.bold else escape(text)
                name = tag if text else "td"  # a head without a text is none
                columns.append(f"<{name}{kind}>{inner}</{name}>")
            return f"<tr>{''.join(columns)}</tr>"

        body = "".join(row(cells, "td", r) for r, cells in enumerate(self.rows))
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self._notes())
        return (
            f"<table>{caption}<thead>{row(self.head, 'th')}</thead><tbody>{body}</tbody></table>"
            + notes
        )


def latex_text(text: str) -> str:
    """Return a text with the special characters of LaTeX escaped."""
    return "".join(LATEX.get(letter, letter) for letter in text)


def latex_tabular(columns: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a tabular with the rules of booktabs, given cells in LaTeX."""
    # A bracket or star after \\\\ would be taken for an argument of it.
    lines = [
        ("{}" if cells[0].startswith(("[", "*")) else "") + " & ".join(cells) + r" \\"
        for cells in (head, *rows)
    ]
    return [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        lines[0],
        r"\midrule",
        *lines[1:],
        r"\bottomrule",
        r"\end{tabular}",
    ]


def latex_note(text: str) -> str:
    """Return a line of text in small letters, to be set below a tabular."""
    return rf"\par\smallskip{{\footnotesize {latex_text(text)}\par}}"


NOTATIONS: dict[str, Callable[[Table], str]] = {
    "text": Table.text,
    "markdown": Table.markdown,
    "csv": Table.csv,
    "latex": Table.latex,
}
