"""`firstpage dcglearn` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.dcglearn.simulation import world


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    fp.write_preferences(world(2).pairs(150, rng), "prefs.jsonl")
    fp.write_preferences(world(2).pairs(30, rng), "pool.jsonl")
    return tmp_path


@pytest.mark.slow
def test_learn_writes_a_measure_and_tells_of_it(run, files):
    code, out, _ = run(
        "dcglearn", "learn", "prefs.jsonl", "-o", "m.json", "--rounds", "20", "--test", "9",
        "--html", "m.html",
    )  # fmt: skip
    assert code == 0
    assert "pairs: 150, of them ties: 0" in out
    assert "grade 5   1.0000" in out
    assert "Discounts (relative to the last place)" in out
    assert "use it as DCG(m.json)@10" in out
    found = fp.read_utility("m.json")
    assert len(found.about["intervals"]["gains"]) == 5
    assert 0 < found.about["position_test"]["p"] <= 1
    assert found.about["advice"]["pairs"] == 150
    assert found.about["against_dcg"]["verdict"] in ("better", "not better")
    assert found.about["against_dcg"]["text"] in out
    page = Path("m.html").read_text()
    assert page.count("<svg") == 3
    assert page.count('class="error c0"') == 15


def test_places_cut_and_unjudged_are_told(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"left": [q % 3, None] * 6, "right": [(q + 1) % 3] * 12, "outcome": 1, "query": f"q{q}"}
        for q in range(6)
    ]
    Path("p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("dcglearn", "learn", "p.jsonl", "--C", 1, "--rounds", 0, "--test", 0)
    told = run(*words).stderr
    assert "some lists have 12 places; only the first 10 count in the measure" in told
    assert "25.0% of the places have no grade and count as the worst grade" in told
    asked = run(*words, "--K", 5, "--unjudged", "worst").stderr
    assert "some lists" not in asked
    assert "no grade" not in asked


@pytest.mark.slow
def test_learn_as_json_with_settings(run, files):
    code, out, _ = run(
        "dcglearn", "learn", "prefs.jsonl", "--json", "--rounds", "0", "--test", "0", "--C", "2.5",
        "--C-tie", "0.1", "--decreasing", "--nonnegative", "--form", "weights", "--K", "5",
    )  # fmt: skip
    found = json.loads(out)
    assert code == 0
    assert found["about"]["C"] == 2.5
    assert found["about"]["C_tie"] == 0.1
    assert found["about"]["decreasing"]
    assert found["form"] == "weights"
    assert len(found["discounts"]) == 5
    assert np.all(np.diff(found["discounts"]) <= 1e-12)
    assert "intervals" not in found["about"]


@pytest.mark.slow
def test_learn_from_two_runs_and_what_editors_said(run, files):
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
            for i, d in enumerate(sorted(docs, key=lambda d, t=table[q]: -t[d]))
        )
        for name, table in runs.items()
        for q in qrels
    }
    rows = [{"query": q, "label": 1 if worth["old", q] > worth["new", q] else 5} for q in qrels]
    Path("said.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    code, out, _ = run(
        "dcglearn", "learn", "said.jsonl", "--qrels", "q.qrels", "--run", "old.run", "--run",
        "new.run", "--K", "8", "--json", "--rounds", "0", "--test", "0",
    )  # fmt: skip
    assert code == 0
    found = json.loads(out)
    assert found["grades"] == [0, 1, 2]
    assert found["about"]["accuracy"] > 0.9


def test_show_draws_and_hands_on_gains(run, files):
    fp.Utility.from_dcg("exp", range(4), 5).save("m.json")
    code, out, _ = run("dcglearn", "show", "m.json")
    assert code == 0
    assert "grade 3   1.0000" in out
    assert "place 5" in out
    _, out, _ = run("dcglearn", "show", "m.json", "--label-gain")
    assert out.strip() == "0,1,3,7"
    _, out, _ = run("dcglearn", "show", "m.json", "--label-gain", "--json", "--top", "1")
    assert json.loads(out) == pytest.approx([0, 1 / 7, 3 / 7, 1])
    run("dcglearn", "show", "m.json", "-o", "page.html")
    assert "<svg" in Path("page.html").read_text()
    _, out, _ = run("dcglearn", "show", "m.json", "--json")
    assert json.loads(out)["gains"] == pytest.approx([0, 1 / 7, 3 / 7, 1])


@pytest.mark.slow
def test_choose_by_a_measure_or_by_preferences(run, files):
    known = fp.DCGLearn(10, 5, 10.0).fit(fp.read_preferences("prefs.jsonl"))
    known.utility_.save("m.json")
    pool = fp.read_preferences("pool.jsonl", pool=True)
    code, out, _ = run("dcglearn", "choose", "pool.jsonl", "--measure", "m.json", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["rows"] == fp.choose(known.utility_, pool)
    assert set(found["pairs"][0]) == {"left", "right"}
    code, out, _ = run(
        "dcglearn", "choose", "pool.jsonl", "--prefs", "prefs.jsonl", "--strategy", "diverse",
        "--count", "4", "-o", "next.jsonl",
    )  # fmt: skip
    assert code == 0
    assert out.splitlines()[3].startswith("4. row ")
    assert "expected accuracy" in out.splitlines()[-1]
    assert len(fp.read_preferences("next.jsonl", pool=True)) == 4


def test_simulate_tells_means_and_errors(run, files):
    code, out, _ = run(
        "dcglearn", "simulate", "--data", "2", "--pairs", "100", "--runs", "2", "--json"
    )
    found = json.loads(out)
    assert code == 0
    assert found["data"] == 2
    assert 0.8 < found["accuracy"] < 0.97
    assert found["accuracy_se"] > 0
    code, out, _ = run("dcglearn", "simulate", "--pairs", "50", "--runs", "1", "--noise", "0.2")
    assert code == 0
    assert out.startswith("Data 1: 50 pairs, 20% reversed, 1 runs")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["learn", "none.jsonl"], "none.jsonl: no such file"),
        (["learn", "prefs.jsonl", "--C", "x"], "--C is a number above 0, or cv"),
        (["learn", "prefs.jsonl", "--C", "-1"], "C must be a finite number above 0"),
        (["learn", "prefs.jsonl", "--grades", "a,b"], "--grades are whole numbers"),
        (["learn", "prefs.jsonl", "--grades", "1,2"], "the grades are 1, 2"),
        (["learn", "prefs.jsonl", "--run", "a.run"], "a.run: no such file"),
        (["show", "prefs.jsonl"], "not a measure file"),
        (["show", "m.json", "--segment", "x"], "there is no segment 'x'"),
        (["choose", "pool.jsonl", "--measure", "prefs.jsonl"], "not a measure file"),
        (["choose", "pool.jsonl", "--measure", "m.json", "--strategy", "committee"],
         "committee needs the preferences so far"),
        (["simulate", "--noise", "7"], "noise is a share"),
    ],
)  # fmt: skip
def test_a_users_mistake_is_one_line(run, files, arguments, words):
    fp.Utility.from_dcg("exp", range(1, 6), 10).save("m.json")
    code, out, err = run("dcglearn", *arguments)
    assert code == 1
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


def test_choose_needs_one_thing_that_is_known(run, files):
    code, _, err = run("dcglearn", "choose", "pool.jsonl")
    assert code == 2
    assert "--measure or --prefs" in err


@pytest.mark.slow
def test_learn_from_a_folder(run, files):
    Path("many").mkdir()
    for at in range(2):
        fp.write_preferences(fp.read_preferences("prefs.jsonl")[at::2], f"many/{at}.npz")
    code, out, _ = run("dcglearn", "learn", "many", "--C", "1", "--engine", "threads", "--json")
    assert code == 0
    whole = fp.DCGLearn(C=1).fit("prefs.jsonl").utility_
    assert np.array(json.loads(out)["weights"]) == pytest.approx(whole.weights)
    code, out, _ = run("dcglearn", "learn", "many", "-o", "m.json", "--grades", "0,1,2,3,4,5")
    assert code == 0
    assert "use it as DCG(m.json)@10" in out
    assert fp.read_utility("m.json").grades == (0, 1, 2, 3, 4, 5)


def test_what_does_not_go_with_a_folder(run, files):
    Path("many").mkdir()
    code, _, err = run("dcglearn", "learn", "many")
    assert code == 1
    assert "contains no file of preferences" in err
    code, _, err = run("dcglearn", "learn", "many", "--qrels", "x.qrels")
    assert code == 2
    assert "files of a folder have grades in their rows" in err
    code, _, err = run("dcglearn", "learn", "prefs.jsonl", "--engine", "threads")
    assert code == 1
    assert "engine goes with a folder of files" in err


def test_discounts_that_are_not_determined_are_not_printed(
    run, tmp_path: Path, monkeypatch
) -> None:
    """Preferences by chance, over lists of five: place 1 may be worth next to nothing."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    rows = [
        {"left": rng.integers(0, 4, 5).tolist(), "right": rng.integers(0, 4, 5).tolist(),
         "outcome": int(rng.choice([-1, 1])), "query": f"q{q}"}
        for q in range(30)
    ]  # fmt: skip
    Path("p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ("dcglearn", "learn", "p.jsonl", "--test", 0, "--rounds", 40, "-o", "m.json")
    done = run(*asked, "--html", "m.html")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.split("Discounts", 1)[1].split("wrote", 1)[0].strip()
    assert "-0.000" not in shown
    assert "not determined, as no pair differs there: places 6, 7, 8, 9, 10" in shown
    assert "place 6 " not in shown
    held = fp.read_utility("m.json")
    assert held.about["undetermined_places"] == [6, 7, 8, 9, 10]
    assert np.max(held.about["intervals"]["discounts"]) > 3  # the file has all digits
    assert "> 3]" in shown
    assert "which is hardly known here: what is above 3 is not told in full" in shown
    assert "Not determined, as no pair differs there: places 6, 7" in Path("m.html").read_text()
    assert shown in run("dcglearn", "show", "m.json").stdout
