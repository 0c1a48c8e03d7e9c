"""The formats of uploaded files, recognized as the text package recognizes those of local files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from firstpage.core import DataError
from firstpage.data.formats import (
    ByteStream,
    LocatedRow,
    ReadLimits,
    decompressed_chunks,
    read_csv_rows,
    read_json_rows,
    read_parquet_rows,
)
from firstpage.data.io import BOM, suffix_of
from firstpage.search import (
    FIRST_BYTES,
    PEEK_BYTES,
    SUFFIXES,
    Notes,
    npl_records,
    read_old_lines,
    smart_records,
)

ROW_FORMATS = {
    "jsonl": read_json_rows,
    "csv": read_csv_rows,
    "tsv": read_csv_rows,
    "parquet": read_parquet_rows,
}


def format_of(name: str, stream: ByteStream, limits: ReadLimits) -> str | None:
    """Return the format of a file by its suffix or its first bytes; None if it is unknown."""
    suffix = suffix_of(Path(name.lower()))[0]
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    first = b""
    for chunk in decompressed_chunks(name, stream, limits):
        first += chunk
        if len(first) >= PEEK_BYTES:
            break
    stream.seek(0)
    head = first[:PEEK_BYTES].removeprefix(BOM)
    return next((kind for pattern, kind in FIRST_BYTES if pattern.search(head)), None)


def limited_rows(
    name: str, stream: ByteStream, limits: ReadLimits, format_: str, notes: Notes
) -> Iterator[LocatedRow]:
    """Yield the rows of a table or of JSON lines, or the records of a SMART or NPL file."""
    if format_ == "smart":
        rows = smart_records(name, read_old_lines(name, stream, notes, limits), notes)
    elif format_ == "npl":
        rows = npl_records(name, read_old_lines(name, stream, notes, limits))
    else:
        rows = ROW_FORMATS[format_](name, stream, limits)
    for number, row in enumerate(rows):
        if number == limits.rows:
            raise DataError(f"{name}: contains more than {limits.rows:,} rows; split it.")
        yield row
