"""`firstpage reproduce` as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firstpage.folders import cache_folder
from firstpage.papers.study import run
from tests.papers.folders import letor
from tests.patience import PATIENCE

ONE = ("reproduce", "zhou2013/figure1", "--seeds", 2, "--jobs", 1)


@pytest.fixture(autouse=True)
def shelf(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(run, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("FIRSTPAGE_DATA", raising=False)
    return tmp_path / "cache"


@pytest.mark.slow
def test_json_has_cells_and_claims(run) -> None:
    done = run(*ONE, "--json")
    assert done.returncode == 0
    held = json.loads(done.stdout)
    cell = held["cells"][0]
    assert cell["entry"] == "figure1"
    assert {"discount", "DCG difference", "paper", "ours", "se"} <= cell.keys()
    said = [c["paper"] for c in held["cells"] if c["paper"] is not None]
    assert said == [0.8]
    assert [c["verdict"] for c in held["claims"]][2:] == ["does not hold", "does not hold"]
    assert held["claims"][0].keys() == {"entry", "text", "verdict", "why", "whose", "held_equal"}
    assert held["claims"][0]["held_equal"].startswith("the pairs of rankings")
    assert run(*ONE, "--json").stdout == done.stdout


@pytest.mark.slow
def test_text_page_markdown_and_csv(run, tmp_path: Path) -> None:
    page, marked, cells = (tmp_path / name for name in ("page.html", "page.md", "cells.csv"))
    done = run(*ONE, "--html", page)
    assert "does not hold: about 80 % agree at a difference of 1" in done.stdout
    assert "Claims: 2 hold, 2 do not hold" in done.stdout
    assert "  held equal: the pairs of rankings" in done.stdout
    assert "Held equal: the pairs of rankings" in page.read_text()
    assert page.read_text().count("<svg") == 1
    assert "firstpage reproduce zhou2013/figure1" in page.read_text()
    assert run(*ONE, "-o", marked).returncode == 0
    assert marked.read_text().startswith("# Zhou, Zha, Chang, Xue")
    run(*ONE, "-o", cells)
    assert cells.read_text().startswith(
        "study,entry,discount,DCG difference,paper,ours,se,held equal\n"
    )


def test_the_list_says_what_is_possible(run, tmp_path: Path) -> None:
    lines = run("reproduce", "--list").stdout.splitlines()
    assert next(line for line in lines if "figure7 " in line).endswith("ready")
    assert "needs MSLR-WEB10K" in next(line for line in lines if "figure12" in line)
    assert "Fold1 to Fold5, each with trainingset.txt" in next(
        x for x in lines if x.startswith("TD2003")
    )
    sample = tmp_path / "mslr-web10k-5k"
    sample.mkdir()
    (sample / "train.txt").write_text("")
    held = json.loads(run("reproduce", "--list", "--json", "--data", tmp_path).stdout)
    rows = {row["entry"]: row["missing"] for row in held["entries"]}
    assert rows["zhou2013/figure12"] == ""
    assert {"data", "state", "folder", "layout", "origin"} == held["data"][0].keys()


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ((), 2, "name a paper"),
        (("zhou2031",), 1, "Did you mean 'zhou2013'?"),
        (("zhou2013/figure99",), 1, "there is no entry of zhou2013 'figure99'. Did you mean"),
        (("zhou2013/figure12",), 1, "figure12 needs MSLR-WEB10K (or mslr-web10k-5k)"),
        (("zhou2013", "--data", "nowhere"), 1, "nowhere: no such folder"),
        (("zhou2013/figure1", "-f", "pdf"), 2, "the format must be one of text, json"),
        (("zhou2013", "other"), 1, "there is no study 'other'"),
        (("zhou2013/figure1", "--seeds", "0"), 2, "--seeds"),
    ],
)
def test_mistakes_are_told_in_a_line(run, args, code: int, said: str) -> None:
    done = run("reproduce", *args)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_killed_it_goes_on_where_it_was(tmp_path: Path, run) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "kernels").symlink_to(cache_folder() / "kernels")  # compiled once is enough
    args = ("reproduce", "zhou2013/figure7", "--seeds", "6", "--json")
    env = {**os.environ, "FIRSTPAGE_CACHE": str(home)}
    first = subprocess.Popen(
        [sys.executable, "-m", "firstpage", *args, "--jobs", "2"], env=env,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + PATIENCE
    while len(kept := list(home.rglob("studies/zhou2013/*/*.json"))) < 3:
        assert first.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    times = {path: path.stat().st_mtime_ns for path in kept}
    done = subprocess.run(
        [sys.executable, "-m", "firstpage", *args, "--jobs", "1"], env=env, capture_output=True,
        text=True, check=True, timeout=PATIENCE,
    )  # fmt: skip
    assert {path: path.stat().st_mtime_ns for path in kept} == times  # not done again
    assert done.stdout == run(*args, "--jobs", "1").stdout  # as if never killed


@pytest.mark.slow
def test_a_bar_on_a_terminal(run, monkeypatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert run(*ONE).returncode == 0


@pytest.mark.slow
def test_a_table_of_data_that_came_later(run, tmp_path: Path) -> None:
    """TD2003 is not there; then it is, in the layout of LETOR 3."""
    ask = ("reproduce", "xia2009/table2", "--data", tmp_path, "--seeds", 1, "--jobs", 1, "--json")
    done = run(*ask)
    assert done.returncode == 1
    assert done.stderr == f"firstpage: error: table2 needs td2003 in {tmp_path}.\n"
    letor(tmp_path / "td2003", grades=2, old=True)
    done = run(*ask)
    assert done.returncode == 0
    cells = {(c["model"], c["k"], c["measure"]): c for c in json.loads(done.stdout)["cells"]}
    assert len(cells) == 24
    one = cells["ListMLE", 10, "NDCG@1"]
    assert (one["entry"], one["data"], one["paper"]) == ("table2", "TD2003", 0.5)
    assert cells["ListMLE", "n", "P@10"]["paper"] == 0.146
    assert one["ours"] == cells["ListMLE", 10, "P@1"]["ours"]
