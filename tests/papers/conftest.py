"""Cached runs of tests are in a temporary folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstpage.papers.study import run


@pytest.fixture(autouse=True)
def run_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "studies"
