"""Fixtures: every web test has its own store; many run on SQLite and on PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher

from firstpage.labeling.app.store import connect, people
from firstpage.labeling.app.store.connect import Store
from tests.labeling.app import postgres
from tests.labeling.app.site import Clock, Site


@pytest.fixture(scope="session", autouse=True)
def quick_statements(shared_statements: None) -> None:
    """Compile each SQL statement once."""


@pytest.fixture(autouse=True)
def quick_passwords(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use Argon2 with a low cost; tests of its time use the fixture `real_passwords`."""
    if "real_passwords" not in request.fixturenames:
        quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        monkeypatch.setattr(people, "hasher", lambda: quick)


@pytest.fixture
def real_passwords() -> None:
    """Use Argon2 with its real cost."""


@pytest.fixture(autouse=True)
def quick_commits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SQLite not wait for the disk at each commit: nothing outlives a test but its process.

    Servers in processes of their own wait, and so do stores of tests with `real_commits`.
    """
    if "real_commits" in request.fixturenames:
        return
    set_up = connect._set_up_sqlite

    def quick(raw: Any, record: object) -> None:
        set_up(raw, record)
        raw.execute("PRAGMA synchronous=OFF").close()

    monkeypatch.setattr(connect, "_set_up_sqlite", quick)


@pytest.fixture
def real_commits() -> None:
    """Let SQLite wait for the disk at each commit."""


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an empty store with its tables, to be copied."""
    folder = tmp_path_factory.mktemp("fresh")
    Store(folder).prepare().close()
    return folder


@pytest.fixture
def site(tmp_path: Path, fresh: Path) -> Iterator[Site]:
    """Yield the application on SQLite."""
    clock = Clock()
    shutil.copytree(fresh, tmp_path / "project")
    store = Store(tmp_path / "project", clock)
    new_site = Site(store, clock)
    yield new_site
    new_site.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the location of a new store: a folder, or a PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "project")
    return postgres.new_database(request.getfixturevalue("postgres_server"))


@pytest.fixture(scope="session")
def fresh_postgres(postgres_server: str) -> str:
    """Return the name of an empty database with its tables, to be copied."""
    url = postgres.new_database(postgres_server)
    Store(url).prepare().close()
    return url.rpartition("/")[2]


@pytest.fixture(params=["sqlite", "postgresql"])
def db_site(request: pytest.FixtureRequest, tmp_path: Path, fresh: Path) -> Iterator[Site]:
    """Yield the application on SQLite and on PostgreSQL in turn."""
    location = str(tmp_path / "project")
    if request.param == "sqlite":
        shutil.copytree(fresh, location)
    else:
        server, template = map(request.getfixturevalue, ("postgres_server", "fresh_postgres"))
        location = postgres.new_database(server, template)
    clock = Clock()
    store = Store(location, clock)
    new_site = Site(store, clock)
    yield new_site
    new_site.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if postgres.programs() is None:
        terminalreporter.line("NOT TESTED: PostgreSQL (its programs are not installed)")
