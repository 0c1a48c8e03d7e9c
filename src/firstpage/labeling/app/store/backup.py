"""Backups of a whole store, taken while it is in use.

SQLite is copied by its own backup interface.  Any store, also PostgreSQL, can be written as JSON
lines and restored into an empty one.  Backups contain password hashes, so only their owner can read
them.
"""

from __future__ import annotations

import base64
import json
import math
import os
import shutil
import sqlite3
import stat
import time
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

from firstpage.core import DataError, atomic_replace, location
from firstpage.data.io import check_readable, open_bytes, suffix_of, write_bytes
from firstpage.labeling.app.store import invitations
from firstpage.labeling.app.store.connect import PRIVATE, Store, Tx, make_private, present_version
from firstpage.labeling.app.store.failures import DAMAGED, short
from firstpage.labeling.app.store.tables import metadata

FORMAT = "firstpage-backup"
VERSION = 2  # version 1 had no footer
# Nobody stays signed in across a restore, and no message is sent twice.
EXCLUDED_TABLES = ("logins", "attempts", "api_tokens", "deliveries")
MAX_INTEGER = 2**63 - 1

Rows = Iterator[tuple[Table, dict[str, Any]]]


def backup_tables() -> list[Table]:
    """Return the tables of a backup, in an order in which they can be restored."""
    return [table for table in metadata.sorted_tables if table.name not in EXCLUDED_TABLES]


def header() -> str:
    """Return the first line of a backup."""
    return json.dumps({"format": FORMAT, "version": VERSION}) + "\n"


def row_line(table: str, row: dict[str, Any]) -> str:
    """Return the line of a table's row."""
    return json.dumps({"table": table, "row": {k: _encode(v) for k, v in row.items()}}) + "\n"


def footer(counts: dict[str, int]) -> str:
    """Return the last line of a backup, with the number of rows per table."""
    return json.dumps({"end": counts}) + "\n"


def rows(path: Path, lines: Iterable[bytes]) -> Rows:
    """Yield the rows of a backup; an incomplete one raises an error at its end."""
    tables = {table.name: table for table in backup_tables()}
    counts: Counter[str] = Counter()
    end: Any = None
    for number, line in enumerate(lines, 1):
        record = _record(path, number, line)
        if number == 1:
            _check_header(path, record)
        elif end is not None:
            _refuse(path, number, "it has lines after its end")
        elif "end" in record:
            end = record["end"]
        else:
            table = tables.get(record["table"]) if isinstance(record.get("table"), str) else None
            if table is None:
                _refuse(path, number, f"unknown table {record.get('table')!r}"[:80])
            counts[table.name] += 1
            yield table, _row(path, number, table, record.get("row"))
    _check_footer(path, end, counts)


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        _refuse(path, number, "it is not UTF-8 text")
    except (ValueError, RecursionError) as error:
        if number > 1 and not line.endswith(b"\n"):
            raise _truncated(path) from error
        _refuse(path, number, f"{error}")
    if not isinstance(record, dict):
        _refuse(path, number, "this line is not an object")
    return record


def _check_header(path: Path, record: dict[str, Any]) -> None:
    if record.get("format") != FORMAT:
        _refuse(path, 1, "its first line is wrong")
    if record.get("version") != VERSION:
        raise DataError(
            f"{location(path, 1)}: is a backup of version {record.get('version')!r}, this "
            f"Firstpage reads version {VERSION}; restore it with the Firstpage that wrote it."
        )


def _check_footer(path: Path, end: Any, counts: Counter[str]) -> None:
    if end is None:
        raise _truncated(path)
    if end != dict(counts):
        raise DataError(
            f"{path}: this backup is incomplete (its row counts do not match its last line); "
            "take another backup."
        )


def _row(path: Path, number: int, table: Table, record: Any) -> dict[str, Any]:
    """Return a row with exactly the columns of the table, and values of their types."""
    if not isinstance(record, dict) or not record:
        _refuse(path, number, "this line is not a row")
    later = {c.name: None for c in table.c if c.nullable and c.name not in record}
    record = {**record, **later}  # columns that the Firstpage which wrote it did not have
    mismatched = sorted(set(record) ^ set(table.c.keys()))
    if mismatched:
        word = "unknown" if mismatched[0] in record else "missing"
        _refuse(path, number, f"{word} column {mismatched[0]!r} of {table.name}"[:120])
    row = {}
    for column in table.c:
        value = _decode(column.type, record[column.name])
        if not _has_type(column, value):
            _refuse(path, number, f"{table.name}.{column.name} has a value of the wrong type")
        row[column.name] = value
    return row


def _has_type(column: Column[Any], value: Any) -> bool:
    kind = column.type
    if isinstance(kind, JSON):
        return value is not None or bool(column.nullable)
    if value is None:
        return bool(column.nullable)
    if isinstance(kind, Boolean):
        return isinstance(value, bool)
    if isinstance(kind, Integer):
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INTEGER
    if isinstance(kind, Float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, bytes if isinstance(kind, LargeBinary) else str)


def _truncated(path: Path) -> DataError:
    return DataError(f"{path}: this backup is truncated (its end is missing); take another backup.")


def _refuse(path: Path, number: int, reason: str) -> NoReturn:
    raise DataError(f"{location(path, number)}: this is not a Firstpage backup ({reason}).")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _encode(value: Any) -> Any:
    """Return a value for JSON; bytes as base64."""
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _decode(kind: TypeEngine[Any], value: Any) -> Any:
    """Return bytes if the column holds bytes; any other value is unchanged."""
    packed = value.get("base64") if isinstance(value, dict) else None
    if not isinstance(kind, LargeBinary) or not isinstance(packed, str):
        return value
    try:
        return base64.b64decode(packed, validate=True)
    except ValueError:
        return value


BATCH = 500
CHECK_STEPS = 10_000  # of SQLite's virtual machine, between two looks at the clock
SQLITE_MAGIC = b"SQLite format 3\x00"


def back_up(store: Store, path: Path) -> str:
    """Back up the store; return the format, `sqlite` or `jsonl`."""
    if store.sqlite and suffix_of(path)[0] != ".jsonl" and str(path) != "-":
        _copy_sqlite(store, path)
        return "sqlite"
    with write_bytes(path, sync=True) as out, store.read() as tx:
        if str(path) != "-":
            _restrict_access(out)
        for line in dump(tx, store.sqlite):
            out.write(line.encode())
    return "jsonl"


def check(path: Path) -> int:
    """Read a whole backup without restoring it; return the number of its rows."""
    with _rows(path) as rows:
        return sum(1 for _ in rows)


@dataclass(frozen=True)
class Restored:
    """The number of restored rows, and of links that ended."""

    rows: int
    links: int


def restore(path: Path, store: Store) -> Restored:
    """Restore a backup into an empty store, all of it or nothing.

    Links that were open at the time of the backup end: they may have been revoked since.
    """
    with store.read() as tx:
        nonempty = [table.name for table in metadata.sorted_tables if tx.count(table)]
    if nonempty:
        raise DataError(
            f"{store.name}: is not empty ({nonempty[0]} has rows); restore into a new one."
        )
    with _rows(path) as rows:
        try:
            return _fill(store, rows)
        except (SQLAlchemyError, UnicodeError) as error:
            raise DataError(
                f"{path}: this backup is inconsistent ({short(error)}); "
                "nothing was restored, take another backup."
            ) from error


def dump(tx: Tx, sqlite: bool = True) -> Iterator[str]:
    """Yield the lines of a backup: header, one row per line, footer."""
    if not sqlite:  # one snapshot of all tables
        tx.connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
    yield header()
    counts: dict[str, int] = {}
    for table in backup_tables():
        rows = tx.connection.execution_options(yield_per=BATCH).execute(select(table)).mappings()
        for row in rows:
            counts[table.name] = counts.get(table.name, 0) + 1
            yield row_line(table.name, dict(row))
    yield footer(counts)


def _restrict_access(out: IO[bytes]) -> None:
    """Make a regular file readable by its owner only; links and devices are not changed."""
    # A stream has no descriptor, and some systems have no such modes; the backup is written anyway.
    with suppress(OSError, AttributeError):
        if stat.S_ISREG(os.fstat(out.fileno()).st_mode):
            os.fchmod(out.fileno(), PRIVATE)


def _copy_sqlite(store: Store, path: Path) -> None:
    """Copy by SQLite's backup interface, which is consistent while others write."""
    try:
        with atomic_replace(path, sync=True) as temporary:
            make_private(temporary)
            with (
                closing(sqlite3.connect(str(store.url.database))) as source,
                closing(sqlite3.connect(temporary)) as copy,
            ):
                source.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")
                copy.execute("PRAGMA secure_delete=ON")  # else deleted rows remain in free pages
                for name in EXCLUDED_TABLES:
                    copy.execute(f"DELETE FROM {name}")
                copy.commit()
            check_pages(store, temporary)
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{path}: the backup could not be written ({error}).") from error


def check_pages(store: Store, path: Path, seconds: float = math.inf) -> None:
    """Raise if the pages of a store, or of a copy of it, are damaged."""
    problem = damage(path, seconds)
    if problem is not None:
        raise DataError(f"{store.name}: {DAMAGED.reason} ({problem}); {DAMAGED.remedy}.")


@contextmanager
def _rows(path: Path) -> Iterator[Rows]:
    """Yield the rows of a backup in either format."""
    check_readable(path)
    with open(path, "rb") as file:
        head = file.read(len(SQLITE_MAGIC))
    if not head:
        raise DataError(f"{path}: is empty; this is not a Firstpage backup.")
    if head == SQLITE_MAGIC:
        with _unpacked(path) as copy, copy.read() as tx:
            yield rows(path, (line.encode() for line in dump(tx)))
        return
    with open_bytes(path) as (stream, _):
        yield rows(path, stream)


@contextmanager
def _unpacked(path: Path) -> Iterator[Store]:
    """Yield a migrated copy of a database; the backup itself is not changed."""
    with TemporaryDirectory(prefix="firstpage-") as folder:
        copied = Path(folder) / "copy.db"
        shutil.copyfile(path, copied)
        _check_sqlite(path, copied)
        copy = Store(f"sqlite:///{copied}")
        try:
            if present_version(copy) is None:
                raise DataError(f"{path}: this is not a Firstpage backup (its tables are missing).")
            yield _migrated(copy, path)
        finally:
            copy.close()


def _migrated(copy: Store, path: Path) -> Store:
    """Migrate the copy of a backup; an error names the backup."""
    try:
        return copy.prepare()
    except DataError as error:
        raise DataError(str(error).replace(copy.name, str(path))) from error


def _check_sqlite(path: Path, copied: Path) -> None:
    """Raise if the database is truncated or damaged."""
    problem = damage(copied)
    if problem is not None:
        raise DataError(
            f"{path}: this backup is damaged or truncated ({problem}); take another backup."
        )


def damage(path: Path, seconds: float = math.inf) -> str | None:
    """Return what is wrong with the pages of an SQLite database; None if nothing is.

    After some seconds, the rest is not checked.
    """
    end = time.monotonic() + seconds
    try:
        with closing(sqlite3.connect(path)) as database:
            database.set_progress_handler(lambda: time.monotonic() > end, CHECK_STEPS)
            status = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            journal = database.execute("PRAGMA journal_mode").fetchone()[0]
            pages = database.execute("PRAGMA page_count").fetchone()[0]
            size = pages * database.execute("PRAGMA page_size").fetchone()[0]
            if journal != "wal" and path.stat().st_size < size:
                status = "its last page is incomplete"
    except sqlite3.Error as error:
        interrupted = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT
        status = "ok" if interrupted else str(error)
    return None if status == "ok" else " ".join(str(status).split())


def _fill(store: Store, rows: Rows) -> Restored:
    count = 0
    with store.write() as tx:
        batch: list[dict[str, Any]] = []
        table: Table | None = None
        for row_table, row in rows:
            if table is not None and (row_table is not table or len(batch) >= BATCH):
                tx.add_all(table, batch)
                batch = []
            table = row_table
            batch.append(row)
            count += 1
        if table is not None:
            tx.add_all(table, batch)
        if not store.sqlite:
            _advance_ids(tx)
        links = invitations.end_all(tx)
    return Restored(count, links)


def _advance_ids(tx: Tx) -> None:
    """Advance the id sequences of PostgreSQL, which do not follow inserted ids."""
    for table in metadata.sorted_tables:
        if "id" in table.c and table.c.id.autoincrement is True:
            last = tx.value(select(func.max(table.c.id)))
            if last is not None:
                tx.connection.execute(
                    text("SELECT setval(pg_get_serial_sequence(:name, 'id'), :last)"),
                    {"name": table.name, "last": last},
                )
