"""Tests of `firstpage shard`, and of the commands that take a folder of shards as data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import firstpage as fp
from tests.narrow import dense

DATA = fp.Synthetic(queries=30, docs=12, features=5, seed=1).dataset()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fp.write_letor(DATA, "train.txt")
    return tmp_path


@pytest.mark.filterwarnings("ignore:.*not adjacent")
def test_scores_of_a_folder_are_in_the_order_of_its_lines(folder: Path, run) -> None:
    lines = Path("train.txt").read_text().splitlines()
    order = np.random.default_rng(0).permutation(120)  # of the first ten queries
    Path("mixed").mkdir()
    Path("mixed/a.txt").write_text("\n".join([*(lines[i] for i in order), ""]))
    Path("mixed/b.txt").write_text("\n".join([*lines[120:], ""]))
    assert run("train", "ListNet", "train.txt", "-o", "m.json").returncode == 0
    expected = fp.load("m.json").predict(fp.read_letor("train.txt"))
    assert run("rank", "m.json", "mixed", "-o", "scores").returncode == 0
    scores = fp.read_scores("scores")
    np.testing.assert_allclose(scores, [*expected[order], *expected[120:]])
    measured = [
        run("evaluate", *arguments, "--json").stdout
        for arguments in (("mixed", "--scores", "scores"), ("train.txt", "--model", "m.json"))
    ]
    first, second = (json.loads(text)["measures"] for text in measured)
    assert first == pytest.approx(second)  # the queries are summed in another order


def test_shards_give_the_results_of_the_file(folder: Path, run) -> None:
    result = run("shard", "train.txt", "shards", "--rows", 100)
    assert result.returncode == 0
    assert "4 shards, 30 queries, 360 documents, 5 features" in result.stderr
    result = run("train", "RankNet(k=5)", "shards", "-o", "sharded.json", "--engine", "threads")
    assert "30 queries, 360 documents, 5 features" in result.stdout
    run("train", "RankNet(k=5)", "train.txt", "-o", "unsharded.json")
    sharded, unsharded = fp.load("sharded.json"), fp.load("unsharded.json")
    assert sharded.objective_ == pytest.approx(unsharded.objective_, rel=1e-6)
    assert run("rank", "sharded.json", "shards", "-o", "scores").returncode == 0
    assert np.array_equal(fp.read_scores("scores"), sharded.predict(fp.read_letor("train.txt")))
    by_scores = run("evaluate", "shards", "--scores", "scores", "--json")
    by_model = run("evaluate", "shards", "--model", "sharded.json", "--json", "--engine", "threads")
    in_memory = run("evaluate", "train.txt", "--model", "sharded.json", "--json")
    assert by_scores.stdout == by_model.stdout == in_memory.stdout
    assert json.loads(by_model.stdout)["queries"] == 30


def test_shards_are_read_as_one_data_set(folder: Path, run) -> None:
    run("shard", "train.txt", "shards", "--rows", 100)
    assert "30" in run("describe", "shards").stdout
    assert run("convert", "shards", "back.txt").returncode == 0
    assert np.array_equal(dense(fp.read_letor("back.txt").X), dense(fp.read_letor("train.txt").X))
    result = run("train", "ListNet", "train.txt", "--valid", "shards", "-o", "m.json")
    assert "on validation data" in result.stdout
    result = run("shard", "shards", "again", "--rows", 200)
    assert result.stderr.startswith("wrote Shards(again: 2 shards, 30 queries")


def test_features_of_shards_count_from_0_where_those_of_the_text_do(folder: Path, run) -> None:
    lines = [
        f"{q % 2 + d % 2} qid:{q} 0:{d} 1:{q * d % 5} 2:{d % 3}\n"
        for q in range(6)
        for d in range(4)
    ]
    Path("zero.txt").write_text("".join(lines))
    Path("test").mkdir()
    Path("test/a.txt").write_text("1 qid:7 1:3 2:1\n0 qid:7 1:1 2:2\n")  # no feature 0
    run("shard", "zero.txt", "shards", "--rows", 8)
    run("train", "ListNet", "shards", "--valid", "test/a.txt", "-o", "m.json")
    documents = fp.Dataset.from_arrays([[0, 3, 1], [0, 1, 2]], [1, 0], [7, 7])
    expected = fp.load("m.json").predict(documents)
    for path in ("test/a.txt", "test"):
        run("rank", "m.json", path, "--pad", "-o", "scores")
        assert fp.read_scores("scores") == pytest.approx(expected)
    measured = run("evaluate", "test", "--model", "m.json", "--pad", "-m", "P@1")
    assert "1.0000" in measured.stdout if expected[0] > expected[1] else "0.0000" in measured.stdout
    run("shard", "test/a.txt", "ones")
    result = run("rank", "m.json", "ones", "--pad", "-o", "scores")
    assert "ones: its features count from 1, and those of other data from 0" in result.stderr


def test_folder_without_labels_is_ranked(folder: Path, run) -> None:
    run("train", "ListNet", "train.txt", "-o", "m.json")
    Path("unlabeled").mkdir()
    table = {"qid": DATA.qid, **{f"f{i + 1}": DATA.X[:, i] for i in range(5)}}
    pq.write_table(pa.table(table), "unlabeled/a.parquet")
    assert run("rank", "m.json", "unlabeled", "-o", "scores").returncode == 0
    assert fp.read_scores("scores") == pytest.approx(fp.load("m.json").predict(DATA))


def test_checkpoint_is_removed_after_training(folder: Path, run) -> None:
    result = run("train", "RankSVM", "train.txt", "-o", "m.json", "--checkpoint", "fit.ckpt")
    assert result.returncode == 0
    assert not Path("fit.ckpt").exists()


def test_errors_are_one_line(folder: Path, run) -> None:
    run("shard", "train.txt", "shards")
    for arguments, message in (
        (("shard", "train.txt", "shards"), "shards: exists already"),
        (("shard", "nothing.txt", "new"), "nothing.txt: no such file"),
        (("train", "LambdaMART", "shards", "-o", "m.json"), "LightGBM on a Dask cluster"),
        (
            ("train", "RankNet", "train.txt", "-o", "m.json", "--engine", "threads"),
            "--engine requires",
        ),
        (("train", "RankNet", "shards", "-o", "m.json", "--engine", "x"), "engine must be"),
        (("evaluate", "shards", "--run", "x.run"), "shards go with --scores"),
        (("shard", "train.txt", "-"), "give a name instead of -"),
        (("describe", "shards", "--categorical", "f1"), "--categorical needs a data file"),
    ):
        result = run(*arguments)
        assert result.returncode in (1, 2), arguments
        assert message in result.stderr
        assert "Traceback" not in result.stderr
