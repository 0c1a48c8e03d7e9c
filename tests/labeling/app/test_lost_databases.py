"""A lost or damaged database: one line that says what, where, and what to do."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import text

from firstpage.cli import app
from firstpage.core.errors import DataError, FirstpageError
from firstpage.labeling.app.store import connect, people
from firstpage.labeling.app.store.connect import FILE, PRIVATE, Store
from tests.labeling.app import postgres
from tests.labeling.app.site import Site

RESTORE = "restore a backup into a new folder: firstpage label restore BACKUP FOLDER"


def error_of(*words: object) -> str:
    """Return the error of a command, which is one line."""
    done = CliRunner().invoke(app, ["label", *map(str, words)])
    assert isinstance(done.exception, FirstpageError), repr(done.exception)
    assert len(str(done.exception).splitlines()) == 1
    return str(done.exception)


def overwrite(value: bytes, start: float, end: float) -> Callable[[Path], object]:
    """Return a function that overwrites a part of a database file."""

    def damaged(path: Path) -> None:
        data = path.read_bytes()
        first, last = (int(len(data) * x) // 4096 * 4096 for x in (start, end))
        path.write_bytes(data[:first] + value * (last - first) + data[last:])

    return damaged


def execute(statement: str) -> Callable[[Path], object]:
    """Return a function that changes a database by a statement."""

    def changed(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            database.execute(statement)
            database.commit()

    return changed


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def lose_beside_its_log(path: Path) -> None:
    path.rename(path.with_name(f"{FILE}-wal"))


def replace_by_another(path: Path) -> None:
    path.unlink()
    execute("CREATE TABLE people (x)")(path)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (lambda p: p.write_text("hello " * 2000), f"is not a database .*{RESTORE}"),
    "no bytes": (lambda p: p.write_bytes(b""), f"is empty .0 bytes.*{RESTORE}"),
    "truncated": (lambda p: os.truncate(p, p.stat().st_size // 2), f"is damaged .*{RESTORE}"),
    "first page": (overwrite(b"\0", 0, 0.05), f"is not a database .*{RESTORE}"),
    "middle": (overwrite(b"\xff", 0.3, 0.7), f"is damaged .*{RESTORE}"),
    "zeros": (overwrite(b"\0", 0.3, 0.7), f"is damaged .*{RESTORE}"),
    "folder": (replace_by_folder, "is a folder, and must be a database file"),
    "log only": (lose_beside_its_log, f"is missing, but firstpage.db-wal .*{RESTORE}"),
    "newer": (execute("UPDATE alembic_version SET version_num = '9999'"), "newer Firstpage"),
    "another": (replace_by_another, "'people' of another program"),
    "table": (execute("DROP TABLE events"), f"table 'events' is missing; {RESTORE}"),
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "stats": (), "backup": ("-o", "copy"), "serve": ("--port", "0"), "setup": ("--name", "new"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_advice(site: Site, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    site.project(queries=20, documents=10)
    site.store.close()
    change, words = DAMAGES[damage]
    path = tmp_path / "project" / FILE
    change(path)
    for verb, options in COMMANDS.items():
        if verb == "setup" and damage in ("middle", "zeros"):
            continue  # it reads only the pages that it needs
        message = error_of(verb, path.parent, *options)
        assert message.startswith(f"{path}: ")
        assert re.search(words, message), message
    assert not (tmp_path / "copy").exists(), "a damaged backup would replace a good one"
    assert path.exists() == (damage != "log only"), "no command replaces what was lost"


@pytest.mark.parametrize("damage", ["newer", "table"])
def test_an_unusable_backup_is_named(site: Site, tmp_path: Path, damage: str) -> None:
    site.store.close()
    path = tmp_path / "project" / FILE
    change, words = DAMAGES[damage]
    change(path)
    message = error_of("restore", path, tmp_path / "elsewhere")
    assert message.startswith(f"{path}: ")
    assert re.search(words, message)
    assert not (tmp_path / "elsewhere").exists()


def test_a_database_file_as_project(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "project" / FILE
    assert f"give the project's folder, or a database: sqlite:///{path}" in error_of("stats", path)


def test_tables_of_another_program_in_postgresql(postgres_server: str) -> None:
    url = postgres.new_database(postgres_server)
    store = Store(url)
    with store.write() as tx:
        tx.connection.execute(text("CREATE TABLE events (x integer)"))
    with pytest.raises(DataError, match="'events' of another program"):
        store.prepare()
    store.close()


def test_an_empty_folder_is_reported_before_it_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Perhaps the disk of the database is not mounted."""
    monkeypatch.setattr("firstpage.labeling.app.serve", lambda *_, **__: None)
    done = CliRunner().invoke(app, ["label", "serve", str(tmp_path)])
    assert "has no labeling project; an empty application is created" in done.stderr


def test_servers_that_start_at_the_same_time_create_one_database(tmp_path: Path) -> None:
    start, errors = threading.Barrier(4), []

    def prepare(number: int) -> None:
        store = Store(tmp_path)
        try:
            start.wait()
            with store.prepare().write() as tx:
                people.create(tx, f"ada{number}")
        except Exception as error:
            errors.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=prepare, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    store = Store(tmp_path)
    with store.read() as tx:
        assert all(people.by_login(tx, f"ada{number}") for number in range(4))
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == PRIVATE


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    Store(tmp_path).prepare().close()
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_failed_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise DataError("no")

    monkeypatch.setattr(connect, "create_tables", fail)
    with pytest.raises(DataError, match="no"):
        Store(tmp_path).prepare()
    assert not list(tmp_path.iterdir())
