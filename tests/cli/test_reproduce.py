"""Tests of `firstpage reproduce`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firstpage.core.folders import cache_folder
from firstpage.papers.study import run as study
from tests.papers.folders import write_letor_folds
from tests.patience import PATIENCE

FIGURE = ("reproduce", "zhou2013/figure1", "--seeds", 3, "--jobs", 1)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(study, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("FIRSTPAGE_DATA", raising=False)
    return tmp_path / "cache"


def test_json_has_cells_and_claims(run) -> None:
    result = run(*FIGURE, "--json")
    assert result.returncode == 0
    record = json.loads(result.stdout)
    cell = record["cells"][0]
    assert cell["entry"] == "figure1"
    assert {"discount", "DCG difference", "paper", "ours", "se"} <= cell.keys()
    published = [c["paper"] for c in record["cells"] if c["paper"] is not None]
    assert published == [0.8]
    assert [c["verdict"] for c in record["claims"]][2:] == ["does not hold", "does not hold"]
    assert record["claims"][0].keys() == {
        "entry",
        "text",
        "verdict",
        "evidence",
        "source",
        "held_equal",
    }
    assert record["claims"][0]["held_equal"].startswith("the pairs of rankings")
    assert run(*FIGURE, "--json").stdout == result.stdout


def test_text_page_markdown_and_csv_are_written(run, tmp_path: Path) -> None:
    page, marked, cells = (tmp_path / name for name in ("page.html", "page.md", "cells.csv"))
    result = run(*FIGURE, "--html", page)
    assert "does not hold: about 80 % agree at a difference of 1" in result.stdout
    assert "Claims: 2 hold, 2 do not hold" in result.stdout
    assert "  held equal: the pairs of rankings" in result.stdout
    assert "Held equal: the pairs of rankings" in page.read_text()
    assert page.read_text().count("<svg") == 1
    assert "firstpage reproduce zhou2013/figure1" in page.read_text()
    assert run(*FIGURE, "-o", marked).returncode == 0
    assert marked.read_text().startswith("# Zhou, Zha, Chang, Xue")
    run(*FIGURE, "-o", cells)
    assert cells.read_text().startswith(
        "study,entry,discount,DCG difference,paper,ours,se,held_equal\n"
    )


def test_list_shows_missing_data(run, tmp_path: Path) -> None:
    lines = run("reproduce", "--list").stdout.splitlines()
    assert next(line for line in lines if "figure7 " in line).endswith("ready")
    assert "needs MSLR-WEB10K" in next(line for line in lines if "figure12" in line)
    assert "Fold1 to Fold5, each with trainingset.txt" in next(
        x for x in lines if x.startswith("TD2003")
    )
    sample = tmp_path / "mslr-web10k-5k"
    sample.mkdir()
    (sample / "train.txt").write_text("")
    listing = json.loads(run("reproduce", "--list", "--json", "--data", tmp_path).stdout)
    rows = {row["entry"]: row["missing"] for row in listing["entries"]}
    assert rows["zhou2013/figure12"] == ""
    assert {"name", "status", "folder", "layout", "source"} == listing["datasets"][0].keys()


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ((), 2, "name a paper"),
        (("--list", "xia2009"), 2, "--list shows all entries, and takes no PAPERS; got xia2009."),
        (("--list", "--html", "rep.html"), 2, "--html requires PAPERS, not --list."),
        (("--list", "--fast"), 2, "--fast requires PAPERS, not --list."),
        (("zhou2031",), 1, "Did you mean 'zhou2013'?"),
        (("zhou2013/figure99",), 1, "there is no entry of zhou2013 'figure99'. Did you mean"),
        (("zhou2013/figure12",), 1, "figure12 needs MSLR-WEB10K (or mslr-web10k-5k)"),
        (("zhou2013", "--data", "nowhere"), 1, "nowhere: no such folder"),
        (("zhou2013/figure1", "-f", "pdf"), 2, "the format must be one of text, json"),
        (("zhou2013", "other"), 1, "there is no study 'other'"),
        (("zhou2013/figure1", "--seeds", "0"), 2, "--seeds"),
    ],
)
def test_errors_are_one_line(run, args, code: int, message: str) -> None:
    result = run("reproduce", *args)
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_killed_run_resumes_from_the_cache(tmp_path: Path, run, monkeypatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "kernels").symlink_to(cache_folder() / "kernels")  # the compiled kernels are shared
    args = ("reproduce", "zhou2013/figure7", "--seeds", "4", "--json")
    env = {**os.environ, "FIRSTPAGE_CACHE": str(home)}
    first = subprocess.Popen(
        [sys.executable, "-m", "firstpage", *args, "--jobs", "2"],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + PATIENCE
    while len(cached := list(home.rglob("studies/zhou2013/*/*.json"))) < 3:
        assert first.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    times = {path: path.stat().st_mtime_ns for path in cached}
    uninterrupted = run(*args, "--jobs", "1")
    monkeypatch.setattr(study, "cache_folder", lambda: home)
    resumed = run(*args, "--jobs", "1")
    assert resumed.returncode == 0
    assert resumed.stdout == uninterrupted.stdout
    assert {path: path.stat().st_mtime_ns for path in cached} == times  # not computed again


def test_progress_bar_is_shown_on_a_terminal(run, monkeypatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert run(*FIGURE).returncode == 0


def test_table_is_computed_once_its_data_are_added(run, tmp_path: Path) -> None:
    """TD2003 is missing at first, and then added in the layout of LETOR 3."""
    arguments = (
        "reproduce",
        "xia2009/table2",
        "--data",
        tmp_path,
        "--seeds",
        1,
        "--jobs",
        1,
        "--json",
    )
    result = run(*arguments)
    assert result.returncode == 1
    assert result.stderr == f"firstpage: error: table2 needs td2003 in {tmp_path}.\n"
    write_letor_folds(tmp_path / "td2003", grades=2, old=True)
    result = run(*arguments)
    assert result.returncode == 0
    cells = {(c["model"], c["k"], c["measure"]): c for c in json.loads(result.stdout)["cells"]}
    assert len(cells) == 24
    cell = cells["ListMLE", 10, "NDCG@1"]
    assert (cell["entry"], cell["data"], cell["paper"]) == ("table2", "TD2003", 0.5)
    assert cells["ListMLE", "n", "P@10"]["paper"] == 0.146
    assert cell["ours"] == cells["ListMLE", 10, "P@1"]["ours"]
