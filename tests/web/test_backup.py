"""Copies of a whole store, and back."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import func, select

from firstpage.errors import DataError
from firstpage.web.store import people
from firstpage.web.store.backup import NOT_KEPT, back_up, restore
from firstpage.web.store.connect import Store
from firstpage.web.store.tables import metadata
from tests.web.site import Site


def counts(store: Store) -> dict[str, int]:
    with store.read() as tx:
        return {
            t.name: tx.value(select(func.count()).select_from(t))
            for t in metadata.sorted_tables
            if t.name not in NOT_KEPT
        }


@pytest.mark.parametrize("name", ["copy.db", "copy.jsonl", "copy.jsonl.gz"])
def test_there_and_back(both: Site, tmp_path: Path, name: str) -> None:
    both.project()
    both.client("ada").judge(both.task("books", "ada"))
    kind = back_up(both.store, tmp_path / name)
    assert kind == ("sqlite" if both.store.sqlite and name == "copy.db" else "jsonl")
    other = Site(Store(tmp_path / "restored", both.clock).prepare(), both.clock)
    restore(tmp_path / name, other.store)
    assert counts(other.store) == counts(both.store)
    task = other.task("books", "ada")
    assert other.client("ada").state(task) == both.client("ada").state(task)
    other.store.close()


def test_into_postgresql_and_on(site: Site, postgres_server: str, tmp_path: Path) -> None:
    """Ids go on after those that came."""
    from tests.web import postgres

    site.project()
    site.client("ada").judge(site.task("books", "ada"))
    back_up(site.store, tmp_path / "copy.db")
    other = Store(postgres.new_database(postgres_server), site.clock).prepare()
    restore(tmp_path / "copy.db", other)
    assert counts(other) == counts(site.store)
    with other.write() as tx:
        assert people.create(tx, "new").id > site.person("ada").id
    other.close()


def test_a_copy_while_others_write(site: Site, tmp_path: Path) -> None:
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
            found = tx.value(select(func.count()).select_from(metadata.tables["people"]))
            notes = tx.value(select(func.count()).select_from(metadata.tables["audit"]))
        assert found == notes, "a moment between two transactions, never inside one"
        copy.close()


def test_a_full_store_is_not_written_over(site: Site, tmp_path: Path) -> None:
    site.project()
    back_up(site.store, tmp_path / "copy.jsonl")
    with pytest.raises(DataError, match="not empty"):
        restore(tmp_path / "copy.jsonl", site.store)


@pytest.mark.parametrize("data", [b"", b"nonsense\n", b'{"format": "other"}\n',
                                  b'{"format": "firstpage-backup"}\n{"table": "x", "row": {}}\n'])  # fmt: skip
def test_what_is_no_backup_is_told(site: Site, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.jsonl").write_bytes(data)
    if not data:
        assert restore(tmp_path / "x.jsonl", site.store) == 0
        return
    with pytest.raises(DataError, match="no backup"):
        restore(tmp_path / "x.jsonl", site.store)


def test_nobody_stays_logged_in(site: Site, tmp_path: Path) -> None:
    site.client("ada")
    back_up(site.store, tmp_path / "copy.db")
    copy = Store(f"sqlite:///{tmp_path / 'copy.db'}")
    with copy.read() as tx:
        assert tx.all(select(metadata.tables["logins"])) == []
    copy.close()
