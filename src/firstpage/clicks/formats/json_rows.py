"""JSON lines: an impression per line, a page per line, Solr's responses, preferences of `serve`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from firstpage.clicks.formats.collector import LogCollector, columns_of
from firstpage.clicks.formats.lines import json_objects, reason_of
from firstpage.clicks.formats.page_rows import CHUNK_IMPRESSIONS, PageRows
from firstpage.core import DataError

SCALARS = ("page", "query", "session", "user", "time", "layout")
SIDES = ("left", "right")
PREFERENCES = (
    "preferences between two lists, each read as two pages without clicks (their outcomes are for "
    "`firstpage dcglearn learn`)"
)


def recognizes(head: bytes) -> bool:
    """Return whether a file begins like JSON."""
    return head.startswith((b"{", b"["))


def read(name: str, stream: Any, collector: LogCollector) -> None:
    """Add the impressions of a file."""
    pages = PageRows(collector, name)
    rows: list[Mapping[str, Any]] = []
    roles: dict[str, str] = {}
    for where, row in json_objects(name, stream, collector):
        try:
            if SIDES[0] in row and SIDES[1] in row:
                _add_preference(row, pages, collector)
                continue
            row = _solr_row(row) if "response" in row else row
            if not roles.keys() >= {"query", "document", "clicks"}:
                roles |= columns_of(list(_names(row)), collector.options.columns)
            named = {role: _value(row, column) for role, column in roles.items()}
            is_page = isinstance(named.get("document"), list)
            scalars = [v for n, v in named.items() if n in SCALARS or not is_page]
            if any(isinstance(v, dict | list) for v in scalars):
                raise ValueError("a value of the line is a list or an object.")
            if is_page:
                pages.add_row(named)
                continue
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            collector.broken(where, reason_of(error))
            continue
        rows.append(named)
        if len(rows) >= CHUNK_IMPRESSIONS:
            rows = _flush(rows, name, collector)
    _flush(rows, name, collector)
    pages.finish()
    for column in collector.options.columns.values():
        if column not in roles.values():
            raise DataError(f"{name}: there is no column {column!r}.")


def _flush(rows: list[Mapping[str, Any]], name: str, collector: LogCollector) -> list[Any]:
    """Add impressions, one per row."""
    roles = dict.fromkeys(role for row in rows for role in row)
    if rows:
        collector.add({role: [row.get(role) for row in rows] for role in roles}, name)
    return []


def _names(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of a row's values; those of an object in it follow a dot."""
    for name, value in row.items():
        yield name
        if isinstance(value, Mapping):
            yield from (f"{name}.{inner}" for inner in value)


def _value(row: Mapping[str, Any], column: str) -> Any:
    """Return the value of a column, whose name may lead into an object."""
    if column in row:
        return row[column]
    outer, _, inner = column.partition(".")
    value = row.get(outer)
    return value.get(inner) if isinstance(value, Mapping) else None


def _solr_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a page of a response of Solr, to which clicks were added."""
    response = row["response"]
    header = row.get("responseHeader", {})
    documents = response["docs"]
    first = int(response.get("start", 0)) + 1
    page = {name: row[name] for name in row if name not in ("response", "responseHeader")}
    ranks = list(range(first, first + len(documents)))
    query = header.get("params", {}).get("q")
    return {"query": query, **page, "document": documents, "rank": ranks}


def _add_preference(row: Mapping[str, Any], pages: PageRows, collector: LogCollector) -> None:
    """Add the two pages of a preference, as `firstpage serve --feedback` writes it."""
    counted: dict[str, Any] = defaultdict(list)
    for side in SIDES:
        arm = "model" if row.get("model_side") == side else "compared"
        documents = [str(document) for document in row[side]]
        counted["arm"] = [arm] * len(documents)
        page = {"session": row.get("id"), "time": row.get("time"), "layout": "side by side"}
        pages.add(row.get("text") or row.get("query"), documents, (), counted, **page)
    collector.count(PREFERENCES)
