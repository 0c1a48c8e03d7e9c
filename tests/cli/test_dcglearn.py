"""Tests of `firstpage dcglearn learn`, `show`, `choose` and `simulate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.evaluation.dcglearn.simulation import zhou_simulator


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    fp.dcglearn.write_preferences(zhou_simulator(2).pairs(150, rng), "prefs.jsonl")
    fp.dcglearn.write_preferences(zhou_simulator(2).pairs(30, rng), "pool.jsonl")
    return tmp_path


def test_learn_writes_and_prints_a_measure(run, files):
    code, out, _ = run(
        "dcglearn",
        "learn",
        "prefs.jsonl",
        "-o",
        "m.json",
        "--rounds",
        "20",
        "--test-rounds",
        "9",
        "--html",
        "m.html",
    )
    assert code == 0
    assert "150 pairs, 0 of them ties" in out
    assert "grade 5   1.0000" in out
    assert "Discounts (relative to the last position)" in out
    assert "use it as DCG(m.json)@10" in out
    utility = fp.dcglearn.read_utility("m.json")
    assert len(utility.about["intervals"]["gains"]) == 5
    assert 0 < utility.about["position_test"]["p"] <= 1
    assert utility.about["advice"]["pairs"] == 150
    assert utility.about["dcg_comparison"]["verdict"] in ("better", "not better")
    assert utility.about["dcg_comparison"]["text"] in out
    page = Path("m.html").read_text()
    assert page.count("<svg") == 3
    assert page.count('class="error c0"') == 15


def test_cut_and_unjudged_ranks_print_notes(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"left": [q % 3, None] * 6, "right": [(q + 1) % 3] * 12, "outcome": 1, "query": f"q{q}"}
        for q in range(6)
    ]
    Path("p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words: tuple[Any, ...] = (
        *("dcglearn", "learn", "p.jsonl", "--C", 1),
        *("--rounds", 0, "--test-rounds", 0),
    )
    notes = run(*words).stderr
    assert "some lists have 12 positions; only the first 10 count in the measure" in notes
    assert "25.0% of the positions have no grade and count as the worst grade" in notes
    other_notes = run(*words, "--K", 5, "--unjudged", "worst").stderr
    assert "some lists" not in other_notes
    assert "no grade" not in other_notes


def test_learn_prints_json_with_its_options(run, files):
    code, out, _ = run(
        "dcglearn",
        "learn",
        "prefs.jsonl",
        "--json",
        "--rounds",
        "0",
        "--test-rounds",
        "0",
        "--C",
        "2.5",
        "--C-tie",
        "0.1",
        "--decreasing",
        "--nonnegative",
        "--form",
        "weights",
        "--K",
        "5",
    )
    record = json.loads(out)
    assert code == 0
    assert record["about"]["C"] == 2.5
    assert record["about"]["C_tie"] == 0.1
    assert record["about"]["decreasing"]
    assert record["form"] == "weights"
    assert len(record["discounts"]) == 5
    assert np.all(np.diff(record["discounts"]) <= 1e-12)
    assert "intervals" not in record["about"]


def test_learn_from_two_runs_and_preferences_of_editors(run, files):
    rng = np.random.default_rng(0)
    docs = [f"d{i}" for i in range(8)]
    qrels = {
        f"q{q}": {d: int(g) for d, g in zip(docs, rng.integers(0, 3, 8), strict=True)}
        for q in range(40)
    }
    runs = {
        name: {q: dict(zip(docs, rng.random(8), strict=True)) for q in qrels}
        for name in ("old", "new")
    }
    fp.write_qrels(fp.Qrels.from_dict(qrels), "q.qrels")
    for name, table in runs.items():
        fp.write_run(fp.Run.from_dict(table, name), f"{name}.run")
    worth = {
        (name, q): sum(
            qrels[q][d] / np.log2(i + 2)
            for i, d in enumerate(sorted(docs, key=table[q].__getitem__, reverse=True))
        )
        for name, table in runs.items()
        for q in qrels
    }
    rows = [{"query": q, "label": 1 if worth["old", q] > worth["new", q] else 5} for q in qrels]
    Path("said.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    code, out, _ = run(
        "dcglearn",
        "learn",
        "said.jsonl",
        "--qrels",
        "q.qrels",
        "--run",
        "old.run",
        "--run",
        "new.run",
        "--K",
        "8",
        "--json",
        "--rounds",
        "0",
        "--test-rounds",
        "0",
    )
    assert code == 0
    record = json.loads(out)
    assert record["grades"] == [0, 1, 2]
    assert record["about"]["accuracy"] > 0.9


@pytest.mark.parametrize("suffix", ["run", "run.gz", "run.xz"])
def test_runs_are_named_without_suffixes_and_misspelled_ones_are_refused(run, files, suffix):
    Path("q.qrels").write_text("q1 0 a 2\nq1 0 b 1\nq1 0 c 0\nq2 0 b 1\nq2 0 c 0\n")
    for name, order in (("A", "abc"), ("B", "cba")):
        fp.write_run(
            fp.Run.from_dict(
                {q: {d: -float(i) for i, d in enumerate(order)} for q in ("q1", "q2")}
            ),
            f"{name}.{suffix}",
        )
    words = (
        "dcglearn", "learn", "p.jsonl", "--qrels", "q.qrels", "--run", f"A.{suffix}", "--run",
        f"B.{suffix}", "--K", 3, "--C", 1, "--rounds", 0, "--test-rounds", 0, "--json",
    )  # fmt: skip
    rows = [{"query": q, "left": "A", "right": "B", "outcome": 1} for q in ("q1", "q2")]
    rows.append({"query": "q1", "left": "a", "right": "c", "outcome": 1})  # documents
    Path("p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = run(*words)
    assert code == 0
    assert json.loads(out)["about"]["accuracy"] == 1
    for query, name in (("q1", "a.run"), ("q2", "a")):  # a is judged for q1 only
        row = {"query": query, "left": name, "right": "B", "outcome": 1}
        Path("p.jsonl").write_text(json.dumps(row))
        code, _, err = run(*words)
        assert code == 1
        message = f"{name!r} is neither a run nor a judged document of query {query!r}; the runs"
        assert f"p.jsonl:1: {message} are A, B." in err


def test_form_applies_to_segments(run, files):
    rows = [
        {
            "query": f"q{q}",
            "left": [2, q % 2],
            "right": [0, 1 + q % 2],
            "outcome": 1,
            "segment": ("news", "shop")[q % 2],
        }
        for q in range(6)
    ]
    Path("p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("dcglearn", "learn", "p.jsonl", "--C", 1, "--K", 2, "--rounds", 0, "--test-rounds", 0)
    record = json.loads(run(*words, "--form", "weights", "--json").stdout)
    assert record["form"] == "weights"
    assert [segment["form"] for segment in record["segments"].values()] == ["weights"] * 2


def test_show_writes_a_page_and_label_gains(run, files):
    fp.dcglearn.Utility.from_dcg("exp", range(4), 5).save("m.json")
    code, out, _ = run("dcglearn", "show", "m.json")
    assert code == 0
    assert "grade 3   1.0000" in out
    assert "position 5" in out
    _, out, _ = run("dcglearn", "show", "m.json", "--label-gain")
    assert out.strip() == "0,1,3,7"
    _, out, _ = run("dcglearn", "show", "m.json", "--label-gain", "--json", "--top", "1")
    assert json.loads(out) == pytest.approx([0, 1 / 7, 3 / 7, 1])
    run("dcglearn", "show", "m.json", "-o", "page.html")
    assert "<svg" in Path("page.html").read_text()
    _, out, _ = run("dcglearn", "show", "m.json", "--json")
    assert json.loads(out)["gains"] == pytest.approx([0, 1 / 7, 3 / 7, 1])


def test_choose_uses_a_measure_or_preferences(run, files):
    known = fp.dcglearn.DCGLearn(10, 5, 10.0).fit(fp.dcglearn.read_preferences("prefs.jsonl"))
    known.utility_.save("m.json")
    pool = fp.dcglearn.read_preferences("pool.jsonl", pool=True)
    code, out, _ = run("dcglearn", "choose", "pool.jsonl", "--measure", "m.json", "--json")
    assert code == 0
    record = json.loads(out)
    assert record["rows"] == fp.dcglearn.choose(known.utility_, pool)
    assert set(record["pairs"][0]) == {"left", "right"}
    code, out, _ = run(
        "dcglearn",
        "choose",
        "pool.jsonl",
        "--prefs",
        "prefs.jsonl",
        "--strategy",
        "diverse",
        "--count",
        "4",
        "-o",
        "next.jsonl",
    )
    assert code == 0
    assert out.splitlines()[3].startswith("4. row ")
    assert "expected accuracy" in out.splitlines()[-1]
    assert len(fp.dcglearn.read_preferences("next.jsonl", pool=True)) == 4


def test_simulate_prints_means_and_standard_errors(run, files):
    code, out, _ = run(
        "dcglearn", "simulate", "--data", "2", "--pairs", "100", "--runs", "2", "--json"
    )
    record = json.loads(out)
    assert code == 0
    assert record["data"] == 2
    assert 0.8 < record["accuracy"] < 0.97
    assert record["accuracy_se"] > 0
    code, out, _ = run("dcglearn", "simulate", "--pairs", "50", "--runs", "1", "--noise", "0.2")
    assert code == 0
    assert out.startswith("Data 1: 50 pairs, 20% reversed, 1 runs")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["learn", "none.jsonl"], "none.jsonl: no such file"),
        (["learn", "prefs.jsonl", "--C", "x"], "--C must be a positive number, or cv"),
        (["learn", "prefs.jsonl", "--C", "-1"], "C must be a finite number above 0"),
        (["learn", "prefs.jsonl", "--grades", "a,b"], "--grades must be integers"),
        (["learn", "prefs.jsonl", "--grades", "1,2"], "the grades are 1, 2"),
        (["learn", "prefs.jsonl", "--grades", "1,2,3,4,5,1100"], "the grade 1100 is too large"),
        (["learn", "prefs.jsonl", "--run", "a.run"], "a.run: no such file"),
        (["show", "prefs.jsonl"], "not a measure file"),
        (["show", "m.json", "--segment", "x"], "there is no segment 'x'"),
        (["choose", "pool.jsonl", "--measure", "prefs.jsonl"], "not a measure file"),
        (["choose", "pool.jsonl", "--measure", "m.json", "--strategy", "committee"],
         "committee needs a learner fitted to the preferences so far"),
        (["simulate", "--noise", "7"], "noise is a fraction"),
    ],
)  # fmt: skip
def test_errors_are_one_line(run, files, arguments, words):
    fp.dcglearn.Utility.from_dcg("exp", range(1, 6), 10).save("m.json")
    code, out, err = run("dcglearn", *arguments)
    assert code == 1
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


def test_choose_needs_either_a_measure_or_preferences(run, files):
    code, _, err = run("dcglearn", "choose", "pool.jsonl")
    assert code == 2
    assert "--measure or --prefs" in err


@pytest.mark.parametrize("grades", [(1, 2, 3), (0, 2, 500)])
def test_all_grades_can_be_listed(run, files, grades):
    low, middle, high = grades
    rows = [
        {"query": f"q{q}", "left": [high, middle], "right": [low, high], "outcome": 1}
        for q in range(4)
    ]
    rows.append({"query": "q5", "left": [middle, None], "right": [low, None], "outcome": 1})
    Path("p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("dcglearn", "learn", "p.jsonl", "--grades", ",".join(map(str, grades)), "--K", 2)
    settings = ("--C", 1, "--json", "--rounds", 0, "--test-rounds", 0)
    assert json.loads(run(*words, *settings).stdout)["grades"] == list(grades)
    code, _, err = run(*words, "--L", 3)
    assert code == 2
    assert "--grades lists all grades; leave out --L" in err


def test_choose_learns_the_measure_of_learn(run, files, monkeypatch):
    """Unjudged documents have grade 0, because all grades are above it."""
    learners = []

    def choose(learner, *_):
        learners.append(learner)
        return [0]

    monkeypatch.setattr("firstpage.cli.dcglearn.choose.choose", choose)
    rows = [
        {"query": f"q{q}", "left": [1 + q % 2, 2], "right": [2, None], "outcome": 1 - q % 2}
        for q in range(8)
    ]
    Path("p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pool = {"left": [1, 3], "right": [3, 1]}
    Path("new.jsonl").write_text(json.dumps(pool))
    run("dcglearn", "choose", "new.jsonl", "--prefs", "p.jsonl", "--K", 2)
    assert learners.pop().grades_ == (0, 1, 2, 3)
    run("dcglearn", "choose", "new.jsonl", "--prefs", "p.jsonl", "--K", 2, "--grades", "1,2,3")
    assert learners.pop().grades_ == (1, 2, 3)


def test_undetermined_discounts_are_not_printed(run, tmp_path: Path, monkeypatch) -> None:
    """With random preferences over lists of five, the discount of rank 1 may be close to 0."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    rows = [
        {
            "left": rng.integers(0, 4, 5).tolist(),
            "right": rng.integers(0, 4, 5).tolist(),
            "outcome": int(rng.choice([-1, 1])),
            "query": f"q{q}",
        }
        for q in range(30)
    ]
    Path("p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ("dcglearn", "learn", "p.jsonl", "--test-rounds", 0, "--rounds", 40, "-o", "m.json")
    result = run(*arguments, "--html", "m.html")
    assert result.returncode == 0, result.stderr
    shown = result.stdout.split("Discounts", 1)[1].split("wrote", 1)[0].strip()
    assert "-0.000" not in shown
    assert "not determined, because no pair differs there: positions 6, 7, 8, 9, 10" in shown
    assert "place 6 " not in shown
    utility = fp.dcglearn.read_utility("m.json")
    assert utility.about["undetermined_positions"] == [6, 7, 8, 9, 10]
    assert np.max(utility.about["intervals"]["discounts"]) > 3  # the file has all digits
    assert "> 3]" in shown
    assert "whose weight is poorly determined here: values above 3 are shown as > 3" in shown
    assert (
        "Not determined, because no pair differs there: positions 6, 7"
        in Path("m.html").read_text()
    )
    assert shown in run("dcglearn", "show", "m.json").stdout
