"""Rows of foreign files, and names that our files can hold."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firstpage.data.files import read_all
from firstpage.errors import DataError, at


def text_of(path: Path) -> str:
    try:
        return read_all(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is no UTF-8 text (byte {error.start}).") from None


def table(path: Path, wanted: dict[str, tuple[str, ...]]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, fields) of a CSV file with a header; `wanted` has the names a column may have."""
    rows = csv.reader(io.StringIO(text_of(path)))
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        places = {}
        for key, names in wanted.items():
            found = next((header.index(name) for name in names if name in header), None)
            if found is None:
                raise DataError(f"{at(path, 1)}: has no column {' or '.join(names)}.")
            places[key] = found
        for row in rows:
            if not any(field.strip() for field in row):
                continue
            if len(row) <= max(places.values()):
                raise DataError(f"{at(path, rows.line_num)}: has fewer fields than the header.")
            yield rows.line_num, {key: row[place].strip() for key, place in places.items()}
    except csv.Error as error:
        raise DataError(f"{at(path, rows.line_num)}: no CSV ({error}).") from None


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(line, value) of a file of JSON lines; of one value over several lines, that one."""
    text = text_of(path)
    try:
        yield 1, json.loads(text)
        return
    except (ValueError, RecursionError):
        lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                raise DataError(f"{at(path, number)}: no JSON.") from None


class Names:
    """Names without blanks, as TREC and LETOR files need them: "red shoes" is red_shoes."""

    def __init__(self, what: str, source: Path) -> None:
        self.what, self.source = what, source
        self._given: dict[str, str] = {}

    def __call__(self, given: str) -> str:
        found = "_".join(given.split())
        if not found:
            raise DataError(f"{self.source}: a {self.what} is empty.")
        other = self._given.setdefault(found, " ".join(given.split()))
        if other != " ".join(given.split()):
            raise DataError(
                f"{self.source}: {other!r} and {given!r} would both be called {found!r}; rename "
                "one."
            )
        return found
