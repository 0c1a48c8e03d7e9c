"""Studies in tests keep their runs in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstpage.papers.study import run


@pytest.fixture(autouse=True)
def shelf_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "studies"
