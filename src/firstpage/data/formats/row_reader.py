"""Files of rows: JSON lines; tables separated by commas, semicolons or tabs; Parquet.

One reader serves local files (`read_file_rows`, `read_file_cells`) and uploads, which are read with
limits since they may be malicious.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from firstpage.core import DataError, location, missing_dependency
from firstpage.data.io.files import open_bytes, suffix_of
from firstpage.data.io.json_files import RepeatedKey, unique_keys

LocatedRow = tuple[str, Mapping[str, Any]]  # location (file:line), values by column

MAX_LINE_BYTES = 16 << 20
CHUNK_BYTES = 1 << 16
PARQUET_SLICE_ROWS = 10_000  # rows of a Parquet file read at a time
SEPARATORS = (",", ";", "\t")


class ByteStream(Protocol):
    """A readable and seekable binary stream."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes."""

    def seek(self, offset: int, /) -> int:
        """Move to a position."""


@dataclass(frozen=True)
class ReadLimits:
    """Limits on what is read of one file; bytes and lines are counted after decompression.

    A few hundred kilobytes of gzip can contain a thousand times as many blank lines, so a limit on
    compressed bytes would bound neither time nor memory.
    """

    bytes: int = 512 << 20
    lines: int = 5_000_000
    rows: int = 1_000_000
    columns: int = 1000
    cells: int = 20_000_000  # of a Parquet file, where an empty cell takes no space


NO_LIMITS = ReadLimits(*[1 << 60] * 5)  # for local files
Reader = Callable[[str, ByteStream, ReadLimits], Iterator[LocatedRow]]
Decoder = Callable[[str, int, bytes], str]  # file, number of the line, its bytes


def read_rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[LocatedRow]:
    """Yield the rows of a file; its suffix selects the format."""
    plain = name.lower().removesuffix(".gz")
    for suffix, reader in READERS.items():
        if plain.endswith(suffix):
            return _limited(name, reader(name, stream, limits), limits)
    raise DataError(
        f"{name}: rows are read from {', '.join(READERS)} files (also .gz); rename or convert it."
    )


def _limited(name: str, rows: Iterator[LocatedRow], limits: ReadLimits) -> Iterator[LocatedRow]:
    yield from islice(rows, limits.rows)
    if next(rows, None) is not None:
        raise _limit_error(name, limits.rows, "rows")


def _limit_error(name: str, limit: int, unit: str) -> DataError:
    return DataError(f"{name}: contains more than {limit:,} {unit}; split it.")


def decompressed_chunks(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[bytes]:
    """Yield the file's bytes in chunks, decompressed if it is gzip; raise beyond the limit."""
    head, source = stream.read(2), stream
    if head == b"\x1f\x8b":
        stream.seek(0)
        head, source = b"", gzip.open(stream)  # noqa: SIM115
    total = 0
    try:
        for chunk in chain([head] if head else [], iter(partial(source.read, CHUNK_BYTES), b"")):
            total += len(chunk)
            if total > limits.bytes:
                raise _limit_error(name, limits.bytes, "bytes")
            yield chunk
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: the .gz file is damaged or truncated ({error}).") from error


def read_lines(
    name: str, stream: ByteStream, limits: ReadLimits, decode: Decoder | None = None
) -> Iterator[tuple[int, str]]:
    """Yield the numbers and lines of UTF-8 text, without line ends or a byte-order mark.

    `decode` reads the bytes of a line in other encodings.
    """
    decode = decode or _decoded
    pending: list[bytes] = []  # chunks of an incomplete line
    number = size = 0
    for chunk in decompressed_chunks(name, stream, limits):
        ends = chunk.count(b"\n")
        if number + ends > limits.lines:
            raise _limit_error(name, limits.lines, "lines")
        size = size + len(chunk) if not ends else len(chunk) - chunk.rindex(b"\n") - 1
        pending.append(chunk)
        if ends:
            *complete, rest = b"".join(pending).split(b"\n")
            pending = [rest]
            for raw in complete:
                number += 1
                yield number, decode(name, number, raw)
        if size > MAX_LINE_BYTES:
            raise DataError(f"{name}:{number + 1}: a line is longer than {MAX_LINE_BYTES:,} bytes.")
    if size:
        yield number + 1, decode(name, number + 1, b"".join(pending))


def read_json_rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[LocatedRow]:
    """Yield the JSON objects of a file, one per line."""
    for number, line in read_lines(name, stream, limits):
        if not line.strip():
            continue
        where = location(name, number)
        try:
            row = json.loads(line, object_pairs_hook=unique_keys)
        except RepeatedKey as error:
            raise DataError(f"{where}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: the line is not valid JSON ({error}).") from error
        if not isinstance(row, dict):
            raise DataError(f"{where}: a line must be one JSON object.")
        yield where, row


def separator_of(name: str, first: str) -> str:
    """Return the separator of a table, given its first line: comma, semicolon or tab.

    It is the one that splits the first line into the most names; a .tsv file has tabs if its first
    line has one.
    """
    if "\t" in first and suffix_of(Path(name))[0] == ".tsv":
        return "\t"
    line = first.replace("\r", " ")
    return max(SEPARATORS, key=lambda mark: len(next(csv.reader([line], delimiter=mark), [])))


def read_cells(
    name: str, stream: ByteStream, limits: ReadLimits
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line where each row of a table begins, and its cells.

    The first row is the header; blank lines are skipped.
    """
    lines = read_lines(name, stream, limits)
    begin, first = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    end = begin

    def text() -> Iterator[str]:
        nonlocal end
        yield first + "\n"
        for end, line in lines:  # noqa: B007 (used in errors)
            yield line + "\n"

    csv.field_size_limit(MAX_LINE_BYTES)
    reader = csv.reader(text(), delimiter=separator_of(name, first), strict=True)
    try:
        for row in reader:
            if row:
                yield begin, row
            begin = end + 1
    except csv.Error as error:
        raise DataError(f"{location(name, begin)}: cannot be read as a table ({error}).") from error


def read_csv_rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[LocatedRow]:
    """Yield the rows of a table with a header, without empty or missing cells."""
    rows = read_cells(name, stream, limits)
    _, first = next(rows, (1, []))
    header = [column.strip() for column in first]
    _check_header(name, header, limits)
    for number, row in rows:
        if len(row) > len(header):
            raise DataError(f"{location(name, number)}: has more cells than the header.")
        named = zip(header, row, strict=False)  # missing cells at the end are empty
        yield location(name, number), {column: cell for column, cell in named if cell != ""}


def _check_header(name: str, header: Sequence[str], limits: ReadLimits) -> None:
    """Refuse too many columns, and a repeated name, which would hide a column."""
    if len(header) > limits.columns:
        raise DataError(
            f"{name}:1: has {len(header):,} columns; at most {limits.columns:,} are read."
        )
    repeated = next((c for c, count in Counter(header).items() if c and count > 1), None)
    if repeated is not None:
        raise DataError(f"{name}:1: the column {repeated!r} occurs twice; rename or remove one.")


def read_parquet_rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[LocatedRow]:
    """Yield the rows of a Parquet file; the size in its metadata is checked before reading."""
    try:
        import polars
    except ImportError as error:
        raise missing_dependency("polars", "tables", f"Reading {name}") from error
    data = io.BytesIO(b"".join(decompressed_chunks(name, stream, limits)))
    try:
        table = _read_parquet(polars, name, data, limits)
    except polars.exceptions.PolarsError as error:
        raise DataError(f"{name}: cannot be read as Parquet ({first_line(error)}).") from error
    for number, row in enumerate(table.iter_rows(named=True), 1):
        yield f"{name}: row {number}", {k: v for k, v in row.items() if v is not None}


def first_line(error: Exception) -> str:
    """Return the first line of an error of another library."""
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__


def _read_parquet(polars: Any, name: str, data: io.BytesIO, limits: ReadLimits) -> Any:
    """Return the table, read in slices so that a small file cannot expand to a huge one at once."""
    scanned = polars.scan_parquet(data)
    height, width = (
        int(scanned.select(polars.len()).collect().item()),
        len(scanned.collect_schema()),
    )
    for count, limit, unit in (
        (height, limits.rows, "rows"),
        (width, limits.columns, "columns"),
        (height * width, limits.cells, "cells"),
    ):
        if count > limit:
            raise _limit_error(name, limit, unit)
    slices, size = [], 0
    for start in range(0, height, PARQUET_SLICE_ROWS):
        rows = scanned.slice(start, PARQUET_SLICE_ROWS).collect()
        size += int(rows.estimated_size())
        if size > limits.bytes:
            raise _limit_error(name, limits.bytes, "bytes")
        slices.append(rows)
    return polars.concat(slices) if slices else polars.DataFrame()


def _decoded(name: str, number: int, raw: bytes) -> str:
    try:
        text = raw.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}:{number}: is not UTF-8 text (byte {error.start + 1}).") from error
    return text.removeprefix("\ufeff") if number == 1 else text


READERS: dict[str, Reader] = {
    ".jsonl": read_json_rows,
    ".ndjson": read_json_rows,
    ".csv": read_csv_rows,
    ".tsv": read_csv_rows,
    ".parquet": read_parquet_rows,
}


# --- local files: plain or compressed, of any size


def read_file_rows(path: Path, reader: Reader = read_rows) -> Iterator[LocatedRow]:
    """Yield the rows of a local file; its suffix selects the format unless `reader` is given."""
    with open_bytes(path) as (stream, _):
        plain = str(path).removesuffix(suffix_of(path)[1])
        for where, row in reader(plain, stream, NO_LIMITS):
            yield where.replace(plain, str(path), 1), row


def read_file_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line where each row of a local table begins, and its cells."""
    with open_bytes(path) as (stream, _):
        yield from read_cells(str(path), stream, NO_LIMITS)
