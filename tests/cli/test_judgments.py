"""`--qrels` of the commands: judgments replace the labels of a data file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from tests.cli.test_label import folder  # noqa: F401

DATA = fp.Synthetic(queries=15, docs=8, features=3, grades=3, seed=2).dataset()
DATA = replace(DATA, docids=fp.Run.from_arrays(DATA.qid, range(DATA.n_docs), DATA.y).docids)
BLANK = DATA.with_labels(np.zeros(DATA.n_docs))


def truth_row(number: int) -> dict:
    query = DATA[number]
    assert query.docids is not None
    labels = dict(zip(query.docids, query.y.tolist(), strict=True))
    return {"query": query.queries[0], "labels": labels, "confidence": [(number + 1) / 20]}


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fp.write_letor(BLANK[:10], "train.txt")
    fp.write_letor(BLANK[10:], "vali.txt")
    fp.write_letor(DATA[:10], "labeled.txt")
    fp.write_letor(DATA[10:], "labeled-vali.txt")
    fp.write_letor(BLANK, "all.txt")
    fp.write_letor(DATA, "all-labeled.txt")
    fp.write_qrels(DATA, "all.qrels")
    fp.write_folds(BLANK, "letor", 3)
    fp.write_folds(DATA, "labeled", 3)
    Path("truth.jsonl").write_text("".join(json.dumps(truth_row(q)) + "\n" for q in range(15)))
    table = "".join(f"{q} 0 {d} 1\n" for q, d in (("1", "0"), ("1", "zz"), ("2", "8")))
    Path("few.qrels").write_text(table)
    Path("none.qrels").write_text("q1 0 doc 1\n")
    return tmp_path


def weights(path: str) -> list[float]:
    return fp.load(path).coef_.tolist()


def test_train_takes_labels_from_judgments(files: Path, run) -> None:
    options = ["--valid", "labeled-vali.txt", "-o", "expected.json"]
    assert run("train", "ListNet", "labeled.txt", *options).returncode == 0
    result = run(
        "train",
        "ListNet",
        "train.txt",
        "--valid",
        "vali.txt",
        "--qrels",
        "all.qrels",
        "-o",
        "m.json",
        "--json",
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[0] == (
        "firstpage: note: train.txt and vali.txt: 120 of 120 documents are judged in all.qrels."
    )
    assert weights("m.json") == weights("expected.json")
    assert json.loads(result.stdout)["score"] == fp.load("expected.json").best_score_


def test_data_without_labels_are_trained_on(files: Path, run) -> None:
    frame = BLANK.to_polars().drop("label")
    frame.write_csv("bare.csv")
    result = run("train", "ListNet", "bare.csv", "--qrels", "all.qrels", "-o", "m.json")
    assert result.returncode == 0, result.stderr
    assert run("train", "ListNet", "bare.csv", "-o", "m.json").returncode == 1


def test_unjudged_and_missing_pairs_are_reported_in_one_line(files: Path, run) -> None:
    for unjudged, label in (("zero", "get label 0"), ("drop", "are dropped")):
        result = run("convert", "all.txt", "o.txt", "--qrels", "few.qrels", "--unjudged", unjudged)
        assert result.returncode == 0, result.stderr
        note, wrote = result.stderr.splitlines()
        assert note.startswith("firstpage: note: all.txt: 2 of 120 documents are judged in few.qr")
        assert f"118 unjudged documents {label} (13 of 15 queries have no judgment" in note
        assert "1 judged pairs of 1 queries have no features, such as document 'zz'" in note
        assert wrote.startswith("wrote Dataset(")
    assert fp.read_letor("o.txt").n_docs == 2


@pytest.mark.parametrize("command", ["train", "crossval", "convert", "describe"])
def test_judgments_that_match_nothing_are_refused(files: Path, run, command: str) -> None:
    arguments = {
        "train": ["train", "ListNet", "all.txt", "-o", "m.json"],
        "crossval": ["crossval", "all.txt", "ListNet"],
        "convert": ["convert", "all.txt", "o.txt"],
        "describe": ["describe", "all.txt"],
    }[command]
    result = run(*arguments, "--qrels", "none.qrels")
    assert result.returncode == 1
    assert result.stderr == (
        "firstpage: error: all.txt and none.qrels share no document: the data have document '0' of "
        "query '1', the judgments document 'doc' of query 'q1'.\n"
    )
    result = run(*arguments, "--unjudged", "drop")
    assert (result.returncode, "--unjudged requires --qrels" in result.stderr) == (2, True)
    result = run(*arguments, "--qrels", "absent.qrels")
    assert result.stderr.startswith("firstpage: error: absent.qrels: no such file.")


def test_crossval_joins_files_and_folders_of_folds(files: Path, run) -> None:
    for blank, labeled, more in (
        ("all.txt", "all-labeled.txt", ["--folds", "3"]),
        ("letor", "labeled", []),
    ):
        expected = run("crossval", labeled, "ListNet", *more, "--json")
        result = run("crossval", blank, "ListNet", *more, "--json", "--qrels", "all.qrels")
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["results"] == json.loads(expected.stdout)["results"]
        assert result.stderr == (
            f"firstpage: note: {blank}: 120 of 120 documents are judged in all.qrels.\n"
        )


def test_describe_counts_the_labels_of_judgments(files: Path, run) -> None:
    expected = json.loads(run("describe", "all-labeled.txt", "--json").stdout)
    result = run("describe", "all.txt", "--json", "--qrels", "truth.jsonl")
    assert json.loads(result.stdout)["labels"] == expected["labels"]
    assert "the confidences of the judgments are not used here" in result.stderr
    result = run("describe", "all.qrels", "--qrels", "all.qrels")
    assert (result.returncode, "all.qrels: has no features" in result.stderr) == (1, True)
    assert run("describe", "truth.jsonl").returncode == 0


def test_confidences_weight_queries_unless_turned_off(files: Path, run) -> None:
    sample = np.arange(1, 16) / 20
    expected = fp.ListNet().fit(DATA, sample_weight=sample).coef_
    result = run("train", "ListNet", "all.txt", "--qrels", "truth.jsonl", "-o", "w.json")
    assert result.returncode == 0, result.stderr
    assert (
        "firstpage: note: truth.jsonl: the confidences of the judgments weight the queries in "
        "training, from 0.05 to 0.75 (--no-confidences turns this off).\n" in result.stderr
    )
    assert weights("w.json") == pytest.approx(expected)
    result = run(
        "train", "ListNet", "all.txt", "--qrels", "truth.jsonl", "--no-confidences", "-o", "m.json"
    )
    assert "are not used here (--no-confidences)." in result.stderr
    assert weights("m.json") == pytest.approx(fp.ListNet().fit(DATA).coef_)
    assert weights("m.json") != pytest.approx(expected)
    result = run("train", "ListNet", "all.txt", "--no-confidences", "-o", "m.json")
    assert (result.returncode, "--no-confidences requires --qrels" in result.stderr) == (2, True)


def test_crossval_weights_queries(files: Path, run) -> None:
    arguments = ["crossval", "all.txt", "ListNet", "--folds", "3", "--json", "--qrels"]
    weighted = run(*arguments, "truth.jsonl")
    assert "weight the queries in training" in weighted.stderr
    plain = run(*arguments, "truth.jsonl", "--no-confidences")
    assert json.loads(plain.stdout) == json.loads(run(*arguments, "all.qrels").stdout)
    assert json.loads(plain.stdout) != json.loads(weighted.stdout)


def test_shards_are_refused_in_one_line(files: Path, run) -> None:
    fp.write_shards("all.txt", "shards")
    fp.ListNet().fit(fp.Synthetic(queries=3, docs=4).dataset()).save("m.json")
    for arguments in (
        ["train", "ListNet", "shards", "-o", "m.json"],
        ["evaluate", "shards", "--model", "m.json"],
    ):
        result = run(*arguments, "--qrels", "all.qrels")
        assert result.returncode == 1
        assert "shards: --qrels needs data in memory, not shards" in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ("all.run", "all.run:1:10: the line has more than the 4 fields"),
        ("train.txt", "train.txt: is LETOR text, which has its own labels"),
        ("ids.txt", "ids.txt: has no document ids"),
    ],
)
def test_wrong_files_are_refused(files: Path, run, qrels: str, message: str) -> None:
    Path("all.run").write_text("1 Q0 a 1 0.5 me\n")
    Path("ids.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    data = "all.txt"
    if qrels == "ids.txt":
        data, qrels = qrels, "all.qrels"
    result = run("train", "ListNet", data, "--qrels", qrels, "-o", "m.json")
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert f"firstpage: error: {message}" in result.stderr
    assert not Path("m.json").exists()


def test_evaluate_and_compare_take_labels_from_judgments(files: Path, run) -> None:
    fp.write_scores(DATA.y, "good.scores")
    fp.write_scores(-DATA.y, "bad.scores")
    expected = run("evaluate", "all-labeled.txt", "--scores", "good.scores", "--json").stdout
    result = run("evaluate", "all.txt", "--qrels", "all.qrels", "--scores", "good.scores", "--json")
    assert json.loads(result.stdout)["measures"] == json.loads(expected)["measures"]
    result = run(
        "compare",
        "all.txt",
        "--qrels",
        "truth.jsonl",
        "--scores",
        "good.scores",
        "--scores",
        "bad.scores",
        "--rounds",
        "100",
    )
    assert result.returncode == 0, result.stderr
    result = run("evaluate", "all.txt", "--qrels", "all.qrels", "--run", "x.run")
    assert (result.returncode, "give the ground truth once" in result.stderr) == (2, True)
    result = run("evaluate", "--scores", "x")
    assert (result.returncode, "give the ground truth" in result.stderr) == (2, True)


def test_truth_files_are_taken_wherever_qrels_are(files: Path, run) -> None:
    fp.write_run(fp.Run.from_dict({q: {d: 1.0} for q, d in (("1", "0"), ("2", "8"))}), "a.run")
    fp.write_run(fp.Run.from_dict({q: {d: 2.0} for q, d in (("1", "1"), ("2", "9"))}), "b.run")
    for arguments in (
        ["evaluate", "--run", "a.run"],
        ["compare", "--run", "a.run", "--run", "b.run", "--rounds", "100"],
        ["aggregate", "a.run", "b.run", "-o", "o.run"],
    ):
        result = run(*arguments, "--qrels", "truth.jsonl")
        assert result.returncode == 0, result.stderr


def test_convert_reads_truth_files(files: Path, run) -> None:
    assert run("convert", "truth.jsonl", "t.qrels").returncode == 0
    assert fp.read_qrels("t.qrels").to_dict() == fp.read_truth("truth.jsonl").to_dict()
    result = run("convert", "truth.jsonl", "t.parquet")
    assert (result.returncode, "Qrels has no features" in result.stderr) == (1, True)


def test_queries_without_judgments_are_not_measured(files: Path, run) -> None:
    fp.write_qrels(fp.read_qrels("all.qrels").select_queries(np.arange(9)), "nine.qrels")
    run("train", "ListNet", "labeled.txt", "-o", "m.json")
    note = "all.txt: 6 of 15 queries are not in the judgments, and not measured."
    result = run("evaluate", "all.txt", "--qrels", "nine.qrels", "--model", "m.json", "--json")
    assert note in result.stderr
    expected = fp.evaluate(fp.load("m.json").predict(DATA[:9]), DATA[:9])["NDCG@10"]
    assert json.loads(result.stdout)["measures"]["NDCG@10"] == pytest.approx(expected)
    result = run(
        "crossval", "all.txt", "ListNet", "--folds", "3", "--qrels", "nine.qrels", "--json"
    )
    assert note in result.stderr
    assert json.loads(result.stdout)["queries"] == 9
    fp.write_scores(DATA.y, "good.scores")
    result = run("evaluate", "all.txt", "--qrels", "nine.qrels", "--scores", "good.scores")
    assert (result.returncode, "--scores of all documents cannot" in result.stderr) == (1, True)


def test_exported_truth_is_read(folder: Path, run) -> None:  # noqa: F811
    run("label", "export", "labels", "-o", "truth.qrels")
    run("label", "export", "labels", "--format", "jsonl", "-o", "truth.jsonl")
    truth = fp.read_truth("truth.jsonl")
    assert truth.to_dict() == fp.read_qrels("truth.qrels").to_dict()
    rows = [json.loads(line) for line in Path("truth.jsonl").read_text().splitlines()]
    assert truth.query_weights is not None
    expected = [np.mean(row["confidence"]) for row in rows]
    assert truth.query_weights.tolist() == pytest.approx(expected)
