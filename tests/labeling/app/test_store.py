"""The store: tables, transactions, refusals."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from firstpage.core.errors import DataError
from firstpage.labeling.app.store import audit, connect, people
from firstpage.labeling.app.store.connect import FILE, Store, database_url
from firstpage.labeling.app.store.failures import Busy
from firstpage.labeling.app.store.tables import alembic_version, metadata
from tests.labeling.app.site import Site


def schema(store: Store) -> dict[str, Any]:
    """Return everything that a database says of its tables, in no particular order."""
    with store.read() as tx:
        seen = inspect(tx.connection)
        return {
            table: {
                "columns": {
                    c["name"]: (str(c["type"]), c["nullable"], c["default"])
                    for c in seen.get_columns(table)
                },
                "key": seen.get_pk_constraint(table),
                **{
                    get: sorted(map(repr, getattr(seen, get)(table)))
                    for get in (
                        "get_foreign_keys",
                        "get_unique_constraints",
                        "get_check_constraints",
                        "get_indexes",
                    )
                },
            }
            for table in seen.get_table_names()
        }


def test_the_migrations_create_the_tables(location: str) -> None:
    """A new store has its tables at once: those of all migrations, to the name of an index."""
    store = Store(location).prepare()
    created = schema(store)
    with store.write() as tx:
        metadata.drop_all(tx.connection)
        alembic_version.drop(tx.connection)
        assert connect.version_in(tx) is None
        connect.migrate(tx)
    assert schema(store) == created
    with store.read() as tx:
        context = MigrationContext.configure(tx.connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        assert connect.version_in(tx) == connect.newest_version()
    store.close()


def test_a_new_store_does_not_load_alembic(tmp_path: Path) -> None:
    script = (
        "import sys; from firstpage.labeling.app.store.connect import Store; "
        "Store(sys.argv[1]).prepare().close(); print('alembic' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "False\n"


def test_files_are_named_by_their_versions() -> None:
    """Names with versions allow Alembic to be loaded only when there is something to migrate."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(connect.alembic_config())
    assert scripts.get_current_head() == connect.newest_version()
    assert {s.revision for s in scripts.walk_revisions()} == set(connect.known_versions())


def test_preparing_twice_changes_nothing(location: str) -> None:
    store = Store(location).prepare()
    with store.write() as tx:
        people.create(tx, "ada")
    second = Store(location).prepare()
    with second.read() as tx:
        assert people.by_login(tx, "ADA") is not None
    store.close()
    second.close()


def test_tables_of_a_newer_version_are_refused(location: str) -> None:
    store = Store(location).prepare()
    with store.write() as tx:
        tx.connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DataError, match="newer Firstpage"):
        store.prepare()
    store.close()


def test_a_locked_database_is_reported_as_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "WAIT", 0.1)
    store, other = Store(tmp_path).prepare(), Store(tmp_path)
    with other.write(), pytest.raises(Busy, match="try again"), store.write():
        pass
    store.close()
    other.close()


def test_exhausted_connections_are_reported_as_busy(site: Site) -> None:
    site.project()
    ada = site.client("ada")
    site.store.engine = create_engine(
        site.store.url, pool_size=1, max_overflow=0, pool_timeout=0.05
    )
    with site.store.read():
        with pytest.raises(Busy, match="try again"), site.store.read():
            pass
        reply = ada.get("/api/v1/me")
    assert reply.status_code == 503
    assert int(reply.headers["Retry-After"]) > 0


@pytest.mark.usefixtures("real_commits")
def test_a_judgment_survives_losing_power(site: Site) -> None:
    """The SQLite settings that durability needs."""
    with site.store.read() as tx:
        assert tx.value(text("PRAGMA journal_mode")) == "wal"
        assert tx.value(text("PRAGMA synchronous")) == 2
        assert tx.value(text("PRAGMA foreign_keys")) == 1


def test_postgresql_acknowledges_only_what_is_durable(db_site: Site) -> None:
    if db_site.store.sqlite:
        pytest.skip("a question about PostgreSQL")
    with db_site.store.read() as tx:
        assert tx.value(text("SHOW synchronous_commit")) == "on"


def backend(site: Site) -> int:
    with site.store.read() as tx:
        return int(tx.value(text("SELECT pg_backend_pid()")))


def end_backends(site: Site) -> None:
    """End all connections to the database, as a restart of it does."""
    import psycopg

    address = site.store.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_connections_that_the_database_ended_are_replaced(db_site: Site) -> None:
    if db_site.store.sqlite:
        pytest.skip("SQLite has no connections that end")
    db_site.project()
    ada = db_site.client("ada")
    state = ada.state(db_site.task("books", "ada"))
    first = backend(db_site)
    with db_site.store.read(), db_site.store.read():  # so that the pool has several
        pass
    end_backends(db_site)
    assert ada.answer(state).json()["judgments"] == 1
    assert backend(db_site) != first


def test_a_connection_that_the_network_cut_is_replaced(db_site: Site) -> None:
    """The database does not say so, as it does of one that it ends itself."""
    if db_site.store.sqlite:
        pytest.skip("SQLite has no connections that end")
    with db_site.store.read() as tx:
        first = tx.value(text("SELECT pg_backend_pid()"))
        raw: Any = tx.connection.connection.dbapi_connection
    assert backend(db_site) == first
    with socket.socket(fileno=os.dup(raw.fileno())) as connection:
        connection.shutdown(socket.SHUT_RDWR)
    assert backend(db_site) != first


def test_a_held_connection_commits_writes_together(db_site: Site) -> None:
    store = db_site.store
    with store.holding_connection():
        with store.read() as tx:
            assert people.by_login(tx, "ada") is None
        with pytest.raises(RuntimeError), store.write() as tx:
            people.create(tx, "ada")
            raise RuntimeError
        with store.read() as tx:
            assert people.by_login(tx, "ada") is None
        with store.write() as tx:
            people.create(tx, "ada")
    with store.read() as tx:
        assert people.by_login(tx, "ada") is not None
    with store.read() as tx:
        audit.note(tx, "nothing")
    with store.read() as tx:
        assert tx.value(text("SELECT count(*) FROM audit WHERE action = 'nothing'")) == 0


def test_a_write_is_all_or_nothing(db_site: Site) -> None:
    with pytest.raises(RuntimeError), db_site.store.write() as tx:
        people.create(tx, "ada")
        raise RuntimeError
    with db_site.store.read() as tx:
        assert people.by_login(tx, "ada") is None


def test_reads_are_rolled_back(db_site: Site) -> None:
    with db_site.store.read() as tx:
        audit.note(tx, "nothing")
    with db_site.store.read() as tx:
        assert tx.value(text("SELECT count(*) FROM audit")) == 0


def test_a_folder_is_created(tmp_path: Path) -> None:
    url = database_url(tmp_path / "a" / "b")
    assert url.database == str(tmp_path / "a" / "b" / FILE)
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize("url", ["postgresql://u@h/d", "postgres://u@h/d"])
def test_postgresql_url_schemes(url: str) -> None:
    assert database_url(url).drivername == "postgresql+psycopg"


@pytest.mark.parametrize("url", ["mysql://u@h/d", "x://", "://"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(DataError):
        database_url(url)


def test_passwords_are_not_displayed(tmp_path: Path) -> None:
    store = Store("postgresql://ada:secret@127.0.0.1:1/nothing")
    assert "secret" not in store.display_url
    with pytest.raises(DataError, match="does not answer") as error:
        store.prepare()
    assert "secret" not in str(error.value)


NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("people", sa.Column("color", sa.String(length=16), nullable=True))
"""


def test_tables_are_migrated_with_their_rows(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a migration that a later version of Firstpage may have."""
    store = Store(location).prepare()
    with store.write() as tx:
        people.create(tx, "ada", "Ada")
    later = tmp_path / "migrations"
    shutil.copytree(connect.MIGRATIONS, later)
    (later / "versions" / "0002_next.py").write_text(NEXT)
    monkeypatch.setattr(connect, "MIGRATIONS", later)
    store.prepare()
    with store.read() as tx:
        rows = tx.all(text("SELECT name, color FROM people"))
        assert [(row["name"], row["color"]) for row in rows] == [("Ada", None)]
        assert connect.version_in(tx) == "0002"
    store.close()
