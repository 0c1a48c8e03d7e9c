"""Rows of foreign files, and names that our files can hold."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from firstpage.data.formats.row_reader import NO_LIMITS, csv_rows, json_rows, lines
from firstpage.data.io.files import read_all, suffix_of
from firstpage.errors import DataError, at

Json: TypeAlias = object
"""A value of a JSON file, of any type until it is looked at."""


def table(path: Path, wanted: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (file:line, fields) of a CSV file with a header, rows without any text left out.

    wanted  the names that the column of each field may have
    """
    data, compression = read_all(path), suffix_of(path)[1]
    columns = _columns(path, data, wanted)
    name = str(path)[: -len(compression) or None]
    for where, row in csv_rows(name, io.BytesIO(data), NO_LIMITS):
        if any(cell.strip() for cell in row.values()):
            fields = {key: row.get(column, "").strip() for key, column in columns.items()}
            yield where.replace(name, str(path), 1), fields


def _columns(path: Path, data: bytes, wanted: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """The column of each field: the first of its names that the header has, in any case."""
    _, line = next(lines(str(path), io.BytesIO(data), NO_LIMITS), (1, ""))
    try:
        tabs = suffix_of(path)[0] == ".tsv"
        cells = next(csv.reader([line], delimiter="\t" if tabs else ","), [])
    except csv.Error as error:
        raise DataError(f"{at(path, 1)}: cannot be read as a table ({error}).") from None
    header = [cell.strip() for cell in cells]
    return {key: _column(path, header, names) for key, names in wanted.items()}


def _column(path: Path, header: list[str], names: tuple[str, ...]) -> str:
    lower = [column.lower() for column in header]
    name = next((name for name in names if name in lower), None)
    if name is None:
        other = len(header) == 1 and any(mark in header[0] for mark in ";\t")
        hint = "; put commas between columns" if other else ""
        raise DataError(f"{at(path, 1)}: has no column {' or '.join(names)}{hint}.")
    if lower.count(name) > 1:
        raise DataError(f"{at(path, 1)}: the column {name} is there twice.")
    return header[lower.index(name)]


def json_values(path: Path) -> Iterator[tuple[str, Json]]:
    """Yield (file:line, value): the one value of a JSON file, or the object of each line."""
    data = read_all(path)
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        yield from json_rows(str(path), io.BytesIO(data), NO_LIMITS)
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
