"""The demo's folder: files of others are never overwritten."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from firstpage.core.errors import DataError
from firstpage.demo import loop
from firstpage.demo.output import Folder, StepPrinter, command_line, slug, wrap_command
from firstpage.demo.project import QUESTIONS, open_store
from firstpage.labeling.app.app import LOCAL
from firstpage.labeling.app.store import people, projects, tasks
from tests.labeling.app.site import add_query, query


def test_a_foreign_file_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(DataError, match=r"contains report.html, which is not the demo's"):
        Folder.prepare(tmp_path)
    assert (tmp_path / "report.html").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_foreign_labeling_project_is_refused_and_unchanged(tmp_path: Path, run) -> None:
    assert run("label", "setup", tmp_path / "shop").returncode == 0
    before = (tmp_path / "shop" / "firstpage.db").read_bytes()
    result = run("demo", "-o", tmp_path / "shop")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "labeling project that is not the demo's" in result.stderr
    assert (tmp_path / "shop" / "firstpage.db").read_bytes() == before


def test_another_project_in_the_demo_database_is_refused(tmp_path: Path, run) -> None:
    Folder.prepare(tmp_path)
    assert run("label", "setup", tmp_path, "--name", "mine").returncode == 0
    with pytest.raises(DataError, match="labeling project 'mine', which is not the demo's"):
        Folder.prepare(tmp_path)
    assert (tmp_path / "firstpage.db").exists()


def test_judgments_of_people_are_never_deleted(tmp_path: Path) -> None:
    """Those of simulated assessors are: the demo computes them again."""
    Folder.prepare(tmp_path)
    store = open_store(tmp_path)
    with store.write() as tx:
        project = projects.create(tx, QUESTIONS)
        added = add_query(tx, project.id, query(0, 3), 0)
        for login, judgments in (("ada", 7), (LOCAL, 4)):
            task = tasks.add(tx, project, added, people.ensure(tx, login).id, "pairs", 0, 0)
            tasks.set_state(tx, task, "started", judgments=judgments)
    store.close()
    with pytest.raises(
        DataError, match=r"contains judgments of yours \(4\), .* another folder \(-o\)"
    ):
        Folder.prepare(tmp_path)
    store = open_store(tmp_path)
    with store.write() as tx:
        tasks.set_state(tx, task, "started", judgments=0)
    store.close()
    Folder.prepare(tmp_path)
    assert not (tmp_path / "firstpage.db").exists()


def test_a_database_in_use_is_refused_and_unchanged(tmp_path: Path) -> None:
    """A server would otherwise accept answers, and write them to a deleted file."""
    Folder.prepare(tmp_path)
    store = open_store(tmp_path)
    try:
        with pytest.raises(DataError, match=r"firstpage.db: is in use .*; stop the server"):
            Folder.prepare(tmp_path)
        assert (tmp_path / "firstpage.db").exists()
    finally:
        store.close()
    Folder.prepare(tmp_path)


def test_a_foreign_demo_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text("{}")
    with pytest.raises(DataError, match="not a demo summary of Firstpage"):
        Folder.prepare(tmp_path)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(DataError, match="cannot create this folder"):
        Folder.prepare(tmp_path / "x")


def test_unrelated_files_of_the_folder_are_kept(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    Folder.prepare(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_foreign_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "python.index").mkdir()
    with pytest.raises(DataError, match=r"contains python.index, which is not the demo's"):
        Folder.prepare(tmp_path)


def test_long_commands_are_wrapped() -> None:
    command = command_line("crossval", "data.npz", *["ListMLE(k=5)"] * 9)
    lines = wrap_command(command)
    assert len(lines) > 1
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert shlex.split(" ".join(line.rstrip("\\") for line in lines)) == shlex.split(command)


def test_the_last_commands_are_quoted(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "a b" / "firstpage")])
    monkeypatch.chdir(tmp_path)
    loop._print_servers(Folder(Path("my demo")), StepPrinter())
    labels, search = (line.partition(": ")[2] for line in capsys.readouterr().out.splitlines())
    assert shlex.split(labels) == ["a b/firstpage", "label", "serve", "my demo", "--open"]
    assert shlex.split(search)[1:5] == [
        "serve",
        "my demo/model.json",
        "--index",
        "my demo/python.index",
    ]


def test_slug_is_a_file_name() -> None:
    assert slug("ListMLE(k=5)") == "listmle-k-5"
    assert slug("BM25") == "bm25"
