"""Sessions in the form of TianGong-ST: session, query, results, kinds of results, clicks.

The five columns are separated by tabs, and the last three are lists in brackets.  The kinds of
results (verticals) are not read.
"""

from __future__ import annotations

from typing import Any

from firstpage.clicks.formats.collector import LogCollector
from firstpage.clicks.formats.lines import log_lines, reason_of
from firstpage.clicks.formats.page_rows import PageRows
from firstpage.core import location

COLUMNS = ("session", "query", "document", "kinds", "clicks")


def recognizes(head: bytes) -> bool:
    """Return whether a file begins with such a page."""
    cells = head.split(b"\n", 1)[0].strip().split(b"\t")
    return len(cells) == len(COLUMNS) and all(cell.startswith(b"[") for cell in cells[2:])


def read(name: str, stream: Any, collector: LogCollector) -> None:
    """Add the pages of a file."""
    pages = PageRows(collector, name)
    for number, line in log_lines(name, stream, collector):
        cells = line.split("\t")
        try:
            if len(cells) != len(COLUMNS):
                raise ValueError(f"has {len(cells)} columns instead of {len(COLUMNS)}.")
            pages.add_row(dict(zip(COLUMNS, cells, strict=True)))
        except (TypeError, ValueError) as error:
            collector.broken(location(name, number), reason_of(error))
    pages.finish()
