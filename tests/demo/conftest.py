"""Fixtures: one run of the demo on a small collection."""

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
    """Let the demo read the small collection."""
    monkeypatch.setattr(loop, "stdlib_collection", small_collection)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder and the output of a complete demo."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out:
        patch.setattr(loop, "stdlib_collection", small_collection)
        loop.run_demo(folder)
    return folder, out.getvalue()


@pytest.fixture(scope="session")
def done(finished: tuple[Path, str]) -> Path:
    """Return the folder, which tests must not change."""
    return finished[0]


@pytest.fixture(scope="session")
def printed(finished: tuple[Path, str]) -> str:
    """Return the output."""
    return finished[1]
