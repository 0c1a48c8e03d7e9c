"""Tests of `firstpage label simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SMALL = ("label", "simulate", "--n", 20, "--k", 5)


def test_json_of_one_strategy_is_one_record(run) -> None:
    result = run(*SMALL, "--runs", 300, "--strategy", "heap", "--json")
    record = json.loads(result.stdout)
    assert record["mean_questions"] == pytest.approx(47.1, abs=1.5)  # SPEC 2.3
    assert record["recall"] == 1
    assert record["sd_questions"] > 0
    assert run(*SMALL, "--runs", 300, "--strategy", "heap", "--json").stdout == result.stdout


def test_strategies_and_budgets_are_combined(run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    several = ("--strategy", "heap", "--strategy", "tournament", "--budget", 15, "--budget", 30)
    result = run(*SMALL, *several, "--runs", 20, "--html", page)
    lines = result.stdout.splitlines()
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["heap", "15"],
        ["heap", "30"],
        ["tournament", "15"],
        ["tournament", "30"],
    ]
    assert "<polyline" in page.read_text()
    assert "http" not in page.read_text().replace("http://www.w3.org/2000/svg", "")
    several_json = json.loads(run(*SMALL, *several, "--runs", 20, "--json").stdout)
    assert [r["budget"] for r in several_json["results"]] == [15, 30, 15, 30]


def test_kndcg_is_undefined_with_ties(run) -> None:
    result = run(*SMALL, "--strategy", "heap", "--grades", 3, "--runs", 5)
    assert result.stdout.splitlines()[2].split()[-2:] == ["-", "-"]


def test_recorded_votes_are_simulated(run, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("topic,arg1,arg2,vote\nt,a,b,a1\nt,b,c,a1\nt,a,c,a1\n")
    result = run("label", "simulate", "--votes", path, "--k", 2, "--strategy", "heap", "--json")
    record = json.loads(result.stdout)
    assert record["recall"] == 1
    assert record["runs"] == 30
    assert record["recall_by_query"] == {"t": 1.0}


def test_pairs_without_a_vote_print_a_note(run, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("topic,arg1,arg2,vote\nt,a,b,a1\nt,b,c,a1\n")
    result = run("label", "simulate", "--votes", path, "--k", 2, "--strategy", "heap")
    assert "1 of 3 pairs in" in result.stderr
    assert "answered as ties" in result.stderr
    refused = run("label", "simulate", "--votes", path, "--noise", 0.1)
    assert refused.returncode == 2
    assert "--noise requires random queries, not with --votes" in refused.stderr


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("--strategy", "heep"), 1, "Did you mean 'heap'?"),
        (("--noise", "2"), 1, "between 0 and 1"),
        (("--votes", "no.csv"), 1, "no.csv"),
        (("--n", "0"), 2, "0"),
        (("--equal-votes", "maybe"), 2, "maybe"),
        (("--equal-votes", "random"), 2, "--equal-votes requires --votes"),
    ],
)
def test_errors_are_one_line(run, args: tuple[str, ...], code: int, message: str) -> None:
    result = run("label", "simulate", *args)
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
