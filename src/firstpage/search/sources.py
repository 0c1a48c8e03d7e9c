"""What the readers of documents and queries share: formats, encodings, ids, notes."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from firstpage.core import Advice, DataError, location, missing_dependency, warn
from firstpage.data.formats import (
    NO_LIMITS,
    PARQUET_SLICE_ROWS,
    ByteStream,
    LocatedRow,
    ReadLimits,
    read_lines,
    read_parquet_rows,
)
from firstpage.data.io import BOM, suffix_of

MAX_RECORD_CHARACTERS = 64 << 20  # of one document or topic; a missing end mark is found here
MAX_ID_CHARACTERS = 10_000  # the engine does not find longer ones
PEEK_BYTES = 4096

SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
FIRST_BYTES = (
    (re.compile(rb"\APAR1"), "parquet"),
    (re.compile(rb"\A\s*\.I\s"), "smart"),
    (re.compile(rb"\A\s*\d+[ \t]*\r?\n(?:[^\n]*\n)+?[ \t]*/[ \t]*(?:\r?\n|\Z)"), "npl"),
    (re.compile(rb"\A\s*\{"), "jsonl"),
    (re.compile(rb"^[ \t]*<(doc|top)[\s>]", re.I | re.M), "trec"),
)
# Control characters other than white space, and surrogates, which UTF-8 cannot encode.
_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_IN_IDS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Notes:
    """Reports each kind of correction once per reading, as a warning of one line by default."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def once(self, kind: str, message: str) -> None:
        """Report a correction unless one of this kind was reported before."""
        if kind not in self._reported:
            self._reported.add(kind)
            self.report(message)

    def report(self, message: str) -> None:
        """Report a correction."""
        warn(message)


def recognize(path: Path, stream: Any, formats: Mapping[str, str], of: str) -> str:
    """Return the format of an opened file by its suffix or its first bytes.

    `of` is "documents" or "queries", for the advice.
    """
    if (suffix := suffix_of(path)[0]) in SUFFIXES:
        return SUFFIXES[suffix]
    head = bytes(stream.peek(PEEK_BYTES))[:PEEK_BYTES].removeprefix(BOM)
    if not head.strip():
        raise DataError(f"{path}: is empty.")
    for pattern, format in FIRST_BYTES:
        if pattern.search(head):
            return format
    known = "; ".join(f"{name} ({text})" for name, text in formats.items())
    raise DataError(
        f"{path}: its format is recognized neither by its name nor by its first bytes; the formats "
        f"of {of} are {known}.",
        Advice("Name it with {}.", "format", of=of),
    )


def check_choice(parameter: str, value: object, choices: Collection[str]) -> None:
    """Raise unless a parameter has one of the values that it can have."""
    if value not in choices:
        raise DataError(f"{parameter} must be one of {', '.join(choices)}; got {value!r}.")


def read_old_lines(
    name: str, stream: ByteStream, notes: Notes, limits: ReadLimits = NO_LIMITS
) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file of an old format: UTF-8, or Latin-1 where a line is not UTF-8."""

    def decode(name: str, number: int, raw: bytes) -> str:
        raw = raw.removesuffix(b"\r")
        if number == 1:
            raw = raw.removeprefix(BOM)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            notes.once(
                "latin-1",
                f"{location(name, number)}: is not UTF-8; such lines are read as Latin-1.",
            )
            return raw.decode("latin-1")

    return read_lines(name, stream, limits, decode)


def read_parquet(path: Path, stream: ByteStream) -> Iterator[LocatedRow]:
    """Yield the rows of a Parquet file, read in slices; a missing value is absent."""
    if suffix_of(path)[1] or not path.is_file():  # compressed again, or a pipe: read as a whole
        yield from read_parquet_rows(str(path), stream, NO_LIMITS)
        return
    try:
        import polars
    except ImportError as error:
        raise missing_dependency("polars", "tables", f"Reading {path}") from error
    try:
        scanned = polars.scan_parquet(path, glob=False)
        height = int(scanned.select(polars.len()).collect().item())
        for start in range(0, height, PARQUET_SLICE_ROWS):
            rows = scanned.slice(start, PARQUET_SLICE_ROWS).collect()
            for number, row in enumerate(rows.iter_rows(named=True), start + 1):
                yield f"{path}: row {number}", {k: v for k, v in row.items() if v is not None}
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path}: cannot be read as Parquet ({reason}).") from error


def clean(text: str, where: str, notes: Notes) -> str:
    """Return a text with blanks for control characters and surrogates without a partner."""
    if text.isprintable() or not _UNREADABLE.search(text):
        return text
    notes.once(
        "control characters",
        f"{where}: contains control characters; they are read as blanks, here and below.",
    )
    return _UNREADABLE.sub(" ", text)


def identifier(value: object, where: str) -> str:
    """Return the id of a document or query without blanks around it; integral floats lose `.0`."""
    text = _identifier(value, where)
    if len(text) > MAX_ID_CHARACTERS:
        raise DataError(
            f"{where}: the id has {len(text):,} characters, and at most {MAX_ID_CHARACTERS:,} are "
            f"possible: {text[:40]!r}.."
        )
    return text


def _identifier(value: object, where: str) -> str:
    if type(value) is str and value.isprintable() and (text := value.strip()):
        return text
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise DataError(f"{where}: an id must be a text or a number; got {type(value).__name__}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"{where}: an id must be a text or a number; got {value}.")
    text = str(value).strip()
    if not text:
        raise DataError(f"{where}: the id is empty; give it one.")
    if not text.isprintable() and (bad := _NOT_IN_IDS.search(text)):
        raise DataError(
            f"{where}: the id contains the character {bad[0]!r} at position {bad.start() + 1}; "
            "ids are texts without control characters."
        )
    return text


def key_among(names: Collection[str], wanted: Collection[str]) -> str | None:
    """Return the name that equals the first possible of the wanted ones, in any case."""
    folded: dict[str, str] = {}
    for name in names:
        folded.setdefault(name.casefold(), name)
    return next((folded[name] for name in wanted if name in folded), None)
