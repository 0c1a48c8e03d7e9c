"""`firstpage label` setup, export, backup and restore as a person calls them."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner, Result

from firstpage.cli import app
from firstpage.web.store.connect import Store
from tests.web.site import Clock, Site, jsonl


def call(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["label", *map(str, words)])
    assert done.exit_code == code, done.output
    return done


def documents(folder: Path) -> Path:
    rows = [
        {"query": f"q{q}", "document": f"d{d}", "text": "x"} for q in range(4) for d in range(5)
    ]
    (folder / "d.jsonl").write_bytes(jsonl(*rows))
    return folder / "d.jsonl"


def test_from_files_to_truth(tmp_path: Path) -> None:
    project = tmp_path / "project"
    said = call(
        "setup", project, "--documents", documents(tmp_path), "--k", 2, "--strategy", "heap",
        "--assessor", "ada", "--assessor", "bob", "--replicates", 2, "--lead", "lena",
        "--name", "books",
    ).output  # fmt: skip
    assert "4 queries, 20 documents" in said
    assert len(re.findall(r"comes in here \(once\): http://127.0.0.1:8210/reset/\S+", said)) == 3
    assert "ada: 4 queries" in said
    site = Site(Store(project, Clock()), Clock())
    for login in ("ada", "bob"):
        for number in range(4):
            site.client(login).judge(site.task("books", login, number))
    site.store.close()
    call("export", project, "-o", tmp_path / "t.qrels")
    assert "q0 0 d0 2\n" in (tmp_path / "t.qrels").read_text()
    call("export", project, "--what", "log", "--format", "csv", "-o", tmp_path / "log.csv")
    assert len((tmp_path / "log.csv").read_text().splitlines()) > 8
    call("export", project, "--what", "report", "-o", tmp_path / "r.html")
    call("backup", project, "-o", tmp_path / "copy.db")
    call("restore", tmp_path / "copy.db", tmp_path / "other")
    call("export", tmp_path / "other", "-o", tmp_path / "again.qrels")
    assert (tmp_path / "again.qrels").read_text() == (tmp_path / "t.qrels").read_text()


def told(*words: object) -> str:
    """The one line of a mistake."""
    done = CliRunner().invoke(app, ["label", *map(str, words)])
    assert done.exit_code != 0
    return f"{done.output} {done.exception}"


def test_mistakes_are_told(tmp_path: Path) -> None:
    assert "no labelling project" in told("export", tmp_path, "-o", "-")
    assert not list(tmp_path.iterdir()), "nothing is made by asking"
    wrong = told("setup", tmp_path / "p", "--documents", documents(tmp_path), "--strategy", "none")
    assert "no labelling strategy" in wrong
    call("setup", tmp_path / "p")
    assert "already" in told("setup", tmp_path / "p")
    assert "written as" in told("export", tmp_path / "p", "--format", "csv", "-o", "-")
    assert "this machine only" in told("serve", tmp_path, "--open", "--host", "0.0.0.0")


def test_a_cut_copy_makes_nothing(tmp_path: Path) -> None:
    call("setup", tmp_path / "p", "--documents", documents(tmp_path))
    call("backup", tmp_path / "p", "-o", tmp_path / "copy.jsonl.gz")
    whole = (tmp_path / "copy.jsonl.gz").read_bytes()
    (tmp_path / "cut.gz").write_bytes(whole[:-30])
    assert "cut short" in told("restore", tmp_path / "cut.gz", tmp_path / "new")
    assert not (tmp_path / "new").exists()
