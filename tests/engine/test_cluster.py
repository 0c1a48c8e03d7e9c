"""A cluster of separate processes: the same model to the last bit, whoever comes or dies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import firstpage as fp
from firstpage.engine.dask_worker import held
from firstpage.engine.engine import EngineError
from firstpage.errors import DataError, FirstpageWarning
from tests.dcglearn.reference import random_preferences
from tests.engine.conftest import DATA

pytest.importorskip("distributed")
RANKERS = ["RankNet(k=5)", "RankSVM(k=5)", "Regression(normalize=minmax)", "RankBoost(rounds=8)"]


@pytest.fixture(scope="module")
def local(shards: fp.Shards) -> dict[str, fp.ranker]:
    return {name: fp.ranker(name).fit(shards) for name in RANKERS}


def check(machines, shards, local, workers: int) -> None:
    machines.need(workers)
    for name, near in local.items():
        far = fp.ranker(name).fit(shards, engine=machines.engine)
        assert np.array_equal(far.predict(DATA), near.predict(DATA))
        assert far.objective_ == near.objective_
    values = fp.evaluate(far, shards, engine=machines.engine).values
    assert np.array_equal(values, fp.evaluate(near, shards).values)
    assert np.array_equal(far.predict(shards, engine=machines.engine), near.predict(DATA))


# In this order workers only go: to start one takes seconds.


def test_four_workers_are_as_one_machine(machines, shards, local) -> None:
    check(machines, shards, local, 4)


@pytest.mark.parametrize("name", ["RankNet(k=5)", "RankSVM(k=5)"])
def test_a_worker_that_is_killed_is_made_up_for(machines, shards, local, name: str) -> None:
    machines.need(max(2, len(machines.workers)))
    killed = []

    def kill(step) -> None:
        if step.iteration == 2:
            machines.kill_worker()
            killed.append(step)

    far = fp.ranker(name).fit(shards, engine=machines.engine, progress=kill)
    assert killed
    assert np.array_equal(far.coef_, local[name].coef_)
    assert far.n_iter_ == local[name].n_iter_


def test_preferences_in_files_and_a_worker_that_is_killed(machines, tmp_path: Path) -> None:
    machines.need(max(2, len(machines.workers)))
    for at in range(5):
        pairs = random_preferences(200, seed=at, ties=0.2, strong=0.3)
        fp.write_preferences(pairs, tmp_path / f"{at}.npz")
    near = fp.DCGLearn(K=5, grid=(0.1, 1.0), folds=3).fit(tmp_path)
    killed = []

    def kill(done: int, total: int) -> None:
        if done == 2:
            machines.kill_worker()
            killed.append(done)

    far = fp.DCGLearn(K=5, grid=(0.1, 1.0), folds=3).fit(
        tmp_path, engine=machines.engine, progress=kill
    )
    assert killed
    assert np.array_equal(far.weights_, near.weights_)
    assert np.array_equal(far.path_.accuracies, near.path_.accuracies)
    assert far.matches_ == near.matches_
    assert machines.ask(held) == [0] * len(machines.workers)


def test_two_workers_are_as_one_machine(machines, shards, local) -> None:
    check(machines, shards, local, 2)


def test_a_job_that_is_done_leaves_nothing(machines, shards) -> None:
    machines.need(2)
    seen = []
    fp.ListNet().fit(
        shards, engine=machines.engine,
        progress=lambda step: seen.append(machines.ask(held)) if not seen else None,
    )  # fmt: skip
    assert sum(seen[0]) == len(shards)  # every part was with one worker
    assert max(seen[0]) <= -(-len(shards) // 2)  # and they shared
    assert machines.ask(held) == [0, 0]


def test_all_workers_that_die_at_once_are_made_up_for(machines, shards, local, monkeypatch) -> None:
    """Others come in the middle of a call, when nobody of the old ones is left."""
    monkeypatch.setattr("firstpage.engine.dask_cluster.GLANCE", 0.2)
    machines.need(2)
    after: list[Thread] = []

    def kill(step) -> None:
        if step.iteration == 2:
            while machines.workers:
                machines.kill_worker()
            after.append(Thread(target=machines.need, args=(1,)))
            after[0].start()

    name = "RankNet(k=5)"
    far = fp.ranker(name).fit(shards, engine=machines.engine, progress=kill)
    after[0].join()
    assert np.array_equal(far.coef_, local[name].coef_)


def test_one_worker_is_as_one_machine(machines, shards, local) -> None:
    check(machines, shards, local, 1)


def test_a_cluster_by_the_command_line(machines, shards, local, tmp_path: Path) -> None:
    machines.need(1)
    model = tmp_path / "far.json"
    for words in (
        ("train", "RankNet(k=5)", shards.folder, "-o", model),
        ("evaluate", shards.folder, "--model", model, "-m", "NDCG@5"),
        ("rank", model, shards.folder, "-o", tmp_path / "scores.txt"),
    ):
        asked = [sys.executable, "-m", "firstpage", *map(str, words), "--engine", machines.engine]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "distributed" not in done.stderr  # whose log nobody asked for
    near = local["RankNet(k=5)"]
    assert np.array_equal(fp.load(model).predict(DATA), near.predict(DATA))
    assert np.loadtxt(tmp_path / "scores.txt") == pytest.approx(near.predict(DATA))


def test_workers_have_folders_of_their_own_at_hand(machines, shards, local, monkeypatch) -> None:
    machines.need(1)
    monkeypatch.chdir(shards.folder.parent)
    far = fp.ListNet().fit(fp.read_shards("s"), engine=machines.engine)
    assert np.array_equal(
        far.predict(fp.read_shards("s"), engine=machines.engine), far.predict(DATA)
    )
    assert fp.evaluate(far, fp.read_shards("s"), engine=machines.engine)["NDCG@10"] > 0.5


def test_what_goes_wrong_on_a_worker_is_said_here(machines, tmp_path: Path) -> None:
    machines.need(1)
    shards = fp.write_shards(DATA, tmp_path / "s", rows=300)
    (tmp_path / "s" / "00001" / "X.npy").unlink()
    with pytest.raises(DataError, match=r"on the worker tcp.*X\.npy: is missing"):
        fp.RankNet().fit(shards, engine=machines.engine)


@pytest.mark.slow
def test_no_scheduler_is_one_clear_line(shards, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.engine.dask_cluster.TIMEOUT", 0.5)
    with pytest.raises(EngineError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        fp.RankNet().fit(shards, engine="dask://127.0.0.1:9")


def test_no_workers_is_one_clear_line(machines, shards, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.engine.dask_cluster.PATIENCE", 0.3)
    machines.need(0)
    with pytest.raises(EngineError, match="has no workers; start some with `dask worker"):
        fp.RankNet().fit(shards, engine=machines.engine)


@pytest.mark.parametrize("name", ["RankNet(k=5)"])
def test_a_scheduler_that_dies_leaves_a_checkpoint(
    machines, shards, local, name, tmp_path, monkeypatch, capfd
) -> None:
    monkeypatch.setattr("firstpage.engine.dask_cluster.TIMEOUT", 3.0)
    machines.need(1)
    file = tmp_path / "fit.ckpt"

    def kill(step) -> None:
        if step.iteration == 3:
            machines.kill_scheduler()

    with pytest.raises(EngineError, match=r"went away\. Start it again and fit again") as error:
        fp.ranker(name).fit(shards, engine=machines.engine, checkpoint=file, progress=kill)
    assert "\n" not in str(error.value)
    assert "Traceback" not in capfd.readouterr().err
    assert file.exists()
    machines.start()
    machines.need(1)
    with pytest.warns(FirstpageWarning, match="continuing from"):
        far = fp.ranker(name).fit(shards, engine=machines.engine, checkpoint=file)
    assert far.objective_ == pytest.approx(local[name].objective_, rel=1e-7)
    assert not file.exists()
