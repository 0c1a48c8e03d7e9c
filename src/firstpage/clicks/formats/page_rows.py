"""Pages with lists of documents and clicks become columns with one value per impression."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from firstpage.clicks.formats.collector import LogCollector, no_column
from firstpage.clicks.formats.values import as_list, as_number
from firstpage.data import DOCUMENT_NAMES, ROW_IDS

CHUNK_IMPRESSIONS = 200_000
OFF_PAGE = "clicks on documents that were not on the page, left out"
REPEATED = "repeated clicks on a document"
PER_IMPRESSION = ("rank", "first_click", "value", "propensity", "arm")
IDS = (*ROW_IDS, *DOCUMENT_NAMES)
ARMS = ("[interleaving]", "arm", "team")


class PageRows:
    """Collects pages, which a form reads one after the other, and adds them in chunks.

    Parameters
    ----------
    collector : LogCollector
        Where the impressions go.
    source : str
        The file, for messages.
    """

    def __init__(self, collector: LogCollector, source: str) -> None:
        self._collector, self._source = collector, source
        self._columns: dict[str, list[Any]] = defaultdict(list)
        self._pages = 0
        self._has_clicks: bool | None = None  # of rows; without clicks all pages would have none

    def add(
        self,
        query: Any,
        documents: Sequence[Any],
        clicks: Sequence[Any],
        per_impression: Mapping[str, Sequence[Any]] | None = None,
        **page: Any,
    ) -> None:
        """Add a page: its results by rank, and the clicked documents in the order of clicks."""
        counts = Counter(clicks)
        shown = set(documents)
        places = {d: n for n, d in enumerate((d for d in counts if d in shown), 1)}
        off_page = sum(count for document, count in counts.items() if document not in shown)
        self._collector.count(OFF_PAGE, off_page)
        self._collector.count(REPEATED, len(clicks) - off_page - len(places))
        lists = {"first_click": [places.get(d, 0) for d in documents], **(per_impression or {})}
        self.add_counts(query, documents, [counts[d] for d in documents], lists, **page)

    def add_counts(
        self,
        query: Any,
        documents: Sequence[Any],
        counts: Sequence[Any],
        per_impression: Mapping[str, Sequence[Any]],
        **page: Any,
    ) -> None:
        """Add a page: its results by rank, and how often each was clicked."""
        size, columns = len(documents), self._columns
        before = len(columns["page"])
        page |= {"page": self._pages, "query": query}
        lists: dict[str, Sequence[Any]] = {name: [value] * size for name, value in page.items()}
        lists |= {"document": documents, "clicks": counts, "rank": range(1, size + 1)}
        for name, values in {**lists, **per_impression}.items():
            columns[name] += [None] * (before - len(columns[name]))
            columns[name] += values
        self._pages += 1
        if len(columns["page"]) >= CHUNK_IMPRESSIONS:
            self._flush()

    def add_row(self, row: Mapping[str, Any], **page: Any) -> None:
        """Add a page that is a row with lists, by role; raise ValueError if it has none."""
        self._has_clicks = bool(self._has_clicks) or "clicks" in row
        documents = as_list(row.get("document"))
        if not documents:
            raise ValueError("the page has no documents.")
        lists = {name: as_list(row[name]) for name in PER_IMPRESSION if row.get(name) is not None}
        if isinstance(documents[0], Mapping):
            arms = [next((d[name] for name in ARMS if name in d), None) for d in documents]
            if any(arms):
                lists["arm"] = arms
            documents = [next((d[name] for name in IDS if name in d), None) for d in documents]
        documents = [str(d) if isinstance(d, int) else d for d in documents]
        if not all(isinstance(document, str) for document in documents):
            raise ValueError("the page has a document without an id.")
        for name, values in lists.items():
            if len(values) != len(documents):
                counts = f"{len(documents)} documents, but {len(values)} {name}"
                raise ValueError(f"the page has {counts}.")
        properties = {n: row[n] for n in ("session", "user", "time", "layout") if n in row} | page
        clicks = as_list(row.get("clicks"))
        if len(clicks) == len(documents) and all(map(_is_count, clicks)):
            lists.setdefault("first_click", [None] * len(documents))
            numbers = [as_number(count) for count in clicks]
            self.add_counts(row.get("query"), documents, numbers, lists, **properties)
        else:
            clicked = [c["document"] if isinstance(c, Mapping) else str(c) for c in clicks]
            self.add(row.get("query"), documents, clicked, lists, **properties)

    def finish(self) -> None:
        """Add the last pages."""
        if self._has_clicks is False:
            raise no_column(self._source, "clicks")
        self._flush()
        self._collector.end_of_file()

    def _flush(self) -> None:
        size = len(self._columns["page"])
        for values in self._columns.values():
            values += [None] * (size - len(values))
        self._collector.add(self._columns, self._source, numbered=True)
        self._columns = defaultdict(list)


def _is_count(value: Any) -> bool:
    """Return whether a value of a list of clicks is a number of clicks rather than a document."""
    return isinstance(value, bool | int | float) or value in ("0", "1")
