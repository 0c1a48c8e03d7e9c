"""The system's Chromium, one for all tests of a folder; a server and a store for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from firstpage.labeling.app.store.connect import Store
from tests.conftest import chromium_path

CHROMIUM = chromium_path()
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--in-process-gpu",  # one process fewer
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--renderer-process-limit=1",  # one page at a time
]

MISSING = (
    "chromium on the PATH"
    if CHROMIUM is None
    else next((p for p in ("playwright", "axe_playwright_python") if find_spec(p) is None), None)
)
if MISSING is not None:
    os.write(2, f"\n*** NOT TESTED: tests/labeling/app/browser needs {MISSING} ***\n".encode())
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="package")
def browser() -> Iterator[object]:
    """Start one browser per folder: while Playwright runs, this process has no other event loop."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)  # a busy machine may be slow
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield chromium
        chromium.close()


@pytest.fixture
def live(tmp_path: Path, browser: object, fresh: Path) -> Iterator[object]:
    """Yield a running server; fail if a page requested another site or a script failed."""
    from tests.labeling.app.browser.live import new_live

    shutil.copytree(fresh, tmp_path / "project")
    store = Store(tmp_path / "project")
    server = new_live(store, browser)  # type: ignore[arg-type]
    yield server
    server.stop()
    server.close()
    assert not server.complaints
    assert not server.strangers
