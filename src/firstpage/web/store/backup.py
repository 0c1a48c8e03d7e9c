"""Copies of a whole project store, taken while it runs.

SQLite is copied as it is by its own backup interface.  Any store, PostgreSQL too, can be written
as JSON lines and read into an empty one.
"""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Table, func, select, text

from firstpage.data.files import write_bytes
from firstpage.errors import DataError
from firstpage.web.store.connect import Store, Tx
from firstpage.web.store.tables import metadata

FORMAT = "firstpage-backup"
BATCH = 500
NOT_KEPT = ("logins", "attempts")  # nobody stays logged in across a restore
SQLITE = b"SQLite format 3\x00"


def back_up(store: Store, path: Path) -> str:
    """A copy of the store; its kind (`sqlite` or `jsonl`) by the store and the file's name."""
    plain = path.name.removesuffix(".gz")
    if store.sqlite and not plain.endswith(".jsonl"):
        _copy_sqlite(store, path)
        return "sqlite"
    with write_bytes(path) as out, store.read() as tx:
        for line in dump(tx, store.sqlite):
            out.write(line.encode())
    return "jsonl"


def restore(path: Path, store: Store) -> int:
    """Read a copy into an empty store; how many rows came back."""
    with open(path, "rb") as file:
        head = file.read(16)
    with store.read() as tx:
        full = [
            t.name for t in metadata.sorted_tables if tx.value(select(func.count()).select_from(t))
        ]
    if full:
        raise DataError(
            f"{store.shown}: is not empty ({full[0]} has rows); restore into a new one."
        )
    if head == SQLITE:
        return _from_sqlite(path, store)
    opened: Any = gzip.open if head[:2] == b"\x1f\x8b" else open
    with opened(path, "rb") as lines:
        return _load(path, lines, store)


def dump(tx: Tx, sqlite: bool = True) -> Iterator[str]:
    """All tables in an order in which they can be read back, one row a line."""
    if not sqlite:  # one picture of all tables, whatever is written meanwhile
        tx.connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
    yield json.dumps({"format": FORMAT, "version": 1}) + "\n"
    for table in metadata.sorted_tables:
        if table.name in NOT_KEPT:
            continue
        found = tx.connection.execution_options(yield_per=BATCH).execute(select(table)).mappings()
        for row in found:
            yield (
                json.dumps({"table": table.name, "row": {k: _out(v) for k, v in row.items()}})
                + "\n"
            )


def _copy_sqlite(store: Store, path: Path) -> None:
    """By SQLite's own interface: consistent, while others write."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with (
            closing(sqlite3.connect(str(store.url.database))) as source,
            closing(sqlite3.connect(part)) as copy,
        ):
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
            for name in NOT_KEPT:
                copy.execute(f"DELETE FROM {name}")
            copy.commit()
        part.replace(path)
    except (sqlite3.Error, OSError) as error:
        part.unlink(missing_ok=True)
        raise DataError(f"{path}: the copy could not be made ({error}).") from error


def _from_sqlite(path: Path, store: Store) -> int:
    """Read a copied database row by row, so that it may go into PostgreSQL as well."""
    copy = Store(f"sqlite:///{path}").prepare()
    try:
        with copy.read() as source:
            return _fill(path, store, dump(source))
    finally:
        copy.close()


def _load(path: Path, lines: IO[bytes], store: Store) -> int:
    return _fill(path, store, (line.decode() for line in lines))


def _fill(path: Path, store: Store, lines: Iterator[str]) -> int:
    tables = {t.name: t for t in metadata.sorted_tables}
    count = 0
    with store.write() as tx:
        batch: list[dict[str, Any]] = []
        table: Table | None = None
        for number, line in enumerate(lines, 1):
            record = _record(path, number, line)
            if number == 1:
                continue
            if table is not None and (record["table"] != table.name or len(batch) >= BATCH):
                tx.add_all(table, batch)
                batch = []
            table = tables[record["table"]]
            batch.append({k: _in(v) for k, v in record["row"].items()})
            count += 1
        if table is not None:
            tx.add_all(table, batch)
        if not store.sqlite:
            _advance_ids(tx)
    return count


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
        if number == 1 and record.get("format") != FORMAT:
            raise ValueError("it does not begin as one")
        if number > 1 and (record["table"] not in metadata.tables or not record["row"]):
            raise ValueError("this line is no row")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}:{number}: this is no backup of Firstpage ({error}).") from error
    found: dict[str, Any] = record
    return found


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


def _out(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _in(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"base64"} and isinstance(value["base64"], str):
        return base64.b64decode(value["base64"])
    return value
