"""Copies of a whole project store, taken while it runs.

SQLite is copied as it is by its own backup interface.  Any store, PostgreSQL too, can be written
as JSON lines and read into an empty one.  Copies hold password hashes: only their owner reads them.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sqlite3
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NoReturn

from sqlalchemy import JSON, Boolean, Column, Float, Integer, LargeBinary, Table, func, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.types import TypeEngine

from firstpage.data.io.files import check_readable, open_bytes, suffix_of, write_bytes
from firstpage.errors import DataError, location
from firstpage.folders import atomic_replace
from firstpage.web.store import invitations
from firstpage.web.store.connect import PRIVATE, Store, Tx, make_private, present_version, short
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
            f"{location(path, 1)}: is a backup of version {record.get('version')!r}, this "
            f"Firstpage reads version {VERSION}; restore it with the Firstpage that wrote it."
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
    raise DataError(f"{location(path, number)}: this is no backup of Firstpage ({why}).")


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


BATCH = 500
SQLITE = b"SQLite format 3\x00"


def back_up(store: Store, path: Path) -> str:
    """A copy of the store; its kind (`sqlite` or `jsonl`) by the store and the file's name."""
    if store.sqlite and suffix_of(path)[0] != ".jsonl" and str(path) != "-":
        _copy_sqlite(store, path)
        return "sqlite"
    with write_bytes(path, sync=True) as out, store.read() as tx:
        if str(path) != "-":
            _keep_private(out)
        for line in dump(tx, store.sqlite):
            out.write(line.encode())
    return "jsonl"


def check(path: Path) -> int:
    """Read a whole copy without putting it anywhere; how many rows it has, or what is wrong."""
    with _rows(path) as rows:
        return sum(1 for _ in rows)


@dataclass(frozen=True)
class Restored:
    """How many rows came back, and how many links of the copy have ended."""

    rows: int
    links: int


def restore(path: Path, store: Store) -> Restored:
    """Read a copy into an empty store, all of it or nothing.

    Links that were open when the copy was made end: some of them may have been revoked since.
    """
    with store.read() as tx:
        full = [
            t.name for t in metadata.sorted_tables if tx.value(select(func.count()).select_from(t))
        ]
    if full:
        raise DataError(
            f"{store.shown}: is not empty ({full[0]} has rows); restore into a new one."
        )
    with _rows(path) as rows:
        try:
            return _fill(store, rows)
        except (SQLAlchemyError, UnicodeError) as error:
            raise DataError(
                f"{path}: this backup does not fit together ({short(error)}); "
                "nothing was restored, take another copy."
            ) from error


def dump(tx: Tx, sqlite: bool = True) -> Iterator[str]:
    """All tables in an order in which they can be read back, one row a line; then their counts."""
    if not sqlite:  # one picture of all tables, whatever is written meanwhile
        tx.connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
    yield head()
    counts: dict[str, int] = {}
    for table in kept():
        found = tx.connection.execution_options(yield_per=BATCH).execute(select(table)).mappings()
        for row in found:
            counts[table.name] = counts.get(table.name, 0) + 1
            yield line_of(table.name, dict(row))
    yield foot(counts)


def _keep_private(out: IO[bytes]) -> None:
    """Before a word is written; what a link or device leads to stays as it is."""
    with suppress(OSError, AttributeError):
        if stat.S_ISREG(os.fstat(out.fileno()).st_mode):
            os.fchmod(out.fileno(), PRIVATE)


def _copy_sqlite(store: Store, path: Path) -> None:
    """By SQLite's own interface: consistent, while others write."""
    try:
        with atomic_replace(path, sync=True) as part:
            make_private(part)
            with (
                closing(sqlite3.connect(str(store.url.database))) as source,
                closing(sqlite3.connect(part)) as copy,
            ):
                source.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")
                for name in NOT_KEPT:
                    copy.execute(f"DELETE FROM {name}")
                copy.commit()
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{path}: the copy could not be made ({error}).") from error


@contextmanager
def _rows(path: Path) -> Iterator[Rows]:
    """The rows of a copy of either kind."""
    check_readable(path)
    with open(path, "rb") as file:
        head = file.read(len(SQLITE))
    if not head:
        raise DataError(f"{path}: is empty; this is no backup of Firstpage.")
    if head == SQLITE:
        with _unpacked(path) as copy, copy.read() as tx:
            yield rows(path, (line.encode() for line in dump(tx)))
        return
    with open_bytes(path) as (stream, _):
        yield rows(path, stream)


@contextmanager
def _unpacked(path: Path) -> Iterator[Store]:
    """A copied database, opened apart: bringing its tables up to date leaves the copy alone."""
    with TemporaryDirectory(prefix="firstpage-") as folder:
        mine = Path(folder) / "copy.db"
        shutil.copyfile(path, mine)
        _check_sqlite(path, mine)
        copy = Store(f"sqlite:///{mine}")
        try:
            if present_version(copy) is None:
                raise DataError(f"{path}: this is no backup of Firstpage (it lacks our tables).")
            yield copy.prepare()
        finally:
            copy.close()


def _check_sqlite(path: Path, mine: Path) -> None:
    """A database that is cut or damaged is found before a row of it is read."""
    try:
        with closing(sqlite3.connect(mine)) as copy:
            told = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
            pages = copy.execute("PRAGMA page_count").fetchone()[0]
            if mine.stat().st_size < pages * copy.execute("PRAGMA page_size").fetchone()[0]:
                told = "its last page is not whole"
    except sqlite3.Error as error:
        told = str(error)
    if told != "ok":
        why = " ".join(str(told).split())
        raise DataError(f"{path}: this backup is damaged or cut short ({why}); take another copy.")


def _fill(store: Store, rows: Rows) -> Restored:
    count = 0
    with store.write() as tx:
        batch: list[dict[str, Any]] = []
        table: Table | None = None
        for here, row in rows:
            if table is not None and (here is not table or len(batch) >= BATCH):
                tx.add_all(table, batch)
                batch = []
            table = here
            batch.append(row)
            count += 1
        if table is not None:
            tx.add_all(table, batch)
        if not store.sqlite:
            _advance_ids(tx)
        links = invitations.end_all(tx)
    return Restored(count, links)


def _advance_ids(tx: Tx) -> None:
    """PostgreSQL counts ids apart from the rows that have them."""
    for table in metadata.sorted_tables:
        if "id" in table.c and table.c.id.autoincrement is True:
            last = tx.value(select(func.max(table.c.id)))
            if last is not None:
                tx.connection.execute(
                    text("SELECT setval(pg_get_serial_sequence(:name, 'id'), :last)"),
                    {"name": table.name, "last": last},
                )
