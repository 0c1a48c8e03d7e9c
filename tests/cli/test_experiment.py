"""`firstpage experiment`: from a log to a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import firstpage as fp


def ubi(path: Path, n_pages: int = 400, **told: Any) -> Path:
    """Write a log in which only documents of the second ranking are clicked."""
    lines: list[dict[str, Any]] = []
    for number in range(n_pages):
        shown = fp.clicks.interleave([["a", "b"], ["b", "a"]], key=str(number))
        attributes = {"experiment": "try", "digest": "ab12", "arms": ["old", "new"]}
        query = {"application": "shop", "query_id": f"q{number}", "client_id": f"u{number}"}
        time = number * 1_000_000
        lines.append(
            query
            | {"user_query": f"text{number % 7}", "query_response_hit_ids": shown.documents}
            | {"query_attributes": attributes | shown.to_dict() | told, "timestamp": time}
        )
        clicked = "b" if number % 5 else "a"
        ordinal = shown.documents.index(clicked) + 1
        place = {"object": {"object_id": clicked}, "position": {"ordinal": ordinal}}
        event = {"action_name": "click", "timestamp": time + 1, "event_attributes": place}
        lines.append(query | event)
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def test_analyze(tmp_path: Path, run) -> None:
    log, page = ubi(tmp_path / "events.jsonl"), tmp_path / "result.html"
    done = run("experiment", "analyze", log, "--html", page)
    assert done.returncode == 0
    assert "new wins against old: it has" in done.stdout
    text = page.read_text()
    assert "new wins against old" in text
    assert "<svg" in text
    told = json.loads(run("experiment", "analyze", log, "--json").stdout)
    assert told["comparisons"][0]["winner"] == "new"
    pytest.importorskip("polars")
    saved = tmp_path / "sessions.parquet"
    assert run("clicks", "describe", log, "--save", saved).returncode == 0
    again = json.loads(run("experiment", "analyze", saved, "--json").stdout)
    assert again["comparisons"] == told["comparisons"]


def test_segments_of_a_file(tmp_path: Path, run) -> None:
    log, file = ubi(tmp_path / "events.jsonl"), tmp_path / "segments.tsv"
    file.write_text("text0\tnavigation\ntext1\tnavigation\ntext2\tresearch\n")
    told = json.loads(run("experiment", "analyze", log, "--segments", file, "--json").stdout)
    counts = {row["segment"]: row["wins"] + row["losses"] for row in told["segments"]}
    assert counts.keys() == {"navigation", "research", "others"}
    assert sum(counts.values()) == 400
    for text, problem in (
        ("text0 navigation\n", "segments.tsv:1: is not a query, a tab, a segment."),
        ("text0\ta\ntext0\tb\n", "segments.tsv:2: repeats a query."),
        ("shoes\ta\n", "segments.tsv: has no query of the log, as it was typed."),
    ):
        file.write_text(text)
        done = run("experiment", "analyze", log, "--segments", file)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].endswith(problem)


def test_a_log_of_no_experiment_is_refused_in_one_line(tmp_path: Path, run) -> None:
    log = ubi(tmp_path / "events.jsonl", 3, experiment="")
    done = run("experiment", "analyze", log)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("events.jsonl: has no pages of an experiment.")


def test_suspect_checks_are_noted(tmp_path: Path, run) -> None:
    log = ubi(tmp_path / "events.jsonl", 200, teams=[1, 0])
    done = run("experiment", "analyze", log)
    assert "note: Sample ratio: first results are old 0, new 200" in done.stderr


def test_plan(tmp_path: Path, run) -> None:
    log, files = ubi(tmp_path / "events.jsonl"), []
    for name, best in (("old", "a"), ("new", "b")):
        scores = {"a": 1.0, "b": 1.0, best: 2.0}
        files.append(tmp_path / f"{name}.run")
        fp.write_run(fp.Run.from_dict({f"text{q}": scores for q in range(7)}), files[-1])
    arguments = (
        "experiment",
        "plan",
        log,
        "--runs",
        *files,
        "-m",
        "DocumentCTR",
        "--sessions",
        500,
    )
    told = json.loads(run(*arguments, "--json").stdout)
    assert told["designs"][0]["wins"] > told["designs"][0]["losses"]
    assert "interleaving" in run(*arguments).stdout
    done = run("experiment", "plan", log, "--runs", *files, "-m", "Nothing")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
