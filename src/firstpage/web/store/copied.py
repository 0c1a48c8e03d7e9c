"""Lines of a copy, checked one by one: a file that is cut, altered or of another kind is told.

The first line names the format and its version, then each row has a line, and the last one
counts the rows of every table: without it the copy is not whole.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from sqlalchemy import JSON, Boolean, Column, Float, Integer, LargeBinary, Table
from sqlalchemy.types import TypeEngine

from firstpage.errors import DataError, at
from firstpage.web.store.tables import metadata

FORMAT = "firstpage-backup"
VERSION = 2  # 1 had no last line
NOT_KEPT = ("logins", "attempts")  # nobody stays logged in across a restore
MOST = 2**63 - 1

Rows = Iterator[tuple[Table, dict[str, Any]]]


def kept() -> list[Table]:
    """The tables of a copy, in an order in which they can be read back."""
    return [table for table in metadata.sorted_tables if table.name not in NOT_KEPT]


def head() -> str:
    return json.dumps({"format": FORMAT, "version": VERSION}) + "\n"


def line_of(table: str, row: dict[str, Any]) -> str:
    return json.dumps({"table": table, "row": {k: _out(v) for k, v in row.items()}}) + "\n"


def foot(counts: dict[str, int]) -> str:
    return json.dumps({"end": counts}) + "\n"


def rows(path: Path, lines: Iterable[bytes]) -> Rows:
    """The rows of a copy; that it is whole is known when all of them were taken."""
    tables = {table.name: table for table in kept()}
    counts: Counter[str] = Counter()
    end: Any = None
    for number, line in enumerate(lines, 1):
        record = _record(path, number, line)
        if number == 1:
            _check_head(path, record)
        elif end is not None:
            _refuse(path, number, "there is more after its end")
        elif "end" in record:
            end = record["end"]
        else:
            table = tables.get(record["table"]) if isinstance(record.get("table"), str) else None
            if table is None:
                _refuse(path, number, f"unknown table {record.get('table')!r}"[:80])
            counts[table.name] += 1
            yield table, _row(path, number, table, record.get("row"))
    _check_end(path, end, counts)


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8"), parse_constant=_no_number)
    except UnicodeDecodeError:
        _refuse(path, number, "it is not UTF-8 text")
    except (ValueError, RecursionError) as error:
        if number > 1 and not line.endswith(b"\n"):
            raise _cut(path) from error
        _refuse(path, number, f"{error}")
    if not isinstance(record, dict):
        _refuse(path, number, "this line is no object")
    return record


def _check_head(path: Path, record: dict[str, Any]) -> None:
    if record.get("format") != FORMAT:
        _refuse(path, 1, "it does not begin as one")
    if record.get("version") != VERSION:
        raise DataError(
            f"{at(path, 1)}: is a backup of version {record.get('version')!r}, this Firstpage "
            f"reads version {VERSION}; restore it with the Firstpage that wrote it."
        )


def _check_end(path: Path, end: Any, counts: Counter[str]) -> None:
    if end is None:
        raise _cut(path)
    if end != dict(counts):
        raise DataError(
            f"{path}: this backup is not whole (its last line counts other rows than it has); "
            "take another copy."
        )


def _row(path: Path, number: int, table: Table, given: Any) -> dict[str, Any]:
    """One row, with every column that the table has and values of their types."""
    if not isinstance(given, dict) or not given:
        _refuse(path, number, "this line is no row")
    odd = sorted(set(given) ^ set(table.c.keys()))
    if odd:
        word = "unknown" if odd[0] in given else "missing"
        _refuse(path, number, f"{word} column {odd[0]!r} of {table.name}"[:120])
    found = {}
    for column in table.c:
        value = _in(column.type, given[column.name])
        if not _fits(column, value):
            _refuse(path, number, f"{table.name}.{column.name} has a value of another type")
        found[column.name] = value
    return found


def _fits(column: Column[Any], value: Any) -> bool:
    kind = column.type
    if isinstance(kind, JSON):
        return value is not None or bool(column.nullable)
    if value is None:
        return bool(column.nullable)
    if isinstance(kind, Boolean):
        return isinstance(value, bool)
    if isinstance(kind, Integer):
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST
    if isinstance(kind, Float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, bytes if isinstance(kind, LargeBinary) else str)


def _cut(path: Path) -> DataError:
    return DataError(f"{path}: this backup is cut short (its end is missing); take another copy.")


def _refuse(path: Path, number: int, why: str) -> NoReturn:
    raise DataError(f"{at(path, number)}: this is no backup of Firstpage ({why}).")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _out(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _in(kind: TypeEngine[Any], value: Any) -> Any:
    """Bytes again where the column has bytes; anything else as it came."""
    packed = value.get("base64") if isinstance(value, dict) else None
    if not isinstance(kind, LargeBinary) or not isinstance(packed, str):
        return value
    try:
        return base64.b64decode(packed, validate=True)
    except ValueError:
        return value
