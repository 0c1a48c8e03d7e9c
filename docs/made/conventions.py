"""docs/conventions.md."""

from __future__ import annotations

import inspect
from pathlib import Path

from firstpage.measures.measure import Convention
from firstpage.measures.registry import conventions
from firstpage.table import Table

HERE = Path(__file__).parent


def conventions_page() -> str:
    found = conventions()
    settings = list(next(iter(found.values())))
    rows = [[f"`{s}`", *(f"`{found[name][s]}`" for name in found)] for s in settings]
    meaning = inspect.cleandoc(Convention.__doc__ or "").split("\n\n", 1)[1]
    return "\n".join(
        [
            "# Conventions",
            "",
            "Made by `make docs` from `firstpage.measures.measure`.",
            "",
            "Tools mean different things by one name. Say which you mean with `--convention` or",
            "`convention=`; single settings can be changed beside it (`--ties file --rel 2`).",
            "",
            Table(["setting", *found], rows, left_aligned=4).markdown(),
            "",
            "```text",
            meaning,
            "```",
            "",
            (HERE / "conventions.in.md").read_text().rstrip(),
            "",
        ]
    )
