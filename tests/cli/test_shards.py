"""`firstpage shard`, and the verbs that take a folder of shards for data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp

DATA = fp.Synthetic(queries=30, docs=12, features=5, seed=1).dataset()


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fp.write_letor(DATA, "train.txt")
    return tmp_path


def test_shard_train_rank_evaluate(here: Path, run) -> None:
    done = run("shard", "train.txt", "shards", "--rows", 100)
    assert done.returncode == 0
    assert "4 shards, 30 queries, 360 documents, 5 features" in done.stderr
    done = run("train", "RankNet(k=5)", "shards", "-o", "far.json", "--engine", "threads")
    assert "30 queries, 360 documents, 5 features" in done.stdout
    run("train", "RankNet(k=5)", "train.txt", "-o", "near.json")
    far, near = fp.load("far.json"), fp.load("near.json")
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-6)
    assert run("rank", "far.json", "shards", "-o", "scores").returncode == 0
    assert np.array_equal(fp.read_scores("scores"), far.predict(fp.read_letor("train.txt")))
    by_scores = run("evaluate", "shards", "--scores", "scores", "--json")
    by_model = run("evaluate", "shards", "--model", "far.json", "--json", "--engine", "threads")
    in_memory = run("evaluate", "train.txt", "--model", "far.json", "--json")
    assert by_scores.stdout == by_model.stdout == in_memory.stdout
    assert json.loads(by_model.stdout)["queries"] == 30


def test_a_checkpoint_by_the_command_line(here: Path, run) -> None:
    done = run("train", "RankSVM", "train.txt", "-o", "m.json", "--checkpoint", "fit.ckpt")
    assert done.returncode == 0
    assert not Path("fit.ckpt").exists()


def test_mistakes_are_one_line(here: Path, run) -> None:
    run("shard", "train.txt", "shards")
    for words, said in (
        (("shard", "train.txt", "shards"), "shards: exists already"),
        (("shard", "nothing.txt", "new"), "nothing.txt: no such file"),
        (("train", "LambdaMART", "shards", "-o", "m.json"), "LightGBM on a Dask cluster"),
        (("train", "RankNet", "train.txt", "-o", "m.json", "--engine", "threads"), "--engine goes"),
        (("train", "RankNet", "shards", "-o", "m.json", "--engine", "x"), "engine must be"),
        (("evaluate", "shards", "--run", "x.run"), "shards go with --scores"),
    ):
        done = run(*words)
        assert done.returncode in (1, 2), words
        assert said in done.stderr
        assert "Traceback" not in done.stderr
