"""`firstpage label simulate` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SMALL = ("label", "simulate", "--n", 20, "--k", 5)


@pytest.mark.slow
def test_json_of_one_strategy(run) -> None:
    done = run(*SMALL, "--runs", 300, "--strategy", "heap", "--json")
    record = json.loads(done.stdout)
    assert record["mean"] == pytest.approx(47.1, abs=1.5)  # SPEC 2.3
    assert record["recall"] == 1
    assert record["sd"] > 0
    assert run(*SMALL, "--runs", 300, "--strategy", "heap", "--json").stdout == done.stdout


@pytest.mark.slow
def test_several_strategies_and_budgets(run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    several = ("--strategy", "heap", "--strategy", "tournament", "--budget", 15, "--budget", 30)
    done = run(*SMALL, *several, "--runs", 20, "--html", page)
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["heap", "15"], ["heap", "30"], ["tournament", "15"], ["tournament", "30"],
    ]  # fmt: skip
    assert "<polyline" in page.read_text()
    assert "http" not in page.read_text().replace("http://www.w3.org/2000/svg", "")
    several_json = json.loads(run(*SMALL, *several, "--runs", 20, "--json").stdout)
    assert [r["budget"] for r in several_json["results"]] == [15, 30, 15, 30]


def test_ties_in_the_truth_have_no_kndcg(run) -> None:
    done = run(*SMALL, "--strategy", "heap", "--grades", 3, "--runs", 5)
    assert done.stdout.splitlines()[2].split()[-2:] == ["-", "-"]


def test_votes(run, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("topic,arg1,arg2,vote\nt,a,b,a1\nt,b,c,a1\nt,a,c,a1\n")
    done = run("label", "simulate", "--votes", path, "--k", 2, "--strategy", "heap", "--json")
    record = json.loads(done.stdout)
    assert record["recall"] == 1
    assert record["runs"] == 30
    assert record["topics"] == {"t": 1.0}


def test_pairs_without_a_vote_are_told(run, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("topic,arg1,arg2,vote\nt,a,b,a1\nt,b,c,a1\n")
    done = run("label", "simulate", "--votes", path, "--k", 2, "--strategy", "heap")
    assert "1 of 3 pairs in" in done.stderr
    assert "answered as ties" in done.stderr
    refused = run("label", "simulate", "--votes", path, "--noise", 0.1)
    assert refused.returncode == 2
    assert "--noise goes with random queries, not with --votes" in refused.stderr


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("--strategy", "heep"), 1, "Did you mean 'heap'?"),
        (("--noise", "2"), 1, "from 0 to 1"),
        (("--votes", "no.csv"), 1, "no.csv"),
        (("--n", "0"), 2, "0"),
        (("--equal", "maybe"), 2, "maybe"),
        (("--equal", "coin"), 2, "--equal goes with --votes"),
    ],
)
def test_mistakes_are_one_line(run, args: tuple[str, ...], code: int, says: str) -> None:
    done = run("label", "simulate", *args)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
