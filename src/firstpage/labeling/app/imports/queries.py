"""Queries of every format that `firstpage candidates` reads, with the same ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from firstpage.core import DataError
from firstpage.data import QUERY_NAMES
from firstpage.data.formats import ByteStream, LocatedRow, ReadLimits, read_lines
from firstpage.labeling.app.imports.formats import format_of, limited_rows
from firstpage.labeling.app.imports.rows import (
    ImportNotes,
    TrackedRow,
    check_identifier,
    description_of,
    first_text,
)
from firstpage.labeling.app.store.texts import QueryRecord
from firstpage.search import (
    FORMATS,
    QUERY_ID_KEYS,
    check_choice,
    key_among,
    read_old_lines,
    trec_topics,
)

HEADER = {*QUERY_ID_KEYS, *QUERY_NAMES, "text", "title"}  # names in the first line of a table


def read_queries(
    name: str,
    stream: ByteStream,
    limits: ReadLimits,
    reading: ImportNotes,
    format_: str | None = None,
    ordinal: bool = False,
) -> dict[str, QueryRecord]:
    """Return the queries of a file by id; their texts may be empty.

    With `ordinal` they are numbered "1", "2" and so on, in their order.
    """
    if format_ is not None:
        check_choice("the format of queries", format_, FORMATS)
    chosen = format_ or format_of(name, stream, limits)
    if chosen is None:
        raise DataError(
            f"{name}: queries are rows (.jsonl, .csv, .tsv, .parquet), TREC topics, SMART or "
            "NPL; rename it, or name its format: `--query-format lines` reads a query per line."
        )
    records = _records(reading.tracked(name, _rows(name, stream, limits, chosen, reading)), ordinal)
    return dict(records)


def _rows(
    name: str, stream: ByteStream, limits: ReadLimits, format_: str, reading: ImportNotes
) -> Iterator[LocatedRow]:
    """Yield the id and text of each query, and other columns."""
    if format_ == "lines":
        for number, line in read_lines(name, stream, limits):
            yield f"{name}:{number}", {"id": number, "text": line}
    elif format_ == "tsv" and _has_no_header(name, stream, limits):
        for number, line in read_lines(name, stream, limits):
            if line.strip():
                key, tab, text = line.partition("\t")
                if not tab or "\t" in text:
                    raise DataError(
                        f"{name}:{number}: lines of a table without header are an id, a tab and a "
                        "text; a header names an id and a text."
                    )
                yield f"{name}:{number}", {"id": key, "text": text}
    elif format_ == "trec":
        notes = reading.of_file()
        for where, topic in trec_topics(name, read_old_lines(name, stream, notes, limits), notes):
            yield where, {"id" if tag == "num" else tag: text for tag, text in topic.items()}
    else:
        yield from limited_rows(name, stream, limits, format_, reading.of_file())


def _has_no_header(name: str, stream: ByteStream, limits: ReadLimits) -> bool:
    """Return whether the first line of a table is an id, a tab and a text."""
    first = next((line for _, line in read_lines(name, stream, limits) if line.strip()), "")
    stream.seek(0)
    cells = [cell.strip(' "').casefold() for cell in first.split("\t")]
    return len(cells) > 1 and HEADER.isdisjoint(cells)


def _records(
    rows: Iterable[tuple[str, TrackedRow]], ordinal: bool
) -> Iterator[tuple[str, QueryRecord]]:
    """Yield the queries of rows; refuse an id that occurs twice."""
    seen: set[str] = set()
    for number, (location, row) in enumerate(rows, 1):
        id_key, text_keys = _keys(row)
        key = str(number)
        if not ordinal:
            value = None if id_key is None else row[id_key]
            key = check_identifier(location, value, "query", "query")
        elif id_key is not None:
            row[id_key]  # read, though it is not used
        if key in seen:
            raise DataError(f"{location}: duplicate query {key!r}; give each once.")
        seen.add(key)
        text = first_text(location, row, text_keys)
        yield key, QueryRecord(key, text, description_of(location, row))


def _keys(row: TrackedRow) -> tuple[str | None, tuple[str, ...]]:
    """Return the column of the id, and those of the text, as `firstpage candidates` reads them.

    `query` is the id beside a `text` or `title`, and otherwise the text beside another id.
    """
    filled = row.unread  # nothing is read yet
    id_key = key_among(filled, QUERY_ID_KEYS)
    if id_key is None:
        return key_among(filled, QUERY_NAMES), ("text", "title")
    return id_key, ("text", "query", "title")
