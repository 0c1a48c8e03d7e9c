"""Rows of foreign files, and names that our files can hold."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from firstpage.data.formats.row_reader import NO_LIMITS, read_file_cells, read_json_rows
from firstpage.data.io.files import read_all
from firstpage.errors import DataError, at

Json: TypeAlias = object
"""A value of a JSON file, of any type until it is looked at."""


def table(path: Path, wanted: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (file:line, fields) of a CSV file with a header, rows without any text left out.

    The line is the one where a row begins: fields in quotes may go over several.

    wanted  the names that the column of each field may have
    """
    rows = read_file_cells(path)
    header = [name.strip().lower() for name in next(rows, (1, []))[1]]
    columns = {key: _column(path, header, names) for key, names in wanted.items()}
    for line, row in rows:
        if any(field.strip() for field in row):
            if len(row) <= max(columns.values()):
                raise DataError(f"{at(path, line)}: has fewer fields than the header.")
            if any(field.strip() for field in row[len(header) :]):
                raise DataError(
                    f"{at(path, line)}: has more fields than the header; put fields with "
                    "separators into quotes."
                )
            fields = {key: row[column].strip() for key, column in columns.items()}
            yield at(path, line), fields


def _column(path: Path, header: list[str], names: tuple[str, ...]) -> int:
    """Return the index of the column that has the first of the names."""
    name = next((name for name in names if name in header), None)
    if name is None:
        raise DataError(f"{at(path, 1)}: has no column {' or '.join(names)}.")
    if header.count(name) > 1:
        raise DataError(f"{at(path, 1)}: the column {name} is there twice.")
    return header.index(name)


def json_values(path: Path) -> Iterator[tuple[str, Json]]:
    """Yield (file:line, value): the one value of a JSON file, or the object of each line."""
    data = read_all(path)
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        yield from read_json_rows(str(path), io.BytesIO(data), NO_LIMITS)
    else:
        yield at(path, 1), whole


def name_of(value: Json) -> str:
    """A text or a number as a name; TypeError for anything else, or for half a character."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError(value)
    name = str(value)
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise TypeError(value)
    return name


class Names:
    """Names without blanks, as TREC and LETOR files need them: "red shoes" is red_shoes."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._given: dict[str, str] = {}

    def __call__(self, given: str, where: str) -> str:
        given = given.replace("\ufeff", "")  # a mark of files, that a reader would drop again
        found = "_".join(given.split())
        if not found:
            raise DataError(f"{where}: a {self.what} is empty.")
        other = self._given.setdefault(found, " ".join(given.split()))
        if other != " ".join(given.split()):
            raise DataError(
                f"{where}: {other!r} and {given!r} would both be called {found!r}; rename one."
            )
        return found
