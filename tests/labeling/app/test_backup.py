"""Backups of a whole store, and their restoration."""

from __future__ import annotations

import gzip
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, select

from firstpage.core.errors import DataError
from firstpage.labeling.app.store import invitations, people
from firstpage.labeling.app.store.backup import EXCLUDED_TABLES, back_up, restore
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.tables import audit, metadata
from tests.labeling.app import postgres
from tests.labeling.app.site import Site

HEAD = b'{"format": "firstpage-backup", "version": 2}\n'


def counts(store: Store) -> dict[str, int]:
    with store.read() as tx:
        return {
            t.name: tx.value(select(func.count()).select_from(t))
            for t in metadata.sorted_tables
            if t.name not in EXCLUDED_TABLES
        }


@pytest.mark.parametrize("name", ["copy.db", "copy.jsonl", "copy.jsonl.gz"])
def test_backup_and_restore_round_trip(db_site: Site, tmp_path: Path, name: str) -> None:
    db_site.project()
    db_site.client("ada").judge(db_site.task("books", "ada"))
    kind = back_up(db_site.store, tmp_path / name)
    assert kind == ("sqlite" if db_site.store.sqlite and name == "copy.db" else "jsonl")
    other = Site(Store(tmp_path / "restored", db_site.clock).prepare(), db_site.clock)
    restore(tmp_path / name, other.store)
    assert counts(other.store) == counts(db_site.store)
    task = other.task("books", "ada")
    assert other.client("ada").state(task) == db_site.client("ada").state(task)
    other.store.close()


def test_links_end_with_a_restore(db_site: Site, tmp_path: Path) -> None:
    """A link that was revoked after the backup must not become valid again."""
    with db_site.store.write() as tx:
        link = invitations.reset_link(tx, people.ensure(tx, "ada"), None)
    back_up(db_site.store, tmp_path / "copy.jsonl")
    other = Store(tmp_path / "restored", db_site.clock).prepare()
    assert restore(tmp_path / "copy.jsonl", other).links == 1
    with other.read() as tx:
        with pytest.raises(DataError, match="has expired"):
            invitations.find_offer(tx, link.token, "reset")
        assert "reset link ended" in {row["action"] for row in tx.all(select(audit))}
    other.close()


@pytest.mark.parametrize("name", ["copy.db", "copy.jsonl"])
def test_a_project_moves_from_sqlite_to_postgresql_and_back(
    site: Site, postgres_server: str, tmp_path: Path, name: str
) -> None:
    """The same judgments are exported, and judging continues: new ids follow the restored ones."""
    site.project(queries=2, assessors=("ada", "bob"))
    site.client("ada").judge(site.task("books", "ada"))
    started = site.task("books", "bob")
    state = site.client("bob").answer(site.client("bob").state(started)).json()
    back_up(site.store, tmp_path / name)
    new = Store(postgres.new_database(postgres_server), site.clock).prepare()
    restore(tmp_path / name, new)
    moved = Site(new, site.clock)
    assert counts(new) == counts(site.store)
    assert export(moved) == export(site)
    assert moved.client("bob").state(started) == state
    moved.client("bob").judge(started)
    assert moved.person("new").id > site.person("bob").id
    back_up(new, tmp_path / "back.jsonl")
    again = Site(Store(tmp_path / "again", site.clock).prepare(), site.clock)
    restore(tmp_path / "back.jsonl", again.store)
    assert export(again) == export(moved) != export(site)
    moved.close()
    again.close()


def export(site: Site) -> str:
    """Return the log of a site's project as a lead downloads it."""
    reply = site.client("lena").get("/api/v1/projects/books/export/log.jsonl")
    assert reply.status_code == 200, reply.text
    return str(reply.text)


def test_backup_during_writes(site: Site, tmp_path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            with site.store.write() as tx:
                people.create(tx, f"p{number}")
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(3):
            back_up(site.store, tmp_path / f"{number}.db")
    finally:
        stop.set()
        thread.join()
    for number in range(3):
        copy = Store(f"sqlite:///{tmp_path / f'{number}.db'}")
        with copy.read() as tx:
            count = tx.value(select(func.count()).select_from(metadata.tables["people"]))
            notes = tx.value(select(func.count()).select_from(metadata.tables["audit"]))
        assert count == notes, "the backup is a snapshot between two transactions"
        copy.close()


def test_restore_into_a_nonempty_store_is_refused(site: Site, tmp_path: Path) -> None:
    site.project()
    back_up(site.store, tmp_path / "copy.jsonl")
    with pytest.raises(DataError, match="not empty"):
        restore(tmp_path / "copy.jsonl", site.store)


@pytest.mark.parametrize("data", [b"", b"nonsense\n", b'{"format": "other"}\n',
                                  HEAD + b'{"table": "x", "row": {}}\n', HEAD + b"\xff\xfe\n",
                                  HEAD + b'{"table": "people", "row": []}\n', HEAD + b"[]\n",
                                  HEAD + b'{"table": ["people"], "row": {"id": 1}}\n',
                                  HEAD + b'{"table": "logins", "row": {"id": 1}}\n'])  # fmt: skip
def test_other_files_are_refused(site: Site, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.jsonl").write_bytes(data)
    with pytest.raises(DataError, match="not a Firstpage backup"):
        restore(tmp_path / "x.jsonl", site.store)


def refusal(path: Path, store: Store) -> str:
    """Return the error of a refused restore, followed by the tables in which it left rows."""
    with pytest.raises(DataError) as error:
        restore(path, store)
    left = {name: rows for name, rows in counts(store).items() if rows}
    return f"{error.value}{left or ''}"


def is_one_line(message: str, *words: str) -> bool:
    """Return whether a message is one line and contains one of the words."""
    return message.endswith(".") and "\n" not in message and any(word in message for word in words)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Yield an empty store into which a backup is restored."""
    if request.param == "sqlite":
        store = Store(tmp_path / "empty").prepare()
    else:
        url = postgres.new_database(request.getfixturevalue("postgres_server"))
        store = Store(url).prepare()
    yield store
    store.close()


def test_a_truncated_backup_is_refused(site: Site, empty_store: Store, tmp_path: Path) -> None:
    site.project()
    copy, cut = tmp_path / "copy.jsonl", tmp_path / "cut.jsonl"
    back_up(site.store, copy)
    whole = copy.read_bytes()
    lines = whole.splitlines(keepends=True)
    for part in (b"".join(lines[:6]), b"".join(lines[:-1]), lines[0], whole[:-40], whole[:300]):
        cut.write_bytes(part)
        assert is_one_line(refusal(cut, empty_store), "truncated")
    cut.write_bytes(b"".join(lines[:-2] + lines[-1:]))
    assert is_one_line(refusal(cut, empty_store), "incomplete")
    cut.write_bytes(whole + lines[1])
    assert is_one_line(refusal(cut, empty_store), "after its end")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(whole)[:-20])
    assert is_one_line(refusal(tmp_path / "cut.gz", empty_store), "damaged or truncated")
    assert restore(copy, empty_store).rows == len(lines) - 2


def test_a_truncated_database_is_refused(site: Site, empty_store: Store, tmp_path: Path) -> None:
    site.project()
    back_up(site.store, tmp_path / "copy.db")
    whole, cut = (tmp_path / "copy.db").read_bytes(), tmp_path / "cut.db"
    for size in (16, 100, 4096, len(whole) // 2, len(whole) - 4096, len(whole) - 10):
        cut.write_bytes(whole[:size])
        assert is_one_line(refusal(cut, empty_store), "truncated", "not a Firstpage backup")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE x (y)")
    assert is_one_line(refusal(tmp_path / "other.db", empty_store), "tables are missing")
    restore(tmp_path / "copy.db", empty_store)
    assert (tmp_path / "copy.db").read_bytes() == whole, "reading a backup does not change it"


@pytest.mark.parametrize(("column", "value", "words"), [
    ("id", "x", "wrong type"), ("id", True, "wrong type"), ("id", 2**80, "wrong type"),
    ("login", None, "wrong type"), ("login", ["a"], "wrong type"), ("admin", 1, "wrong type"),
    ("bogus", 1, "unknown column 'bogus'"), ("login", "\ud800", "is inconsistent"),
])  # fmt: skip
def test_wrong_values_are_refused(
    empty_store: Store, tmp_path: Path, column: str, value: object, words: str
) -> None:
    row = {"id": 1, "login": "a", "name": "A", "password_hash": None, "admin": False,
           "created": "x", "deleted": None, column: value}  # fmt: skip
    lines = json.dumps({"table": "people", "row": row}), json.dumps({"end": {"people": 1}})
    (tmp_path / "x.jsonl").write_bytes(HEAD + "\n".join(lines).encode() + b"\n")
    assert is_one_line(refusal(tmp_path / "x.jsonl", empty_store), words)


@pytest.mark.parametrize("version", [1, 99, "2", None])
def test_other_versions_are_refused(empty_store: Store, tmp_path: Path, version: object) -> None:
    line = json.dumps({"format": "firstpage-backup", "version": version}) + '\n{"end": {}}\n'
    (tmp_path / "x.jsonl").write_text(line)
    assert is_one_line(refusal(tmp_path / "x.jsonl", empty_store), "reads version 2")


def test_inconsistent_rows_are_refused(site: Site, empty_store: Store, tmp_path: Path) -> None:
    site.project()
    back_up(site.store, tmp_path / "copy.jsonl")
    text = (tmp_path / "copy.jsonl").read_text()
    (tmp_path / "copy.jsonl").write_text(text.replace('"project": 1', '"project": 77'))
    assert is_one_line(refusal(tmp_path / "copy.jsonl", empty_store), "is inconsistent")


@pytest.mark.parametrize("name", ["c.db", "c.jsonl", "c.jsonl.gz", "c.jsonl.xz", "c.jsonl.zst"])
def test_only_the_owner_can_read_a_backup(site: Site, tmp_path: Path, name: str) -> None:
    site.project()
    back_up(site.store, tmp_path / name)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    store = Store(tmp_path / "new").prepare()
    assert restore(tmp_path / name, store).rows > 10
    for path in (tmp_path / "new").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    store.close()


def test_logins_are_not_restored(site: Site, tmp_path: Path) -> None:
    site.client("ada")
    back_up(site.store, tmp_path / "copy.db")
    copy = Store(f"sqlite:///{tmp_path / 'copy.db'}")
    with copy.read() as tx:
        assert tx.all(select(metadata.tables["logins"])) == []
    copy.close()
