"""`firstpage clicks describe`, and the options by which all commands read logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.write_text("fox\t3,1,2 : 1 , 7;fox\t3,1,2 :;")
    return path


def test_describe_counts_and_notes_decisions(run, log: Path) -> None:
    done = run("clicks", "describe", log)
    assert done.returncode == 0
    assert "impressions             6" in done.stdout
    assert "clicks on documents that were not on the page, left out (1)." in done.stderr
    assert done.stdout.splitlines()[-1] == (
        f"Next: `firstpage clicks propensities {log}`, `firstpage clicks fit {log}`, "
        f"`firstpage clicks judge {log}`."
    )


def test_describe_writes_a_page_and_json(run, log: Path) -> None:
    page = log.parent / "log.html"
    done = run("clicks", "describe", log, "--json", "--html", page)
    assert json.loads(done.stdout)["counts"]["impressions"] == 6
    html = page.read_text()
    assert "<svg" in html
    assert "clicks on documents that were not on the page" in html


def test_describe_saves_sessions(run, log: Path) -> None:
    pytest.importorskip("polars")
    saved = log.parent / "s.parquet"
    first = run("clicks", "describe", log, "--save", saved)
    again = run("clicks", "describe", saved)
    assert first.stdout.splitlines()[1:] == again.stdout.splitlines()[1:]
    assert f"fit {saved}" in again.stdout


def test_options_of_logs(run, tmp_path: Path) -> None:
    pytest.importorskip("polars")
    log = tmp_path / "log.csv"
    log.write_text("words,sku,rank,clicked,who\nfox,a,1,1,ann\nfox,b,2,0,ann\ndog,b,1,0,bob,6\n")
    columns = "query=words,document=sku,user=who"
    done = run("clicks", "describe", log, "--columns", columns)
    assert "log.csv:4: has 6 cells; the header has 5." in done.stderr
    assert "--skip-broken" in done.stderr
    done = run(
        "clicks", "describe", log, "--columns", columns, "--skip-broken",
        "--hash-users", "salt", "--layout", "list", "--bots", "3", "--form", "table", "--json",
    )  # fmt: skip
    assert json.loads(done.stdout)["counts"]["pages"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--columns", "query"), "--columns takes name=value,name=value; got 'query'"),
        (("--columns", "words=q"), "logs have no column for 'words'"),
        (("--actions", "click=much"), "--actions takes numbers"),
        (("--bots", "0"), "0 is not in the range"),
    ],
)
def test_wrong_options(run, log: Path, options: tuple[str, ...], message: str) -> None:
    done = run("clicks", "describe", log, *options)
    assert done.returncode in (1, 2)
    assert message in done.stderr
