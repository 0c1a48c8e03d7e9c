"""Tests of `firstpage train`, `rank`, `rankers`, `explain` and `crossval`."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.formats.trec import to_qrels
from tests.patience import PATIENCE

RECIPE = fp.Synthetic(queries=40, docs=12, features=5, grades=3, seed=5)


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    data = RECIPE.dataset()
    for name, part in (("train", data[:25]), ("vali", data[25:32]), ("test", data[32:])):
        fp.write_letor(part, f"{name}.txt")
    return tmp_path


def test_train_rank_and_evaluate_agree_with_python(files: Path, run) -> None:
    result = run(
        "train",
        "listmle",
        "train.txt",
        "--valid",
        "vali.txt",
        "--set",
        "k=5",
        "--normalize",
        "minmax",
        "-o",
        "m.json",
    )
    assert result.returncode == 0, result.stderr
    assert "ListMLE(k=5, normalize='minmax')" in result.stdout
    assert "NDCG@10 on validation data: 0." in result.stdout
    assert run("rank", "m.json", "test.txt", "-o", "s.txt").returncode == 0
    scores = fp.read_scores("s.txt")
    test = fp.read_letor("test.txt")
    assert scores.tolist() == fp.load("m.json").predict(test).tolist()
    assert run("rank", "m.json", "test.txt", "-o", "s.run").returncode == 0
    evaluation = fp.evaluate(fp.read_run("s.run"), to_qrels(test), measures="NDCG@10")
    assert evaluation["NDCG@10"] == pytest.approx(
        fp.evaluate(scores, test, measures="NDCG@10")["NDCG@10"], abs=1e-3
    )


def test_scores_have_the_order_of_the_file(files: Path, run) -> None:
    lines = Path("test.txt").read_text().splitlines()
    mixed = [lines[i] for i in np.argsort(np.arange(len(lines)) % 5, kind="stable")]
    Path("mixed.txt").write_text("\n".join(mixed) + "\n")
    run("train", "listnet", "train.txt", "-o", "m.json")
    run("rank", "m.json", "test.txt", "-o", "a.txt")
    assert run("rank", "m.json", "mixed.txt", "-o", "b.txt").returncode == 0
    a = dict(zip(lines, fp.read_scores("a.txt"), strict=True))
    assert [a[line] for line in mixed] == fp.read_scores("b.txt").tolist()


def test_tuning_writes_json_and_trials(files: Path, run) -> None:
    result = run(
        "train",
        "focused-net",
        "train.txt",
        "--valid",
        "vali.txt",
        "--set",
        "k=5",
        "--tune",
        "--trials-to",
        "t.csv",
        "--json",
        "-o",
        "m.json",
    )
    record = json.loads(result.stdout)
    assert record["measure"] == "NDCG@10"
    assert record["model"] == "m.json"
    rows = Path("t.csv").read_text().splitlines()
    assert len(rows) == 22
    assert rows[0].startswith("beta,NDCG@10")
    result = run(
        "train",
        "listnet",
        "train.txt",
        "--valid",
        "vali.txt",
        "--grid",
        "l2=0.1,1",
        "--grid",
        "k=3,none",
        "--trials-to",
        "t.json",
        "-o",
        "m.json",
    )
    assert len(json.loads(Path("t.json").read_text())) == 4
    result = run(
        "train",
        "listnet",
        "train.txt",
        "--valid",
        "vali.txt",
        "--tune",
        "--tuner",
        "optuna",
        "--trials",
        "3",
        "-o",
        "m.json",
    )
    assert result.returncode == 0, result.stderr


def test_the_same_command_writes_the_same_bytes(files: Path, run) -> None:
    for name in ("a.json", "b.json"):
        run("train", "ListMLE(k=3, ties=random)", "train.txt", "--seed", "3", "-o", name)
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    run("train", "ListMLE(k=3, ties=random)", "train.txt", "--seed", "4", "-o", "c.json")
    assert Path("a.json").read_bytes() != Path("c.json").read_bytes()


def test_data_without_features_are_a_one_line_error(
    tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for fold in ("Fold1", "Fold2"):
        Path("folds", fold).mkdir(parents=True)
        for name in ("train", "vali", "test"):
            Path("folds", fold, f"{name}.txt").write_text(f"1 qid:{fold[-1]}\n0 qid:{fold[-1]}\n")
    file, valid = "folds/Fold1/train.txt", "folds/Fold1/vali.txt"
    assert run("shard", file, "shards").returncode == 0
    for args in (
        ("train", "RankNet", file, "-o", "m.json"),
        ("train", "RankSVM", file, "--valid", valid, "--tune", "-o", "m.json"),
        ("train", "RankBoost", "shards", "-o", "m.json"),
        ("crossval", "folds", "AdaRank"),
    ):
        result = run(*args)
        assert (result.returncode, result.stdout) == (1, ""), args
        assert "has no features to learn from" in result.stderr, args
        assert result.stderr.count("\n") == 1, args
    assert not Path("m.json").exists()


def test_explain_shows_weights(files: Path, run) -> None:
    run("train", "listnet", "train.txt", "--valid", "vali.txt", "-o", "m.json")
    result = run("explain", "m.json", "--top", "3")
    assert "█" in result.stdout
    assert "(2 more" in result.stdout
    record = json.loads(run("explain", "m.json", "--json").stdout)
    assert {f["name"] for f in record["features"]} == {"1", "2", "3", "4", "5"}
    limited = json.loads(run("explain", "m.json", "--json", "--top", "2").stdout)
    assert limited["features"] == record["features"][:2]
    assert run("explain", "m.json", "-o", "m.html").returncode == 0
    page = Path("m.html").read_text()
    assert page.count("<svg") == 2
    for scorer in ("trees(count=5, leaves=4)", "trees(count=5, leaves=4, library=xgboost)"):
        run("train", "listnet", "train.txt", "--set", f"scorer={scorer}", "-o", "t.json")
        assert "gain of splits" in run("explain", "t.json").stdout


def test_rankers_are_listed(run) -> None:
    assert "FocusedNet" in run("rankers").stdout
    listing = json.loads(run("rankers", "--json").stdout)
    assert {"name", "description", "paper", "parameters"} == set(listing[0])
    assert [r["name"] for r in listing][:3] == ["Regression", "RankNet", "ListNet"]


def test_crossval_on_top_k_truth_against_a_baseline(files: Path, run) -> None:
    """An over-regularized regression differs significantly; a ranker does not differ from itself."""
    fp.write_folds(fp.Synthetic(queries=60, docs=15, features=5, grades=5).dataset(), "folds")
    arguments = ["crossval", "folds", "RankSVM", "Regression(l2=1000000)", "RankSVM(C=1)"]
    options = ["--top-k", "5", "-t", "kNDCG@5", "--baseline", "RankSVM"]
    result = run(*arguments, *options)
    assert result.returncode == 0, result.stderr
    assert "from RankSVM at p < 0.05" in result.stdout
    record = json.loads(run(*arguments, *options, "--json").stdout)
    assert record["baseline"] == "RankSVM"
    same = next(d for d in record["differences"] if d["ranker"] == "RankSVM(C=1)")
    assert (same["difference"], same["p"]) == (0.0, 1.0)
    folds = fp.read_folds("folds")
    cv = fp.cross_validate(fp.RankSVM(), folds, ["kNDCG@5"], top_k=5)
    by_hand = [
        fp.RankSVM()
        .fit(f.train.with_labels(f.train.truth.top_k(5)))
        .set_params(measure="kNDCG@5")
        .score(f.test.with_labels(f.test.truth.top_k(5)))
        for f in folds
    ]
    assert cv.mean("RankSVM()", "kNDCG@5") == pytest.approx(np.mean(by_hand))
    wrong = run(*arguments, "--baseline", "ListNet")
    assert (wrong.returncode, "must be one of the rankers and runs" in wrong.stderr) == (2, True)


def test_every_ranker_trains_ranks_and_explains(files: Path, run) -> None:
    for name in (
        "RankSVM",
        "SVM-MAP(C=10)",
        "FocusedSVM(k=5)",
        "top-margin",
        "TopSlack(delta=P@5)",
        "RankBoost(rounds=20)",
        "AdaRank.MAP",
        "FocusedBoost(k=5, rounds=20)",
        "TopRank(depth=8)",
    ):
        result = run("train", name, "train.txt", "--valid", "vali.txt", "-o", "m.json")
        assert result.returncode == 0, (name, result.stderr)
        assert run("rank", "m.json", "test.txt", "-o", "s.txt").returncode == 0
        scores = fp.read_scores("s.txt", fp.read_letor("test.txt").n_docs)
        expected = fp.load("m.json").predict(fp.read_letor("test.txt"))
        assert scores == pytest.approx(expected), name
        assert run("explain", "m.json").returncode == 0, name
    assert "within" in run("train", "RankSVM", "train.txt", "-o", "m.json").stdout


def test_crossval_with_published_results(files: Path, run) -> None:
    fp.write_folds(RECIPE.dataset(), files / "folds", 4)
    Path("wide.csv").write_text("method,NDCG@10,MAP\nBM25,0.31,0.22\n")
    result = run(
        "crossval", "folds", "ListNet", "ListMLE(k=3)", "--seeds", "2", "--published", "wide.csv"
    )
    assert result.returncode == 0, result.stderr
    assert "published: BM25" in result.stdout
    assert "0.3100" in result.stdout
    assert "standard error over queries" in result.stdout
    record = json.loads(
        run("crossval", "folds", "ListNet", "-t", "NDCG@5", "--tune", "--json").stdout
    )
    assert record["results"][0]["measure"] == "NDCG@5"
    assert len(record["chosen"]["ListNet"]) == 4
    assert run("crossval", "folds", "ListNet", "-o", "r.html").returncode == 0
    assert Path("r.html").read_text().count("<svg") == 4
    assert run("crossval", "folds", "ListNet", "-f", "markdown").returncode == 0


def test_crossval_csv_and_latex_have_one_number_per_cell(files: Path, run) -> None:
    fp.write_folds(RECIPE.dataset(), files / "folds", 3)
    Path("wide.csv").write_text("method,NDCG@10,MAP\nBM25,0.31,0.22\n")
    arguments = ["crossval", "folds", "ListNet", "Regression(l2=1000000)", "-t", "NDCG@10", "-t", "AP",
             "--published", "wide.csv", "--baseline", "ListNet"]  # fmt: skip
    record = json.loads(run(*arguments, "--json").stdout)
    assert record["published"] == {"BM25": {"ndcg@10": "0.31", "ap": "0.22"}}
    rows = list(csv.DictReader(run(*arguments, "-f", "csv").stdout.splitlines()))
    assert [(r["ranker"], r["measure"]) for r in rows] == [
        (name, m)
        for name in ("ListNet", "Regression(l2=1000000)", "published: BM25")
        for m in ("NDCG@10", "AP")
    ]
    for row, expected in zip(rows, record["results"], strict=False):
        assert float(row["mean"]) == expected["mean"]
        assert float(row["se_queries"]) == expected["se_queries"]
        assert row["sd_seeds"] == ""
    by_ranker = {(d["ranker"], d["measure"]): d for d in record["differences"]}
    for row in rows:
        expected = by_ranker.get((row["ranker"], row["measure"]), {"difference": "", "p": ""})
        assert (row["difference"], row["p"]) == (str(expected["difference"]), str(expected["p"]))
    assert [float(r["mean"]) for r in rows[-2:]] == [0.31, 0.22]
    own = {r["measure"]: float(r["mean"]) for r in rows if r["ranker"] == "ListNet"}
    for row in rows[2:4]:
        assert float(row["difference"]) == pytest.approx(float(row["mean"]) - own[row["measure"]])
    latex = run(*arguments, "-f", "latex").stdout
    assert latex.isascii()
    assert r"% needs \usepackage{amssymb}" in latex
    assert r"$\pm$" in latex
    assert "differs from ListNet at p $<$ 0.05" in latex
    assert "standard error over queries" in latex


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["train", "lisnet", "train.txt", "-o", "m"], 1, "no ranker 'lisnet'. Did you mean 'ListNet'"),
        (["train", "listnet", "absent.txt", "-o", "m"], 1, "absent.txt: no such file"),
        (["train", "listnet", "train.txt", "--tune", "-o", "m"], 2, "give --valid"),
        (["train", "listnet", "train.txt", "--set", "k", "-o", "m"], 2, "NAME=VALUE"),
        (["train", "listnet", "train.txt", "--set", "zz=1", "-o", "m"], 1, "no parameter 'zz'"),
        (["train", "listnet", "train.txt", "--set", "k=-1", "-o", "m"], 1, "k of ListNet must be an integer"),
        (["train", "listnet", "train.txt", "-m", "NDGC", "-o", "m"], 1, "no measure 'NDGC'"),
        (["train", "listnet", "train.txt", "-o", "nowhere/m"], 2, "cannot be written"),
        (["train", "listnet", ".", "-o", "m"], 1, "contains different splits"),
        (["train", "listnet", "train.txt", "--valid", "vali.txt", "--tune", "--trials-to", "t.xlsx", "-o", "m"], 2, "end in .csv or .json"),
        (["rank", "m.json", "test.txt", "--tag", "x", "-o", "s"], 2, "--tag requires a run"),
        (["explain", "m.json", "-o", "m.csv"], 2, "end in .txt, .json or .html"),
        (["crossval", ".", "ListNet", "-o", "r.pdf"], 2, "end in .txt, .json, .csv, .md, .tex or .html"),
        (["train", "listnet", "nan.txt", "-o", "m"], 1, "nan.txt contains NaN or inf: feature 2 of row 2"),
        (["rank", "absent.json", "test.txt", "-o", "s"], 1, "no such file"),
        (["rank", "train.txt", "test.txt", "-o", "s"], 1, "train.txt:1: not a model file"),
        (["rank", "m.json", "wide.txt", "-o", "s"], 1, "wide.txt"),
        (["rank", "m.json", "nan.txt", "-o", "s"], 1, "contains NaN"),
        (["rank", "m.json", "plain.txt", "--trec", "-o", "s"], 1, "no document ids"),
        (["explain", "test.txt"], 1, "not a model file"),
        (["crossval", "absent", "ListNet"], 1, "no such folder"),
        (["crossval", "."], 2, "Missing argument"),
    ],
)  # fmt: skip
def test_errors_are_one_line(args: list[str], code: int, words: str, files: Path, run) -> None:
    Path("nan.txt").write_text("1 qid:1 1:0.5 2:1 5:1\n0 qid:1 1:0.1 2:nan 5:1\n")
    Path("wide.txt").write_text("1 qid:1 1:0.5 9:1\n")
    Path("plain.txt").write_text("1 qid:1 1:0.5 5:1\n")
    fp.ListNet().fit(fp.read_letor("train.txt")).save("m.json")
    result = run(*args)
    assert result.returncode == code
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    if code == 1:
        assert len(result.stderr.strip().splitlines()) == 1


def test_interrupt_writes_the_best_model(files: Path, run) -> None:
    """Send SIGINT to a process that trains."""
    big = fp.Synthetic(queries=400, docs=60, features=20, grades=3, seed=1).dataset()
    fp.write_letor(big, "big.txt")
    slow = "solver=gd(rate=1e-9, max_iter=1000000)"
    command = [
        *(sys.executable, "-m", "firstpage", "train", "ranknet", "big.txt"),
        *("--set", slow, "--set", "verbose=true", "-o", "m.json"),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "loss" not in process.stderr.readline():  # it has begun
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            _, stderr = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 130, stderr
    assert "interrupted" in stderr
    assert fp.load("m.json").training_["interrupted"] is True


def test_files_of_a_folder_are_listed_in_a_note(files: Path, run) -> None:
    Path("parts").mkdir()
    data = fp.read_letor("train.txt")
    for number in range(2):
        fp.write_letor(data[number::2], f"parts/part-{number}.txt")
    Path("parts/more.csv").write_text("label,qid,a\n1,1,1\n")
    note = (
        "firstpage: note: parts: reading 2 files as one data set: part-0.txt, part-1.txt; ignored: "
        "more.csv.\n"
    )
    result = run("train", "ListNet", "parts", "-o", "m.json", "--json")
    assert result.returncode == 0
    assert note in result.stderr
    assert json.loads(result.stdout)["data"]["documents"] == data.n_docs
    assert note in run("rank", "m.json", "parts", "-o", "s").stderr
    assert note in run("evaluate", "parts", "--model", "m.json").stderr
    assert note in run("shard", "parts", "shards").stderr
    result = run("train", "ListNet", "parts", "--valid", "parts/part-0.txt", "-o", "m.json")
    assert "parts/part-0.txt is also a file of training data" in result.stderr


@pytest.mark.parametrize("more", [[], ["--grid", "l2=0.1,1,10"]])
def test_validation_on_the_training_data_prints_one_note(files: Path, run, more) -> None:
    Path("copy.txt").write_bytes(Path("train.txt").read_bytes())
    for valid in ("train.txt", "copy.txt"):
        result = run("train", "ListNet", "train.txt", "--valid", valid, *more, "-o", "m.json")
        assert result.returncode == 0
        assert (
            result.stderr.count("firstpage: note: the validation data are the training data") == 1
        )
    result = run("train", "ListNet", "train.txt", "--valid", "vali.txt", *more, "-o", "m.json")
    assert "note" not in result.stderr


@pytest.mark.parametrize("sparse", [False, True])
def test_validation_queries_of_the_training_data_are_counted(files: Path, run, sparse) -> None:
    lines = Path("train.txt").read_text().splitlines(keepends=True)
    Path("less.txt").write_text("".join(lines[:-1]))
    train, valid = (fp.read_letor(name, sparse=sparse) for name in ("train.txt", "less.txt"))
    note = (
        f"{len(train) - 1} of {len(valid)} validation queries are also in the training data (same "
        f"id and same features; {train.queries[0]!r} is the first)"
    )
    with pytest.warns(fp.FirstpageWarning) as warned:
        fp.ListNet().fit(train, valid=valid)
    assert [str(x.message).startswith(note) for x in warned] == [True]
    result = run("train", "ListNet", "train.txt", "--valid", "less.txt", "-o", "m.json")
    assert result.stderr.count(note) == 1
    turned = train[:3].with_labels(-train[:3].y)
    X: Any = turned.X
    fp.write(turned.with_features(X + (X != 0)), "other.txt")  # other features
    result = run("train", "ListNet", "train.txt", "--valid", "other.txt", "-o", "m.json")
    assert "validation queries" not in result.stderr


def test_crossval_writes_the_test_rankings(files: Path, run) -> None:
    result = run(
        "crossval",
        "test.txt",
        "ListNet",
        "ListMLE(k=5, l2=1)",
        "--folds",
        3,
        "--write-runs",
        "runs",
    )
    assert result.returncode == 0, result.stderr
    assert "wrote 2 runs to runs" in result.stderr
    seeds = ("crossval", "test.txt", "ListNet", "--folds", 3, "--seed", 4, "--seeds", 2)
    assert "wrote 1 runs of seed 4 to two" in run(*seeds, "--write-runs", "two").stderr
    test = fp.read_letor("test.txt")
    for name, tag in (("listnet", "ListNet"), ("listmle-k-5-l2-1", "ListMLE(k=5,l2=1)")):
        ranked = fp.read_run(f"runs/{name}.run")
        assert ranked.name == tag
        assert set(ranked.queries) == set(test.queries)  # each by the model of another fold
        assert len(ranked.docids) == test.n_docs


@pytest.mark.parametrize(
    ("data", "rankers", "message"),
    [
        ("plain.txt", ["ListNet"], "has no document ids, which --write-runs needs"),
        ("test.txt", ["ListMLE(k=5)", "ListMLE(k= 5)"], "two rankers are named listmle-k-5.run"),
    ],
)
def test_runs_that_cannot_be_written_are_refused_before_training(
    data: str, rankers: list[str], message: str, files: Path, run
) -> None:
    lines = Path("test.txt").read_text().splitlines()
    Path("plain.txt").write_text("\n".join(line.split(" #")[0] for line in lines))
    result = run("crossval", data, *rankers, "--write-runs", "runs")
    assert message in result.stderr
    assert not Path("runs").exists()


def test_features_that_count_from_0_do_so_in_every_file(tmp_path: Path, run, monkeypatch) -> None:
    """A file whose feature 0 is always 0, and omitted, looks as if it counted from 1."""
    monkeypatch.chdir(tmp_path)
    lines = [
        "2 qid:1 0:3 1:1 2:0.1",
        "0 qid:1 0:1 1:2 2:0.4",
        "1 qid:2 0:2 1:2 2:0.5",
        "0 qid:2 0:1 1:4 2:0.1",
    ]
    Path("train.txt").write_text("\n".join([*lines, ""]))
    Path("omitted.txt").write_text("1 qid:3 1:1 2:0.2\n0 qid:3 1:5 2:0.3\n")
    Path("written.txt").write_text("1 qid:3 0:0 1:1 2:0.2\n0 qid:3 0:0 1:5 2:0.3\n")
    for name in ("omitted", "written"):
        train = ["train", "Regression", "train.txt", "--valid", f"{name}.txt", "-o", "m.json"]
        assert run(*train).returncode == 0
        assert run("rank", "m.json", f"{name}.txt", "-o", f"{name}.scores").returncode == 0
    assert Path("omitted.scores").read_text() == Path("written.scores").read_text()
    assert (
        run("train", "ListNet", "omitted.txt", "--valid", "train.txt", "-o", "n.json").returncode
        == 0
    )
    assert fp.load("n.json").n_features_in_ == 3
    for number in (1, 2, 3):
        folder = Path("folds") / f"Fold{number}"
        folder.mkdir(parents=True)
        for split, source in (("train", "train"), ("vali", "omitted"), ("test", "omitted")):
            (folder / f"{split}.txt").write_text(Path(f"{source}.txt").read_text())
    shown = run("crossval", "folds", "Regression", "-t", "NDCG@1", "--json")
    assert shown.returncode == 0, shown.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("rank m.json test.txt -o test.txt", "-o test.txt is also read (DATA)"),
        ("convert test.txt ./test.txt", "TARGET test.txt is also read (SOURCE)"),
        ("train ListNet train.txt --checkpoint c.json -o c.json", "--checkpoint and -o name the"),
        ("train ListNet train.txt --valid vali.txt -o vali.txt", "-o vali.txt"),
        (
            "train ListNet train.txt --valid vali.txt --grid l2=1,2 --trials-to m.json -o m.json",
            "--trials-to and -o name the same file (m.json); give two",
        ),
        ("train ListNet train.txt --set threads=1 --threads 2 -o m.json", "threads is given twice"),
        ("train ListNet train.txt -m AP -o m.json", "--measure requires --valid"),
    ],
)
def test_files_are_not_overwritten_and_options_not_ignored(files, run, command, message) -> None:
    before = Path("test.txt").read_bytes(), Path("vali.txt").read_bytes()
    result = run(*command.split())
    assert (result.returncode, message in result.stderr) == (2, True), result.stderr
    assert (Path("test.txt").read_bytes(), Path("vali.txt").read_bytes()) == before


def test_the_measure_of_rankers_that_train_on_it(files: Path, run) -> None:
    assert run("train", "LambdaRank", "train.txt", "-m", "AP", "-o", "m.json").returncode == 0
    assert fp.load("m.json").measure == "AP"
    assert run("train", "PLRank(k=5)", "train.txt", "-o", "m.json").returncode == 0
    assert fp.load("m.json").validation_measure() == "NDCG@5"
