"""What a command leaves out, assumes or fills in is one note; what would do nothing is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.formats.trec import run_of

MADE = fp.Synthetic(queries=12, docs=6, features=3, grades=3).dataset()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fp.write(MADE, "d.txt")
    fp.write(MADE[6:], "v.txt")
    fp.write_qrels(MADE, "d.qrels")
    for name in "ab":
        scores = np.random.default_rng(ord(name)).random(MADE.n_docs)
        fp.write_scores(scores, f"{name}.scores")
        fp.write_run(run_of(MADE, scores, name), f"{name}.run")
    fp.write_run(run_of(MADE[:10], np.arange(MADE[:10].n_docs)), "short.run")
    fp.write(MADE.with_features(MADE.X, ["x", "y1", "z"]), "named.csv")
    fp.write_folds(MADE, "folds", 3)
    fp.Utility.of(gains=[0, 1, 2], discounts=[1, 0.5]).save("m.json")
    return tmp_path


TRAIN = ["train", "ListNet", "d.txt", "-o", "model.json"]
SCORES = ["--scores", "a.scores", "--scores", "b.scores"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([*TRAIN, "--tuner", "optuna"], "--tuner goes with --tune or --grid"),
        ([*TRAIN, "--trials", "3"], "--trials goes with --tune or --grid"),
        ([*TRAIN, "--valid", "v.txt", "--tune", "--trials", "3"], "--trials goes with --tuner optuna"),
        ([*TRAIN, "--pad"], "--pad goes with --valid"),
        ([*TRAIN, "--set", "l2=1", "--set", "l2=2"], "l2 is given twice: by --set l2=1 and by --set l2=2"),
        ([*TRAIN, "--seed", "3", "--set", "seed=4"], "seed is given twice: by --seed and by --set seed=4"),
        ([*TRAIN, "--normalize", "minmax", "--set", "normalize=standard"], "normalize is given twice"),
        (["train", "ListMLE(k=3)", "d.txt", "--set", "k=5", "-o", "m"], "k is given twice: in ListMLE(k=3) and by --set k=5"),
        (["train", "ListMLE(seed=3)", "d.txt", "--seed", "5", "-o", "m"], "seed is given twice: in ListMLE(seed=3) and by --seed"),
        ([*TRAIN, "--valid", "v.txt", "--grid", "l2=1,2", "--grid", "l2=3"], "--grid l2 is given twice"),
        (["crossval", "folds", "ListNet", "ListNet"], "ListNet is named twice"),
        (["convert", "d.txt", "t.txt", "--k", "5"], "--k goes with --truth top-k"),
        (["convert", "d.txt", "t.txt", "--truth", "binary", "--min-grade", "1"], "--min-grade goes with --truth top-k"),
        (["convert", "d.txt", "t.txt", "--rel", "2"], "--rel goes with --truth binary"),
        (["convert", "d.txt", "t", "--folds", "3", "--to", "csv"], "--folds writes LETOR text, not csv"),
        (["convert", "d.qrels", "t.qrels", "--dtype", "float64"], "--dtype goes with a file of features"),
        (["evaluate", "d.txt", "--scores", "a.scores", "--queries", "run"], "--queries goes with --run"),
        (["compare", "d.txt", *SCORES, "--queries", "run"], "--queries goes with --run"),
        (["compare", "--qrels", "d.qrels", "--run", "a.run", "--run", "sub/a.run", "--baseline", "a"], "--baseline a may be a.run or sub/a.run"),
        (["aggregate", "--data", "d.txt", *SCORES, "--missing", "silent"], "--missing goes with runs"),
        (["aggregate", "--data", "d.txt", *SCORES, "--tag", "x"], "--tag goes with runs"),
        (["aggregate", "a.run", "b.run", "-m", "AP"], "--measure goes with judgments"),
        (["dcglearn", "choose", "p.jsonl", "--measure", "m.json", "--K", "3"], "--K goes with --prefs"),
        (["dcglearn", "learn", ".", "--rounds", "10"], "--rounds goes with a file of preferences"),
    ],
)  # fmt: skip
def test_what_would_do_nothing_is_refused(files: Path, run, args: list[str], said: str) -> None:
    Path("sub").mkdir()
    Path("sub/a.run").write_bytes(Path("a.run").read_bytes())
    done = run(*args)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def notes(done) -> list[str]:
    assert done.returncode == 0, done.stderr
    return [x for x in done.stderr.splitlines() if x.startswith("firstpage: note: ")]


def test_queries_that_order_nothing_are_counted(files: Path, run) -> None:
    varied = MADE.y.copy()
    varied[MADE.offsets[:-1]], varied[MADE.offsets[:-1] + 1] = 0, 1
    fp.write(MADE.with_labels(varied), "varied.txt")
    flat = varied.copy()
    flat[: MADE.offsets[2]] = 1
    fp.write(MADE.with_labels(flat), "flat.txt")
    (note,) = notes(run("train", "ListNet", "flat.txt", "-o", "m.json"))
    assert note.endswith("flat.txt: 2 of 12 queries have one label alone; left out.")
    assert notes(run("train", "Regression", "flat.txt", "-o", "m.json")) == []
    assert notes(run("train", "ListNet", "varied.txt", "-o", "m.json")) == []


def test_trials_that_diverge_are_counted(files: Path, run) -> None:
    asked = ["train", "Regression(solver=gd)", "d.txt", "--valid", "v.txt", "-o", "m.json"]
    done = run(*asked, "--grid", "solver=gd(rate=0.1, max_iter=5),gd(rate=1e300, max_iter=5)")
    assert "firstpage: note: 1 of 2 trials diverged; they have no score." in notes(done)


def test_names_that_letor_text_cannot_hold(files: Path, run) -> None:
    (note,) = notes(run("convert", "named.csv", "n.txt"))
    assert "n.txt: LETOR text has no names of features" in note
    assert notes(run("convert", "named.csv", "n.parquet")) == []


def test_ids_that_are_made_up(files: Path, run) -> None:
    Path("bare.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2 # docid = b\n")
    (note,) = notes(run("convert", "bare.txt", "bare.qrels"))
    assert "bare.txt: 1 of 2 documents have no id" in note
    assert fp.read_qrels("bare.qrels").to_dict() == {"1": {"1-1": 1, "b": 0}}


def test_columns_that_look_like_labels(files: Path, run) -> None:
    Path("two.csv").write_text("label,grade,qid,a\n1,1,1,0.5\n0,0,1,0.1\n")
    (note,) = notes(run("describe", "two.csv"))
    assert "two.csv: reads 'grade' as a feature, though 'label' is the label" in note


def test_arrays_that_are_not_read(files: Path, run) -> None:
    np.savez("d.npz", X=MADE.X, y=MADE.y, qid=MADE.qid, weights=np.ones(3))
    (note,) = notes(run("describe", "d.npz"))
    assert "d.npz: leaves out weights; data are X" in note


def test_queries_that_a_run_does_not_have_to_aggregate(files: Path, run) -> None:
    (note,) = notes(run("aggregate", "a.run", "b.run", "short.run", "-o", "o.run"))
    assert "short.run: 2 of 12 queries are not in it, and it has no vote there: 11, 12." in note


def test_weights_of_nothing(files: Path, run) -> None:
    done = run("aggregate", "a.run", "b.run", "--weights", "0,0", "--json")
    assert [r["weight"] for r in json.loads(done.stdout)["rankers"]] == [0.5, 0.5]
    assert notes(done) == ["firstpage: note: every ranking has the weight 0; all weigh alike."]


def test_files_of_a_folder_with_fewer_features(files: Path, run) -> None:
    Path("parts").mkdir()
    fp.write(MADE[:6], "parts/1.txt")
    fp.write(MADE[6:].with_features(MADE[6:].X[:, :2]), "parts/2.txt")
    said = notes(run("train", "ListNet", "parts", "-o", "m.json"))
    assert (
        "firstpage: note: parts: has 3 features; those that a file lacks are taken for 0: 2.txt (2)."
        in said
    )
