"""Folders of others are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstpage.demo.output import Folder, slug
from firstpage.errors import DataError


def test_a_foreign_file_stays(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(DataError, match=r"holds report.html, not the demo's"):
        Folder.ready(tmp_path)
    assert (tmp_path / "report.html").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_foreign_labeling_project_stays(tmp_path: Path, run) -> None:
    assert run("label", "setup", tmp_path / "shop").returncode == 0
    before = (tmp_path / "shop" / "firstpage.db").read_bytes()
    made = run("demo", "-o", tmp_path / "shop")
    assert made.returncode == 1
    assert made.stderr.count("\n") == 1
    assert "labeling project that is not the demo's" in made.stderr
    assert (tmp_path / "shop" / "firstpage.db").read_bytes() == before


def test_a_project_beside_the_demos_stays(tmp_path: Path, run) -> None:
    Folder.ready(tmp_path)
    assert run("label", "setup", tmp_path, "--name", "mine").returncode == 0
    with pytest.raises(DataError, match="labeling project 'mine', which is not the demo's"):
        Folder.ready(tmp_path)
    assert (tmp_path / "firstpage.db").exists()


def test_another_demo_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text("{}")
    with pytest.raises(DataError, match="not a demo summary of Firstpage"):
        Folder.ready(tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(DataError, match="cannot make this folder"):
        Folder.ready(tmp_path / "x")


def test_other_files_of_a_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    Folder.ready(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_slugs() -> None:
    assert slug("ListMLE(k=5)") == "listmle-k-5"
    assert slug("language model of text") == "language-model-of-text"
