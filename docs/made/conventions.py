"""docs/conventions.md."""

from __future__ import annotations

from pathlib import Path

from firstpage.core import Table
from firstpage.evaluation.measures import Convention, conventions
from made.markdown import Docstring

HERE = Path(__file__).parent


def conventions_page() -> str:
    values = conventions()
    settings = list(next(iter(values.values())))
    rows = [[f"`{s}`", *(f"`{values[name][s]}`" for name in values)] for s in settings]
    entries = [e for e in Docstring.of(Convention).entries("Parameters") if e.name in settings]
    return "\n".join(
        [
            "# Conventions",
            "",
            "Tools define measures of the same name differently. A convention fixes these definitions:",
            "choose one with `--convention` or `convention=`. Options replace single settings of it",
            "(`--convention trec --ties file --rel 2`), and so do parameters in Python",
            '(`convention=fp.Convention("trec", ties="file", rel=2)`). Results name the convention and',
            "what was replaced.",
            "",
            Table(["setting", *values], rows, left_aligned=1 + len(values)).markdown(),
            "",
            "`make docs` generates the table above and the list of settings from `fp.Convention`.",
            "",
            (HERE / "conventions.in.md").read_text().rstrip(),
            "",
            "## Settings",
            "",
            *(line for entry in entries for line in entry.markdown()),
            "",
        ]
    )
