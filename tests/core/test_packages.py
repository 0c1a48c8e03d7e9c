"""Versions of installed packages."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from types import ModuleType

import pytest

from firstpage.core.packages import version_of


@pytest.mark.parametrize(
    ("package", "module"), [("numpy", None), ("llvmlite", None), ("xgboost-cpu", "xgboost")]
)
def test_the_version_is_in_the_name_of_a_folder(package: str, module: str | None) -> None:
    assert version_of(package, module) == importlib.metadata.version(package)


def test_the_version_is_in_the_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd_package").mkdir()
    (tmp_path / "odd_package" / "__init__.py").touch()
    metadata = "Metadata-Version: 2.1\nName: odd_package\nVersion: 1.5\n"
    (tmp_path / "odd_package.egg-info").write_text(metadata)
    monkeypatch.syspath_prepend(tmp_path)
    assert version_of("odd_package") == "1.5"


def test_a_missing_package_has_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder_alone").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert version_of("folder_alone") is None
    assert version_of("no_such_package") is None
    monkeypatch.setitem(sys.modules, "stub_of_a_package", ModuleType("stub_of_a_package"))
    assert version_of("stub_of_a_package") is None
