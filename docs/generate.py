"""Write the pages that are generated from the code: `make docs`.  A test checks them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from made.commands import commands_page
from made.conventions import conventions_page
from made.http import api_page
from made.measures import measures_page
from made.python import python_page
from made.results import filled

PAGES = {
    "measures.md": measures_page,
    "conventions.md": conventions_page,
    "api.md": api_page,
    "python.md": python_page,
    "commands.md": commands_page,
}

WITH_RESULTS = ("choose.md", "claims.md", "train.md")  # pages with tables of results


def page_with_results(name: str) -> str:
    """Return a page with the tables of docs/made/results.json."""
    return filled((Path(__file__).parent / name).read_text())


PAGES |= {name: partial(page_with_results, name) for name in WITH_RESULTS}


def main() -> None:
    for name, generate in PAGES.items():
        (Path(__file__).parent / name).write_text(generate())
        print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
