"""Rows of foreign files, and the ids in them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from firstpage.core import DataError, location, unescape_formula
from firstpage.data.formats import NO_LIMITS, read_file_cells, read_json_rows
from firstpage.data.io import RepeatedKey, read_all, unique_keys

Json: TypeAlias = object
"""A value of a JSON file, of a type that is not checked yet."""


def table_rows(
    path: Path, columns: dict[str, tuple[str, ...]]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (file:line, fields) of a CSV file with a header, without blank rows.

    The line is the one where a row begins; quoted fields may span several.  `columns` gives the
    possible headings of each field.
    """
    rows = read_file_cells(path)
    header = [name.strip().lower() for name in next(rows, (1, []))[1]]
    indices = {key: _column(path, header, names) for key, names in columns.items()}
    for line, row in rows:
        if any(field.strip() for field in row):
            if len(row) <= max(indices.values()):
                raise DataError(f"{location(path, line)}: has fewer fields than the header.")
            if any(field.strip() for field in row[len(header) :]):
                raise DataError(
                    f"{location(path, line)}: has more fields than the header; quote fields that "
                    "contain separators."
                )
            fields = {key: _text(row[column]) for key, column in indices.items()}
            yield location(path, line), fields


def _text(cell: str) -> str:
    """Return the text of a cell; Firstpage writes a blank and an apostrophe before formulas."""
    return unescape_formula(cell.strip()) if cell.startswith(" '") else cell.strip()


def _column(path: Path, header: list[str], names: tuple[str, ...]) -> int:
    """Return the index of the column with the first of the names that occurs."""
    name = next((name for name in names if name in header), None)
    if name is None:
        raise DataError(f"{location(path, 1)}: has no column {' or '.join(names)}.")
    if header.count(name) > 1:
        raise DataError(f"{location(path, 1)}: the column {name} occurs twice.")
    return header.index(name)


def json_values(path: Path) -> Iterator[tuple[str, Json]]:
    """Yield (file:line, value): the single value of a JSON file, or the object of each line."""
    data = read_all(path)
    try:
        value = json.loads(data, object_pairs_hook=unique_keys)
    except RepeatedKey as error:
        raise DataError(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        yield from read_json_rows(str(path), io.BytesIO(data), NO_LIMITS)
    else:
        yield location(path, 1), value


def name_of(value: Json) -> str:
    """Return a string or a number as a name; raise TypeError for others and lone surrogates."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TypeError(value)
    name = str(value)
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise TypeError(value)
    return name


def identifier(text: str, kind: str, where: str) -> str:
    """Return an id without blanks around it; raise an error if it is empty."""
    name = text.replace("\ufeff", "").strip()  # a byte order mark, which readers drop
    if not name:
        raise DataError(f"{where}: a {kind} is empty.")
    return name
