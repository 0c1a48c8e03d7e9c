"""Write the pages that are made from the code: `make docs`.  Tests hold them up to date."""

from __future__ import annotations

import inspect
from pathlib import Path
from tempfile import TemporaryDirectory

from firstpage.measures.catalogue import conventions
from firstpage.measures.conventions import Convention
from firstpage.measures.parse import ALIASES, MEASURES
from firstpage.report.table import Table

HERE = Path(__file__).parent


def measures_page() -> str:
    lines = [
        "# Measures",
        "",
        "Made by `make docs` from `firstpage.measures`; `firstpage measures` prints the short form.",
        "",
        "A measure is written `Name(parameter=value)@cut-off`. Case, hyphens and underscores do not",
        "matter, and the names of `trec_eval` (`ndcg_cut_10`, `P_5`, `map`, `recip_rank`) work too.",
        "Higher is better unless said. `rel` is the label from which on a document is relevant.",
        "",
    ]
    other: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        other.setdefault(name, []).append(alias)
    for cls in MEASURES:
        fields = [n for n in cls.__dataclass_fields__ if n != "cutoff"]
        form = cls.__name__ + (f"({', '.join(fields)})" if fields else "")
        form += "@n" if "cutoff" in cls.__dataclass_fields__ else ""
        lines += [f"## {cls.__name__}", "", f"`{form}`: {cls.about}."]
        if cls.lower_is_better:
            lines += ["**Lower is better.**"]
        lines += ["", inspect.cleandoc(cls.__doc__ or "")]
        if cls.__name__ in other:
            lines += ["", "Also called: " + ", ".join(f"`{a}`" for a in other[cls.__name__]) + "."]
        lines.append("")
    return "\n".join(lines)


def conventions_page() -> str:
    found = conventions()
    settings = list(next(iter(found.values())))
    rows = [[f"`{s}`", *(f"`{found[name][s]}`" for name in found)] for s in settings]
    meaning = inspect.cleandoc(Convention.__doc__ or "").split("\n\n", 1)[1]
    return "\n".join(
        [
            "# Conventions",
            "",
            "Made by `make docs` from `firstpage.measures.conventions`.",
            "",
            "Tools mean different things by one name. Say which you mean with `--convention` or",
            "`convention=`; single settings can be changed beside it (`--ties file --rel 2`).",
            "",
            Table(["setting", *found], rows, left=4).markdown(),
            "",
            "```text",
            meaning,
            "```",
            "",
            (HERE / "conventions.in.md").read_text().rstrip(),
            "",
        ]
    )


def api_page() -> str:
    from firstpage.web.api.reference import HEAD, rows
    from firstpage.web.app import create_app
    from firstpage.web.store.connect import Store

    with TemporaryDirectory() as folder:
        store = Store(folder)
        found = list(rows(create_app(store).openapi()))
        store.close()
    table = [(f"`{route}`", *rest) for route, *rest in found]
    return (
        "# The HTTP API of the labelling application\n\n"
        "Made by `make docs` from its OpenAPI description, which a running server tells at `/api/v1/openapi.json`; "
        "`/api/v1/docs` shows this table.\n\n"
        "Sign in by `POST login`: the cookie is the session, and every change carries the header `X-CSRF-Token` that `login` and `me` tell. "
        "A star marks what must be sent. What one may not see is not there (404). An answer with a sequence number that is used gets 409 and the present state; the same key again gets 200 and is kept once.\n\n"
        + Table(HEAD, table, left=len(HEAD)).markdown()
        + "\n"
    )


PAGES = {"measures.md": measures_page, "conventions.md": conventions_page, "api.md": api_page}


def main() -> None:
    for name, make in PAGES.items():
        (HERE / name).write_text(make())
        print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
