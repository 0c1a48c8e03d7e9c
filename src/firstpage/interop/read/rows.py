"""Rows of foreign files, and names that our files can hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firstpage.data.formats.row_reader import file_cells
from firstpage.data.io.files import read_all
from firstpage.errors import DataError, at


def text_of(path: Path) -> str:
    try:
        return read_all(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is no UTF-8 text (byte {error.start}).") from None


def table(path: Path, wanted: dict[str, tuple[str, ...]]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, fields) of a CSV file with a header; `wanted` has the names a column may have.

    The line is the one where a row begins: fields in quotes may go over several.
    """
    rows = file_cells(path)
    header = [name.strip().lower() for name in next(rows, (1, []))[1]]
    places = {key: _column(path, header, names) for key, names in wanted.items()}
    for line, row in rows:
        if any(field.strip() for field in row):
            if len(row) <= max(places.values()):
                raise DataError(f"{at(path, line)}: has fewer fields than the header.")
            if any(field.strip() for field in row[len(header) :]):
                raise DataError(
                    f"{at(path, line)}: has more fields than the header; put fields with "
                    "separators into quotes."
                )
            yield line, {key: row[place].strip() for key, place in places.items()}


def _column(path: Path, header: list[str], names: tuple[str, ...]) -> int:
    """The place of a column that may have these names, the first of them that is there."""
    name = next((name for name in names if name in header), None)
    if name is None:
        raise DataError(f"{at(path, 1)}: has no column {' or '.join(names)}.")
    if header.count(name) > 1:
        raise DataError(f"{at(path, 1)}: the column {name} is there twice.")
    return header.index(name)


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(line, value) of a file of JSON lines; of one value over several lines, that one."""
    text = text_of(path)
    try:
        yield 1, json.loads(text)
        return
    except (ValueError, RecursionError):
        lines = text.split("\n")  # texts may hold what splitlines takes for an end
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                raise DataError(f"{at(path, number)}: no JSON.") from None


def name_of(value: Any) -> str:
    """A text or a number as a name; TypeError for anything else, or for half a character."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError(value)
    name = str(value)
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise TypeError(value)
    return name


class Names:
    """Names without blanks, as TREC and LETOR files need them: "red shoes" is red_shoes."""

    def __init__(self, what: str, source: Path) -> None:
        self.what, self.source = what, source
        self._given: dict[str, str] = {}

    def __call__(self, given: str, line: int | None = None) -> str:
        given = given.replace("\ufeff", "")  # a mark of files, that a reader would drop again
        found, where = "_".join(given.split()), at(self.source, line)
        if not found:
            raise DataError(f"{where}: a {self.what} is empty.")
        other = self._given.setdefault(found, " ".join(given.split()))
        if other != " ".join(given.split()):
            raise DataError(
                f"{where}: {other!r} and {given!r} would both be called {found!r}; rename one."
            )
        return found
