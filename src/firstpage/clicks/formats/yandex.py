"""Sessions in the form of Yandex: query, results and clicked results, several per line.

A line has `query TAB doc,doc,.. : clicked , clicked; query TAB ..`: sessions between semicolons,
results in order of rank, clicks in order of time.  Clicks may repeat, and may be on documents that
are not on the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firstpage.clicks.formats.collector import LogCollector
from firstpage.clicks.formats.lines import log_lines
from firstpage.clicks.formats.page_rows import PageRows
from firstpage.core import location


def recognizes(head: bytes) -> bool:
    """Return whether a file begins with such a session."""
    query, tab, rest = head.split(b"\n", 1)[0].partition(b"\t")
    results, colon, _ = rest.partition(b":")
    return bool(query and tab and colon and b"," in results and b"[" not in results)


def read(name: str, stream: Any, collector: LogCollector) -> None:
    """Add the sessions of a file."""
    pages = PageRows(collector, name)
    for number, line in log_lines(name, stream, collector):
        for text in line.split(";"):
            if not text.strip():
                continue
            query, tab, rest = text.partition("\t")
            results, colon, clicked = rest.partition(":")
            documents = _listed(results)
            if not (tab and colon and documents):
                reason = "is not `query TAB document,document,.. : clicked,clicked`."
                collector.broken(location(name, number), reason)
                continue
            pages.add(query.strip(), documents, _listed(clicked))
    pages.finish()


def _listed(text: str) -> Sequence[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
