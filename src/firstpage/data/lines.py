"""Files as rows, with limits: what is uploaded may be a trap."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from firstpage.errors import DataError, need

Row = tuple[str, Mapping[str, Any]]  # where it stands (file:line), what it holds

LONGEST_LINE = 16 << 20
PIECE = 1 << 16
Limit = int
Reader = Callable[[str, IO[bytes], Limit], Iterator[Row]]


def rows(name: str, stream: IO[bytes], limit: Limit) -> Iterator[Row]:
    """The rows of a file, read as its name says."""
    plain = name.lower().removesuffix(".gz")
    for suffix, reader in READERS.items():
        if plain.endswith(suffix):
            return reader(name, stream, limit)
    raise DataError(f"{name}: rows come as {', '.join(READERS)} (.gz too); rename or convert it.")


def unpacked(name: str, stream: IO[bytes], limit: Limit) -> Iterator[bytes]:
    """The file's bytes in pieces, decompressed where it is gzip; stops at the limit."""
    packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    source: IO[bytes] = gzip.open(stream) if packed else stream  # type: ignore[assignment]  # noqa: SIM115
    seen = 0
    try:
        while piece := source.read(PIECE):
            seen += len(piece)
            if seen > limit:
                raise DataError(f"{name}: holds more than {limit:,} bytes; split it.")
            yield piece
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: the .gz file is damaged or cut short ({error}).") from error


def lines(name: str, stream: IO[bytes], limit: Limit) -> Iterator[tuple[int, str]]:
    """Lines of UTF-8 text with their numbers, without ends; a byte-order mark is dropped."""
    rest, number = b"", 0
    for piece in unpacked(name, stream, limit):
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > LONGEST_LINE:
            raise DataError(
                f"{name}:{number + len(whole) + 1}: a line of over {LONGEST_LINE:,} bytes."
            )
        for raw in whole:
            number += 1
            yield number, _decoded(name, number, raw)
    if rest:
        yield number + 1, _decoded(name, number + 1, rest)


def json_rows(name: str, stream: IO[bytes], limit: Limit) -> Iterator[Row]:
    """One JSON object a line."""
    for number, line in lines(name, stream, limit):
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


def csv_rows(name: str, stream: IO[bytes], limit: Limit) -> Iterator[Row]:
    """A table with a header; commas, or tabs where the name ends in .tsv."""
    at = 0

    def text() -> Iterator[str]:
        nonlocal at
        for at, line in lines(name, stream, limit):  # noqa: B007 (told in errors)
            yield line + "\n"

    tab = name.lower().removesuffix(".gz").endswith(".tsv")
    csv.field_size_limit(LONGEST_LINE)
    reader = csv.DictReader(text(), delimiter="\t" if tab else ",", strict=True)
    try:
        _check_header(name, reader.fieldnames or [])
        for row in reader:
            if None in row:
                raise DataError(f"{name}:{at}: has more cells than the header.")
            yield f"{name}:{at}", {k.strip(): v for k, v in row.items() if v not in (None, "")}
    except csv.Error as error:
        raise DataError(f"{name}:{at}: cannot be read as a table ({error}).") from error


def _check_header(name: str, header: Sequence[str]) -> None:
    """A name that comes twice would hide a column."""
    names = [column.strip() for column in header]
    twice = next((column for column in names if column and names.count(column) > 1), None)
    if twice is not None:
        raise DataError(f"{name}:1: the column {twice!r} comes twice; rename or remove one.")


def parquet_rows(name: str, stream: IO[bytes], limit: Limit) -> Iterator[Row]:
    """A Parquet file; what it says of its own size is checked before it is unpacked."""
    try:
        import polars
    except ImportError as error:
        raise need("polars", "tables", f"Reading {name}") from error
    data = io.BytesIO(b"".join(unpacked(name, stream, limit)))
    try:
        table = _read_parquet(polars, name, data, limit)
    except polars.exceptions.PolarsError as error:
        raise DataError(f"{name}: cannot be read as Parquet ({error}).") from error
    for number, row in enumerate(table.iter_rows(named=True), 1):
        yield f"{name}: row {number}", {k: v for k, v in row.items() if v is not None}


def _read_parquet(polars: Any, name: str, data: IO[bytes], limit: Limit) -> Any:
    """In slices, so that a small file cannot become a huge table at once."""
    scanned = polars.scan_parquet(data)
    parts, start, size = [], 0, 0
    while True:
        part = scanned.slice(start, 10_000).collect()
        if part.is_empty():
            break
        size += int(part.estimated_size())
        if size > limit:
            raise DataError(f"{name}: holds more than {limit:,} bytes; split it.")
        parts.append(part)
        start += len(part)
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
