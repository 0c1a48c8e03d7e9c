"""Fixtures: one run of the demo on a small collection."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from firstpage.cli import main
from firstpage.demo import loop
from tests.cli.conftest import run as run
from tests.demo.small import small_collection


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the demo read the small collection."""
    small_collection()  # before a test replaces what it documents, such as subprocess.Popen
    monkeypatch.setattr(loop, "stdlib_collection", small_collection)


def run_small_demo(folder: Path) -> None:
    """Run `firstpage demo`, and store its output beside its files."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out:
        patch.setattr(loop, "stdlib_collection", small_collection)
        patch.setattr(sys, "argv", ["firstpage", "demo", "-o", str(folder / "out")])
        with pytest.raises(SystemExit) as stop:
            main()
    assert not stop.value.code
    (folder / "printed").write_text(out.getvalue())


@pytest.fixture(scope="session")
def finished(once: Callable[[str, Callable[[Path], object]], Path]) -> tuple[Path, str]:
    """Return the folder and the output of a complete demo."""
    folder = once("demo", run_small_demo)
    return folder / "out", (folder / "printed").read_text()


@pytest.fixture(scope="session")
def done(finished: tuple[Path, str]) -> Path:
    """Return the folder, which tests must not change."""
    return finished[0]


@pytest.fixture(scope="session")
def printed(finished: tuple[Path, str]) -> str:
    """Return the output."""
    return finished[1]
