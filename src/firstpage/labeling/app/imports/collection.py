"""The texts of documents that runs and LETOR files name: of a collection, or of an index."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstpage.core import DataError
from firstpage.data import TEXT_NAMES
from firstpage.data.formats import ByteStream, LocatedRow, ReadLimits, read_file_rows
from firstpage.data.io import suffix_of
from firstpage.labeling.app.imports.formats import ROW_FORMATS, format_of, limited_rows
from firstpage.labeling.app.imports.pictures import Pictures
from firstpage.labeling.app.imports.rows import (
    MAX_KEY,
    ImportNotes,
    TrackedRow,
    check_identifier,
    document_from,
)
from firstpage.labeling.app.store.texts import DocumentRecord
from firstpage.search import (
    ID_KEYS,
    SUFFIXES,
    TREC_ID_KEYS,
    key_among,
    read_documents,
    read_old_lines,
    trec_documents,
)

if TYPE_CHECKING:
    from firstpage.search import Index

MAX_TEXT = 1_000_000  # characters of a text of an index; longer ones are cut
TITLE = "title"  # the text field that is shown as the title


def from_path(
    path: Path, keys: Collection[str], pictures: Pictures, reading: ImportNotes
) -> dict[str, DocumentRecord]:
    """Return the documents with these keys from a local file or folder of any size."""
    if path.is_file() and SUFFIXES.get(suffix_of(path)[0]) in ROW_FORMATS:
        rows: Iterator[LocatedRow] = read_file_rows(path)
    else:
        rows = ((d.location, _one_text({"id": d.id, **d.values})) for d in read_documents(path))
    return _documents(str(path), rows, ID_KEYS, keys, pictures, reading)


def from_stream(
    name: str,
    stream: ByteStream,
    limits: ReadLimits,
    keys: Collection[str],
    pictures: Pictures,
    reading: ImportNotes,
) -> dict[str, DocumentRecord]:
    """Return the documents with these keys from an uploaded file."""
    format_ = format_of(name, stream, limits)
    if format_ is None:
        raise DataError(
            f"{name}: a collection is rows (.jsonl, .csv, .tsv, .parquet), TREC text (<DOC>), "
            "SMART (.I) or NPL; rename or convert it."
        )
    if format_ != "trec":
        rows = limited_rows(name, stream, limits, format_, reading.of_file())
        return _documents(name, rows, ID_KEYS, keys, pictures, reading)
    notes = reading.of_file()
    lines = read_old_lines(name, stream, notes, limits)
    rows = ((where, _one_text(row)) for where, row in trec_documents(name, lines, notes))
    return _documents(name, rows, TREC_ID_KEYS, keys, pictures, reading)


def _one_text(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of an old format with text and body in one, and lines without indentation."""
    texts = [str(row[name]) for name in ("text", "body") if name in row]
    lines = (line.strip() for line in "\n\n".join(texts).split("\n"))
    rest = {name: value for name, value in row.items() if name not in ("text", "body")}
    return {**rest, "text": "\n".join(lines)}


def _documents(
    source: str,
    rows: Iterator[LocatedRow],
    id_keys: Collection[str],
    keys: Collection[str],
    pictures: Pictures,
    reading: ImportNotes,
) -> dict[str, DocumentRecord]:
    documents: dict[str, DocumentRecord] = {}
    for location, row in rows:
        id_key = key_among(row, id_keys)
        if id_key is None:
            raise DataError(
                f"{location}: has no id; give each document one of {', '.join(id_keys)}."
            )
        key = check_identifier(location, row[id_key], id_key, "document")
        if key not in keys:
            continue
        tracked = TrackedRow({name: value for name, value in row.items() if name != id_key})
        body = TEXT_NAMES if id_key.casefold() == "document" else (*TEXT_NAMES, "document")
        document = document_from(location, tracked, pictures, key, body)
        reading.count(source, tracked)
        if documents.setdefault(key, document) != document:
            raise DataError(f"{location}: duplicate document {key!r} with another text.")
    return documents


def from_index(index: Index, keys: Collection[str]) -> dict[str, DocumentRecord]:
    """Return the documents with these keys that an index contains."""
    known = [key for key in keys if key in index.forward.row_of]
    sources = index.documents(known)
    return {
        key: _indexed_document(key, source, index.schema.analyzers)
        for key, source in zip(known, sources, strict=True)
    }


def _indexed_document(
    key: str, source: Mapping[str, Any], text_fields: Collection[str]
) -> DocumentRecord:
    """Return a document of an index: title, the first other text, and other fields as a card."""
    if len(key) > MAX_KEY:
        raise DataError(
            f"a document has an id of {len(key):,} characters; projects accept {MAX_KEY}."
        )
    texts = [name for name in text_fields if name != TITLE and name in source]
    others = {
        name: _shown(value)
        for name, value in source.items()
        if name != TITLE and name not in texts[:1]
    }
    return DocumentRecord(
        key,
        _cut(source.get(TITLE, "")),
        "card" if others else "text",
        _cut(source[texts[0]]) if texts else "",
        others or None,
    )


def _shown(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return _cut(value) if isinstance(value, str) else value


def _cut(value: Any) -> str:
    text = str(value)
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n[cut: {len(text) - MAX_TEXT:,} more characters]"
