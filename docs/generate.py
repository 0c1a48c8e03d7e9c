"""Write the pages that are generated from the code: `make docs`.  A test checks them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from made.benchmarks import benchmarks_chart
from made.conventions import conventions_page
from made.http import api_page
from made.measures import measures_page
from made.results import filled

PAGES = {
    "images/benchmarks.svg": benchmarks_chart,
    "measures.md": measures_page,
    "conventions.md": conventions_page,
    "api.md": api_page,
}

DOCS = Path(__file__).parent


def page_with_results(name: str) -> str:
    """Return a page with the tables of docs/made/results.json."""
    return filled((DOCS / name).read_text())


PAGES |= {
    str(page.relative_to(DOCS)): partial(page_with_results, str(page.relative_to(DOCS)))
    for page in sorted(DOCS.rglob("*.md"))
    if "<!-- table: " in page.read_text()
}


def main() -> None:
    for name, generate in PAGES.items():
        (DOCS / name).write_text(generate())
        print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
