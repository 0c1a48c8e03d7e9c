"""Fixtures: every web test has its own store; many run on SQLite and on PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from firstpage.web.store import people
from firstpage.web.store.connect import Store
from tests.web import postgres
from tests.web.site import Clock, Site


@pytest.fixture(autouse=True)
def quick_passwords(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Argon2 as it is, but with little work; tests of its time ask for `real_passwords`."""
    if "real_passwords" not in request.fixturenames:
        quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        monkeypatch.setattr(people, "hasher", lambda: quick)


@pytest.fixture
def real_passwords() -> None:
    """The work that an attacker has."""


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with its tables and nothing else, to copy."""
    folder = tmp_path_factory.mktemp("fresh")
    Store(folder).prepare().close()
    return folder


@pytest.fixture
def site(tmp_path: Path, fresh: Path) -> Iterator[Site]:
    """The application on SQLite."""
    clock = Clock()
    shutil.copytree(fresh, tmp_path / "project")
    store = Store(tmp_path / "project", clock)
    made = Site(store, clock)
    yield made
    made.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Skipped, and said so, without PostgreSQL."""
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.cluster() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store may live: a folder, or a database of our own PostgreSQL."""
    if request.param == "sqlite":
        return str(tmp_path / "project")
    return postgres.new_database(request.getfixturevalue("postgres_server"))


@pytest.fixture(scope="session")
def fresh_postgres(postgres_server: str) -> str:
    """The name of a database with its tables and nothing else, to copy."""
    url = postgres.new_database(postgres_server)
    Store(url).prepare().close()
    return url.rpartition("/")[2]


@pytest.fixture(params=["sqlite", "postgresql"])
def both(request: pytest.FixtureRequest, tmp_path: Path, fresh: Path) -> Iterator[Site]:
    """The application on each database."""
    where = str(tmp_path / "project")
    if request.param == "sqlite":
        shutil.copytree(fresh, where)
    else:
        server, template = map(request.getfixturevalue, ("postgres_server", "fresh_postgres"))
        where = postgres.new_database(server, template)
    clock = Clock()
    store = Store(where, clock)
    made = Site(store, clock)
    yield made
    made.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if postgres.programs() is None:
        terminalreporter.line("NOT TESTED: PostgreSQL (its programs are not installed)")
