"""Tables of queries: one row per query, with columns such as class, language or traffic."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstpage.core import DataError, location, unescape_formula
from firstpage.data.column_names import QUERY_NAMES
from firstpage.data.formats.row_reader import separator_of
from firstpage.data.formats.tables import import_polars
from firstpage.data.frames import find_column, is_frame
from firstpage.data.io.files import read_all, suffix_of

COLUMN_TABLES = (".parquet", ".arrow", ".feather", ".ipc")
JSON_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True)
class QueryTable:
    """Columns of queries.

    Parameters
    ----------
    columns : dict of str to dict of str to object
        {column: {query: value}}.
    source : str, default ""
        The file that the table was read from.

    Examples
    --------
    >>> import firstpage as fp
    >>> table = fp.QueryTable({"language": {"q1": "en", "q2": "de"}})
    >>> table.column("language")
    {'q1': 'en', 'q2': 'de'}
    """

    columns: Mapping[str, Mapping[str, Any]]
    source: str = ""

    @classmethod
    def from_frame(cls, frame: Any, source: str = "") -> QueryTable:
        """Return the table of a data frame (pandas, polars) with a column of query ids.

        Parameters
        ----------
        frame : data frame
            One row per query.
        source : str, default ""
            The name of the table, for errors.

        Returns
        -------
        QueryTable
            All columns but that of the ids.
        """
        if not is_frame(frame):
            raise DataError(f"a table of queries must be a data frame; got {type(frame).__name__}.")
        name = find_column(frame, QUERY_NAMES, "query ids", source or "the queries")
        columns = {str(column): list(frame[column]) for column in frame.columns}
        return cls(_by_query(columns, name, source or "the queries"), source)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> QueryTable:
        """Read a table of queries: CSV, TSV, JSON lines, Parquet or Arrow.

        Parameters
        ----------
        path : path
            The file; one of its columns has the query ids (`qid`, `query_id`, `query`).

        Returns
        -------
        QueryTable
            All columns but that of the ids.

        Raises
        ------
        DataError
            If there is no such column, or a query occurs twice.
        """
        file = Path(path)
        suffix = suffix_of(file)[0]
        if suffix in COLUMN_TABLES:
            polars = import_polars(f"Reading {file}")
            read = polars.read_parquet if suffix == ".parquet" else polars.read_ipc
            return cls.from_frame(read(io.BytesIO(read_all(file))), str(file))
        text = read_all(file).decode("utf-8", "surrogateescape")
        columns = _json_columns(text, file) if suffix in JSON_LINES else _csv_columns(text, file)
        lower = {name.lower(): name for name in reversed(list(columns))}
        found = next((lower[name] for name in QUERY_NAMES if name in lower), None)
        if found is None:
            raise DataError(
                f"{file}: has no column of query ids ({', '.join(QUERY_NAMES)}); it has: "
                f"{', '.join(columns) or 'none'}."
            )
        return cls(_by_query(columns, found, str(file)), str(file))

    def column(self, name: str) -> dict[str, Any]:
        """Return the values of a column by query.

        Parameters
        ----------
        name : str
            The column.

        Returns
        -------
        dict
            {query: value}.

        Raises
        ------
        DataError
            If there is no such column.
        """
        if name not in self.columns:
            raise DataError(
                f"{self.source or 'the queries'}: there is no column {name!r}; there are: "
                f"{', '.join(self.columns) or 'none'}."
            )
        return dict(self.columns[name])

    def numbers(self, name: str) -> dict[str, float]:
        """Return the numbers of a column by query, such as weights.

        Parameters
        ----------
        name : str
            The column.

        Returns
        -------
        dict of str to float
            {query: number}.

        Raises
        ------
        DataError
            If a cell is not a number.
        """
        numbers = {}
        for query, value in self.column(name).items():
            try:
                numbers[query] = float(value)
                if math.isnan(numbers[query]):
                    raise ValueError
            except (TypeError, ValueError):
                raise DataError(
                    f"{self.source or 'the queries'}: {name} of query {query!r} must be a number; "
                    f"got {value!r}."
                ) from None
        return numbers


def _by_query(
    columns: Mapping[str, list[Any]], id_column: str, source: str
) -> dict[str, dict[str, Any]]:
    """Return the other columns by query; refuse a query that occurs twice."""
    ids = [str(value) for value in columns[id_column]]
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        twice = next(query for query in ids if query in seen or seen.add(query))  # type: ignore[func-returns-value]
        raise DataError(f"{source}: query {twice!r} occurs twice; give one row per query.")
    return {
        name: dict(zip(ids, values, strict=True))
        for name, values in columns.items()
        if name != id_column
    }


def _csv_columns(text: str, file: Path) -> dict[str, list[str]]:
    first = text.partition("\n")[0]
    rows = list(csv.reader(io.StringIO(text), delimiter=separator_of(str(file), first)))
    rows = [row for row in rows if row]
    if not rows:
        raise DataError(f"{file}: contains no queries.")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise DataError(
                f"{location(file, number)}: the row has {len(row)} cells, and the first line "
                f"{len(rows[0])}."
            )
    return {
        name.strip(): [unescape_formula(row[c]) for row in rows[1:]]
        for c, name in enumerate(rows[0])
    }


def _json_columns(text: str, file: Path) -> dict[str, list[Any]]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{location(file, number)}: not JSON ({error}).") from None
        if not isinstance(row, dict):
            raise DataError(f"{location(file, number)}: must be a JSON object.")
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}
