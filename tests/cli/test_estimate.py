"""`firstpage sample` and `firstpage estimate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import firstpage as fp
from tests.evaluation.planning import test_document_sample as documents
from tests.evaluation.planning.test_estimates import HUMAN, MACHINE, SYSTEMS


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fp.write_qrels(fp.Qrels.from_dict(MACHINE), "machine.qrels")
    for name, run in SYSTEMS.items():
        fp.write_run(fp.Run.from_dict(run, name), f"{name}.run")
    return tmp_path


JUDGMENTS = ("--human", "people.qrels", "--machine", "machine.qrels", "--sample", "sample.csv")


def test_from_the_sample_to_the_estimates(run, files: Path) -> None:
    drawn = run("sample", "machine.qrels", "--size", 15, "--seed", 1, "-o", "sample.csv")
    assert (drawn.returncode, drawn.stdout) == (0, "")
    assert "15 of 40 queries drawn (seed 1)" in drawn.stderr
    sample = fp.planning.QuerySample.read("sample.csv")
    assert sample.drawn_queries == fp.planning.QuerySample.draw(MACHINE, 15, seed=1).drawn_queries
    people = {query: HUMAN[query] for query in sample.drawn_queries}
    fp.write_qrels(fp.Qrels.from_dict(people), "people.qrels")
    done = run("estimate", "x.run", "y.run", *JUDGMENTS, "-m", "RR", "--baseline", "y", "--json")
    assert done.returncode == 0
    expected = fp.planning.estimate(
        SYSTEMS, people, MACHINE, sample, measures="RR", baseline="y"
    ).to_dict()
    assert json.loads(done.stdout) == expected
    text = run("estimate", "x.run", "y.run", *JUDGMENTS, "-m", "RR").stdout
    assert "15 of 40 queries judged by people" in text
    assert "y - x" in text
    precise = run("estimate", "x.run", *JUDGMENTS, "-m", "RR", "--level", "0.999")
    assert "99.9% interval" in precise.stdout


def test_sizes_and_files_of_queries(run, files: Path) -> None:
    Path("sizes.csv").write_text("query,size\na,1\nb,2\nc,1\n")
    Path("queries.jsonl").write_text("".join(f'{{"id": "{q}", "text": "t"}}\n' for q in "abc"))
    sizes = ("--size", 2, "--sizes", "sizes.csv", "-o", "sample.csv")
    assert run("sample", "queries.jsonl", *sizes).returncode == 0
    assert Path("sample.csv").read_text().startswith("query,probability,drawn\na,0.5,")
    assert "b,1.0,yes" in Path("sample.csv").read_text()


def test_wrong_files_are_one_line(run, files: Path) -> None:
    many = run("sample", "machine.qrels", "--size", 41, "-o", "sample.csv")
    assert many.returncode == 1
    assert "number of queries, 40; got 41" in many.stderr
    run("sample", "machine.qrels", "--size", 20, "-o", "sample.csv")
    fp.write_qrels(fp.Qrels.from_dict({"q0": {"a": 1}}), "people.qrels")
    short = run("estimate", "x.run", *JUDGMENTS)
    assert short.returncode == 1
    assert "of 20 drawn queries have no human judgments" in short.stderr


def test_several_sources_become_one_file(run, files: Path) -> None:
    fp.write_qrels(fp.Qrels.from_dict(HUMAN), "people.qrels")
    sources = ("--human", "people.qrels", "--machine", "machine.qrels", "--machine", "clicks.qrels")
    clicks = {query: {d: g / 2 for d, g in grades.items()} for query, grades in HUMAN.items()}
    fp.write_qrels(fp.Qrels.from_dict({**clicks, "new": {"a": 0.5, "b": 0}}), "clicks.qrels")
    done = run("estimate", *sources, "--combined", "all.qrels")
    assert done.returncode == 0
    assert "judgments combined" in done.stdout
    assert "firstpage train DATA --qrels all.qrels" in done.stderr
    combined = fp.read_qrels("all.qrels").to_dict()
    assert {query: combined[query] for query in HUMAN} == HUMAN
    assert combined["new"]["a"] > combined["new"]["b"]
    evaluated = run("evaluate", "x.run", "--qrels", "all.qrels", "-m", "RR")
    assert evaluated.returncode == 0
    weights = run("estimate", *sources, "--combined", "all.qrels", "--json").stdout
    assert [s["name"] for s in json.loads(weights)["sources"]] == ["machine.qrels", "clicks.qrels"]


def test_combining_takes_no_options_of_runs(run, files: Path) -> None:
    fp.write_qrels(fp.Qrels.from_dict(HUMAN), "people.qrels")
    sources = ("--human", "people.qrels", "--machine", "machine.qrels")
    assert "give RUNS to measure" in run("estimate", *sources).stderr
    wrong = run("estimate", *sources, "--combined", "all.qrels", "-m", "RR")
    assert (wrong.returncode, "--measure requires RUNS" in wrong.stderr) == (2, True)
    assert not Path("all.qrels").exists()
    assert "the --sample that people judged" in run("estimate", "x.run", *sources).stderr


def test_the_path_of_a_user(run, tmp_path: Path, monkeypatch) -> None:
    """Runs and a machine's grades, a sample, a labeling project, grades of people, estimates."""
    monkeypatch.chdir(tmp_path)
    for name, table in documents.RUNS.items():
        fp.write_run(fp.Run.from_dict(table, name), f"{name}.run")
    fp.write_qrels(fp.Qrels.from_dict(documents.MACHINE), "machine.qrels")
    draw = ("--documents", 4, "--seed", 2, "--drawn", "drawn.run", "-o", "sample.csv")
    drawn = run("sample", "x.run", "y.run", *draw)
    assert (drawn.returncode, drawn.stdout) == (0, "")
    assert "160 of " in drawn.stderr
    assert "of 40 of 40 queries (seed 2)" in drawn.stderr
    sample = fp.planning.DocumentSample.read("sample.csv")
    judged = fp.read_run("drawn.run").to_dict()
    assert {q: set(d) for q, d in judged.items()} == {
        q: set(d) for q, d in documents.only_drawn(sample).items()
    }
    fp.write_qrels(fp.Qrels.from_dict(documents.only_drawn(sample)), "people.qrels")
    files = ("--human", "people.qrels", "--machine", "machine.qrels", "--sample", "sample.csv")
    done = run("estimate", "x.run", "y.run", *files, "-m", "P@10", "--target", "queries", "--json")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert (report["documents"], report["judged"]) == (160, 40)
    truth = {
        name: fp.evaluate(table, documents.HUMAN, measures="P@10")["P@10"]
        for name, table in documents.RUNS.items()
    }
    for mean in report["means"]:
        assert mean["low"] < truth[mean["system"]] < mean["high"] < mean["low"] + 0.2
        assert mean["high"] - mean["low"] < mean["human_high"] - mean["human_low"]
    text = run("estimate", "x.run", *files, "-m", "P@10").stdout
    assert "160 documents of 40 of 40 queries judged by people" in text
    several = run("estimate", "x.run", *files, "--machine", "machine.qrels", "-m", "P@10")
    assert several.returncode == 0


def test_options_are_for_documents_or_queries(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    fp.write_run(fp.Run.from_dict(documents.RUNS["x"], "x"), "x.run")
    for arguments, message in (
        (("x.run", "--size", 3, "--depth", 5), "--depth requires --documents"),
        (("x.run", "x.run", "--size", 3), "give one file and --size; or --documents N"),
        (("x.run",), "give one file and --size; or --documents N"),
        (("x.run", "--documents", 1), "--documents"),
        (("x.run", "--documents", 2, "--sizes", "x.run"), "--sizes requires queries without"),
    ):
        done = run("sample", *arguments, "-o", "sample.csv")
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
