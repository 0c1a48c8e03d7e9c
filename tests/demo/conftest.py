"""Fixtures: one run of the demo on a small collection."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstpage.demo import loop
from tests.cli.conftest import run as run
from tests.demo.finished import Once, finished_demo
from tests.demo.small import small_collection


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the demo read the small collection."""
    small_collection()  # before a test replaces what it documents, such as subprocess.Popen
    monkeypatch.setattr(loop, "stdlib_collection", small_collection)


@pytest.fixture(scope="session")
def finished(once: Once) -> tuple[Path, str]:
    """Return the folder and the output of a complete demo."""
    return finished_demo(once)


@pytest.fixture(scope="session")
def done(finished: tuple[Path, str]) -> Path:
    """Return the folder, which tests must not change."""
    return finished[0]


@pytest.fixture(scope="session")
def printed(finished: tuple[Path, str]) -> str:
    """Return the output."""
    return finished[1]
