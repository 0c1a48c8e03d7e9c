"""Files as rows, with limits: what is uploaded may be a trap."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from firstpage.errors import DataError, need

Row = tuple[str, Mapping[str, Any]]  # where it stands (file:line), what it holds

LONGEST_LINE = 16 << 20
PIECE = 1 << 16
SLICE = 10_000  # rows of a Parquet file that are read at a time


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
Reader = Callable[[str, ByteStream, ReadLimits], Iterator[Row]]


def rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[Row]:
    """Yield the rows of a file, read as its name says."""
    plain = name.lower().removesuffix(".gz")
    for suffix, reader in READERS.items():
        if plain.endswith(suffix):
            return _counted(name, reader(name, stream, limits), limits)
    raise DataError(f"{name}: rows come as {', '.join(READERS)} (.gz too); rename or convert it.")


def _counted(name: str, read: Iterator[Row], limits: ReadLimits) -> Iterator[Row]:
    yield from islice(read, limits.rows)
    if next(read, None) is not None:
        raise _too_much(name, limits.rows, "rows")


def _too_much(name: str, most: int, what: str) -> DataError:
    return DataError(f"{name}: holds more than {most:,} {what}; split it.")


def unpacked(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[bytes]:
    """Yield the file's bytes in pieces, decompressed where it is gzip; stops at the limit."""
    packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    source: ByteStream = gzip.open(stream) if packed else stream  # noqa: SIM115
    seen = 0
    try:
        while piece := source.read(PIECE):
            seen += len(piece)
            if seen > limits.bytes:
                raise _too_much(name, limits.bytes, "bytes")
            yield piece
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: the .gz file is damaged or cut short ({error}).") from error


def lines(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[tuple[int, str]]:
    """Yield lines of UTF-8 text with their numbers, without ends or a byte-order mark."""
    begun: list[bytes] = []  # pieces of a line that has not ended
    number = size = 0
    for piece in unpacked(name, stream, limits):
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
        if size > LONGEST_LINE:
            raise DataError(f"{name}:{number + 1}: a line of over {LONGEST_LINE:,} bytes.")
    if size:
        yield number + 1, _decoded(name, number + 1, b"".join(begun))


def json_rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[Row]:
    """Yield one JSON object per line."""
    for number, line in lines(name, stream, limits):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: this is no JSON ({error}).") from error
        if not isinstance(row, dict):
            raise DataError(f"{where}: a line must be one JSON object.")
        yield where, row


def csv_rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[Row]:
    """Yield the rows of a table with a header; commas, or tabs where the name ends in .tsv."""
    at = 0

    def text() -> Iterator[str]:
        nonlocal at
        for at, line in lines(name, stream, limits):  # noqa: B007 (told in errors)
            yield line + "\n"

    tab = name.lower().removesuffix(".gz").endswith(".tsv")
    csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(text(), delimiter="\t" if tab else ",", strict=True)
    try:
        header = [column.strip() for column in next(reader, [])]
        _check_header(name, header, limits)
        for cells in reader:
            if len(cells) > len(header):
                raise DataError(f"{name}:{at}: has more cells than the header.")
            if cells:  # no blank line
                named = zip(header, cells, strict=False)  # cells left out at the end are empty
                yield f"{name}:{at}", {column: cell for column, cell in named if cell != ""}
    except csv.Error as error:
        raise DataError(f"{name}:{at}: cannot be read as a table ({error}).") from error


def _check_header(name: str, header: Sequence[str], limits: ReadLimits) -> None:
    """Refuse too many columns, and a name that comes twice: it would hide a column."""
    if len(header) > limits.columns:
        raise DataError(
            f"{name}:1: has {len(header):,} columns; at most {limits.columns:,} are read."
        )
    twice = next((c for c, count in Counter(header).items() if c and count > 1), None)
    if twice is not None:
        raise DataError(f"{name}:1: the column {twice!r} comes twice; rename or remove one.")


def parquet_rows(name: str, stream: ByteStream, limits: ReadLimits) -> Iterator[Row]:
    """Yield the rows of a Parquet file; what it says of its size is checked before it is read."""
    try:
        import polars
    except ImportError as error:
        raise need("polars", "tables", f"Reading {name}") from error
    data = io.BytesIO(b"".join(unpacked(name, stream, limits)))
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
    for start in range(0, height, SLICE):
        part = scanned.slice(start, SLICE).collect()
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
    ".jsonl": json_rows, ".ndjson": json_rows, ".csv": csv_rows, ".tsv": csv_rows,
    ".parquet": parquet_rows,
}  # fmt: skip
