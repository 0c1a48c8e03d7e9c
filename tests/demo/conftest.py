"""One run of the whole loop, in small, that tests look at."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from firstpage.demo import loop
from tests.cli.conftest import run as run
from tests.demo.small import small_collection


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo reads the small collection."""
    monkeypatch.setattr(loop, "stdlib_collection", small_collection)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A demo that ran to its end: its folder, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out:
        patch.setattr(loop, "stdlib_collection", small_collection)
        loop.run_demo(folder)
    return folder, out.getvalue()


@pytest.fixture(scope="session")
def done(finished: tuple[Path, str]) -> Path:
    """The folder; look only."""
    return finished[0]


@pytest.fixture(scope="session")
def told(finished: tuple[Path, str]) -> str:
    return finished[1]
