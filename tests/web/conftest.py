"""Every web test has a store of its own; many run on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firstpage.web.store.connect import Store
from tests.web import postgres
from tests.web.site import Clock, Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """The application on SQLite."""
    clock = Clock()
    store = Store(tmp_path / "project", clock).prepare()
    yield Site(store, clock)
    store.close()


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


@pytest.fixture
def both(where: str) -> Iterator[Site]:
    """The application on each database."""
    clock = Clock()
    store = Store(where, clock).prepare()
    yield Site(store, clock)
    store.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if postgres.programs() is None:
        terminalreporter.line("NOT TESTED: PostgreSQL (its programs are not installed)")
