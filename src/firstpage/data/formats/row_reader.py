"""Files as rows: JSON lines, tables separated by commas, semicolons or tabs, Parquet.

One reader serves files of the user's own (`file_rows`, `file_cells`) and uploads, which are read
with limits: they may be a trap.
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

from firstpage.data.io.files import open_bytes, suffix_of
from firstpage.errors import DataError, at, need

LocatedRow = tuple[str, Mapping[str, Any]]  # where it stands (file:line), what it holds

MAX_LINE_BYTES = 16 << 20
CHUNK_BYTES = 1 << 16
PARQUET_SLICE_ROWS = 10_000  # rows of a Parquet file that are read at a time
SEPARATORS = (",", ";", "\t")


class ByteStream(Protocol):
    """What a file must do to be read here."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes."""

    def seek(self, offset: int, /) -> int:
        """Go to a position."""


@dataclass(frozen=True)
class ReadLimits:
    """How much of one file is read; bytes and lines are counted unpacked.

    A few hundred kilobytes of gzip can hold a thousand times as many blank lines, so bytes alone
    bound neither time nor memory.
    """

    bytes: int = 512 << 20
    lines: int = 5_000_000
    rows: int = 1_000_000
    columns: int = 1000
    cells: int = 20_000_000  # of a Parquet file, where an empty cell takes no byte


NO_LIMITS = ReadLimits(*[1 << 60] * 5)  # for files of the user's own
Reader = Callable[[str, ByteStream, ReadLimits], Iterator[LocatedRow]]


def read_rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[LocatedRow]:
    """Yield the rows of a file, read as its name says."""
    plain = name.lower().removesuffix(".gz")
    for suffix, reader in READERS.items():
        if plain.endswith(suffix):
            return _counted(name, reader(name, stream, limits), limits)
    raise DataError(f"{name}: rows come as {', '.join(READERS)} (.gz too); rename or convert it.")


def _counted(name: str, read: Iterator[LocatedRow], limits: ReadLimits) -> Iterator[LocatedRow]:
    yield from islice(read, limits.rows)
    if next(read, None) is not None:
        raise _too_much(name, limits.rows, "rows")


def _too_much(name: str, most: int, what: str) -> DataError:
    return DataError(f"{name}: holds more than {most:,} {what}; split it.")


def decompressed_chunks(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[bytes]:
    """Yield the file's bytes in pieces, decompressed where it is gzip; stops at the limit."""
    head, source = stream.read(2), stream
    if head == b"\x1f\x8b":
        stream.seek(0)
        head, source = b"", gzip.open(stream)  # noqa: SIM115
    seen = 0
    try:
        for piece in chain([head] if head else [], iter(partial(source.read, CHUNK_BYTES), b"")):
            seen += len(piece)
            if seen > limits.bytes:
                raise _too_much(name, limits.bytes, "bytes")
            yield piece
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: the .gz file is damaged or cut short ({error}).") from error


def read_lines(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[tuple[int, str]]:
    """Yield lines of UTF-8 text with their numbers, without ends or a byte-order mark."""
    begun: list[bytes] = []  # pieces of a line that has not ended
    number = size = 0
    for piece in decompressed_chunks(name, stream, limits):
        ends = piece.count(b"\n")
        if number + ends > limits.lines:
            raise _too_much(name, limits.lines, "lines")
        size = size + len(piece) if not ends else len(piece) - piece.rindex(b"\n") - 1
        begun.append(piece)
        if ends:
            *whole, rest = b"".join(begun).split(b"\n")
            begun = [rest]
            for raw in whole:
                number += 1
                yield number, _decoded(name, number, raw)
        if size > MAX_LINE_BYTES:
            raise DataError(f"{name}:{number + 1}: a line of over {MAX_LINE_BYTES:,} bytes.")
    if size:
        yield number + 1, _decoded(name, number + 1, b"".join(begun))


def read_json_rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[LocatedRow]:
    """Yield one JSON object per line."""
    for number, line in read_lines(name, stream, limits):
        if not line.strip():
            continue
        where = at(name, number)
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: this is no JSON ({error}).") from error
        if not isinstance(row, dict):
            raise DataError(f"{where}: a line must be one JSON object.")
        yield where, row


def separator_of(name: str, first: str) -> str:
    """Return what separates the columns of a table: comma, semicolon or tab.

    It is the one that makes the most names of the first line; a file called .tsv has tabs where its
    first line has one.
    """
    if "\t" in first and suffix_of(Path(name))[0] == ".tsv":
        return "\t"
    line = first.replace("\r", " ")
    return max(SEPARATORS, key=lambda by: len(next(csv.reader([line], delimiter=by), [])))


def read_cells(
    name: str, stream: ByteStream, limits: ReadLimits
) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row of a table, and the line where the row begins.

    The first row is the header; blank lines are left out.
    """
    text = ((number, line) for number, line in read_lines(name, stream, limits))
    begin, first = next(((number, line) for number, line in text if line.strip()), (1, ""))
    end = begin

    def given() -> Iterator[str]:
        nonlocal end
        yield first + "\n"
        for end, line in text:  # noqa: B007 (told in errors)
            yield line + "\n"

    csv.field_size_limit(MAX_LINE_BYTES)
    reader = csv.reader(given(), delimiter=separator_of(name, first), strict=True)
    try:
        for row in reader:
            if row:
                yield begin, row
            begin = end + 1
    except csv.Error as error:
        raise DataError(f"{at(name, begin)}: cannot be read as a table ({error}).") from error


def read_csv_rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[LocatedRow]:
    """Yield the rows of a table with a header, without cells that are empty or left out."""
    rows_ = read_cells(name, stream, limits)
    _, first = next(rows_, (1, []))
    header = [column.strip() for column in first]
    _check_header(name, header, limits)
    for number, row in rows_:
        if len(row) > len(header):
            raise DataError(f"{at(name, number)}: has more cells than the header.")
        named = zip(header, row, strict=False)  # cells left out at the end are empty
        yield at(name, number), {column: cell for column, cell in named if cell != ""}


def _check_header(name: str, header: Sequence[str], limits: ReadLimits) -> None:
    """Refuse too many columns, and a name that comes twice: it would hide a column."""
    if len(header) > limits.columns:
        raise DataError(
            f"{name}:1: has {len(header):,} columns; at most {limits.columns:,} are read."
        )
    twice = next((c for c, count in Counter(header).items() if c and count > 1), None)
    if twice is not None:
        raise DataError(f"{name}:1: the column {twice!r} comes twice; rename or remove one.")


def read_parquet_rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[LocatedRow]:
    """Yield the rows of a Parquet file; what it says of its size is checked before it is read."""
    try:
        import polars
    except ImportError as error:
        raise need("polars", "tables", f"Reading {name}") from error
    data = io.BytesIO(b"".join(decompressed_chunks(name, stream, limits)))
    try:
        table = _read_parquet(polars, name, data, limits)
    except polars.exceptions.PolarsError as error:
        raise DataError(f"{name}: cannot be read as Parquet ({error}).") from error
    for number, row in enumerate(table.iter_rows(named=True), 1):
        yield f"{name}: row {number}", {k: v for k, v in row.items() if v is not None}


def _read_parquet(polars: Any, name: str, data: io.BytesIO, limits: ReadLimits) -> Any:
    """Read in slices, so that a small file cannot become a huge table at once."""
    scanned = polars.scan_parquet(data)
    height, width = (
        int(scanned.select(polars.len()).collect().item()),
        len(scanned.collect_schema()),
    )
    for count, most, what in (
        (height, limits.rows, "rows"), (width, limits.columns, "columns"),
        (height * width, limits.cells, "cells"),
    ):  # fmt: skip
        if count > most:
            raise _too_much(name, most, what)
    parts, size = [], 0
    for start in range(0, height, PARQUET_SLICE_ROWS):
        part = scanned.slice(start, PARQUET_SLICE_ROWS).collect()
        size += int(part.estimated_size())
        if size > limits.bytes:
            raise _too_much(name, limits.bytes, "bytes")
        parts.append(part)
    return polars.concat(parts) if parts else polars.DataFrame()


def _decoded(name: str, number: int, raw: bytes) -> str:
    try:
        text = raw.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}:{number}: is not UTF-8 text (byte {error.start + 1}).") from error
    return text.removeprefix("\ufeff") if number == 1 else text


READERS: dict[str, Reader] = {
    ".jsonl": read_json_rows, ".ndjson": read_json_rows, ".csv": read_csv_rows, ".tsv": read_csv_rows,
    ".parquet": read_parquet_rows,
}  # fmt: skip


# --- files of the user's own: plain or compressed, of any size


def read_file_rows(path: Path, reader: Reader = read_rows) -> Iterator[LocatedRow]:
    """Yield the rows of a file, read as its name says or by `reader`."""
    with open_bytes(path) as (stream, _):
        plain = str(path).removesuffix(suffix_of(path)[1])
        for where, row in reader(plain, stream, NO_LIMITS):
            yield where.replace(plain, str(path), 1), row


def read_file_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row of a table, and the line where the row begins."""
    with open_bytes(path) as (stream, _):
        yield from read_cells(str(path), stream, NO_LIMITS)
