"""A cluster of separate processes: the same model to the last bit, even if workers die."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.engine.dask_worker import open_shard_count
from firstpage.core.engine.engine import EngineError
from firstpage.core.errors import DataError, FirstpageWarning
from tests.core.engine.conftest import DATA

pytest.importorskip("distributed")
RANKERS = [
    "RankNet(k=5)",
    "RankSVM(k=5)",
    "Regression(normalize=minmax)",
    "RankBoost(rounds=4)",
    "PLRank(k=5, samples=2, solver='gd(rate=1, max_iter=5)')",
    "LambdaRank(solver='adam(rate=0.05, batch=20, max_iter=2, whiten=true)')",
]


@pytest.fixture(scope="module")
def local_models(shards: fp.Shards) -> dict[str, fp.Ranker]:
    return {name: fp.ranker(name).fit(shards) for name in RANKERS}


def check(cluster, shards, local_models, workers: int) -> None:
    cluster.require_workers(workers)
    for name, local_model in local_models.items():
        remote = fp.ranker(name).fit(shards, engine=cluster.engine)
        assert np.array_equal(remote.predict(DATA), local_model.predict(DATA))
        assert remote.objective_ == local_model.objective_
    values = fp.evaluate(remote, shards, engine=cluster.engine).values
    assert np.array_equal(values, fp.evaluate(local_model, shards).values)
    assert np.array_equal(remote.predict(shards, engine=cluster.engine), local_model.predict(DATA))


# In this order few workers are started, which takes seconds.


def test_four_workers_give_the_model_of_one_machine(cluster, shards, local_models) -> None:
    check(cluster, shards, local_models, 4)


@pytest.mark.parametrize("name", [RANKERS[0], RANKERS[1], RANKERS[4]])
def test_a_killed_worker_changes_nothing(cluster, shards, local_models, name: str) -> None:
    cluster.require_workers(max(2, len(cluster.workers)))
    killed = []

    def kill(step) -> None:
        if step.iteration == 2:
            cluster.kill_worker()
            killed.append(step)

    remote = fp.ranker(name).fit(shards, engine=cluster.engine, progress=kill)
    assert killed
    assert np.array_equal(remote.coef_, local_models[name].coef_)
    assert remote.n_iter_ == local_models[name].n_iter_


def test_two_workers_give_the_model_of_one_machine(cluster, shards, local_models) -> None:
    check(cluster, shards, local_models, 2)


def test_a_finished_job_leaves_no_open_shards(cluster, shards) -> None:
    cluster.require_workers(2)
    counts: list[list[int]] = []
    fp.ListNet().fit(
        shards,
        engine=cluster.engine,
        progress=lambda step: (
            counts.append(cluster.run_on_workers(open_shard_count)) if not counts else None
        ),
    )
    assert sum(counts[0]) == len(shards)  # every shard was open on one worker
    assert max(counts[0]) <= -(-len(shards) // 2)  # evenly distributed
    assert cluster.run_on_workers(open_shard_count) == [0, 0]


def test_one_worker_gives_the_model_of_one_machine(cluster, shards, local_models) -> None:
    check(cluster, shards, local_models, 1)


EVERY_COMMAND = """
import json, sys
from firstpage.cli import main

for line in sys.stdin:
    sys.argv = ["firstpage", *json.loads(line)]
    try:
        main()
    except SystemExit as stop:
        print(f"exit {stop.code}", file=sys.stderr)
"""


def test_the_command_line_uses_a_cluster(cluster, shards, local_models, tmp_path: Path) -> None:
    cluster.require_workers(1)
    model = tmp_path / "remote.json"
    commands = (
        ("train", "RankNet(k=5)", shards.folder, "-o", model),
        ("evaluate", shards.folder, "--model", model, "-m", "NDCG@5"),
        ("rank", model, shards.folder, "-o", tmp_path / "scores.txt"),
    )
    lines = [json.dumps([*map(str, words), "--engine", cluster.engine]) for words in commands]
    done = subprocess.run(
        [sys.executable, "-c", EVERY_COMMAND],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("exit 0\n") == len(commands), done.stderr
    assert "distributed" not in done.stderr  # its log is silenced
    local_model = local_models["RankNet(k=5)"]
    assert np.array_equal(fp.load(model).predict(DATA), local_model.predict(DATA))
    assert np.loadtxt(tmp_path / "scores.txt") == pytest.approx(local_model.predict(DATA))


def test_workers_resolve_relative_folders(cluster, shards, local_models, monkeypatch) -> None:
    cluster.require_workers(1)
    monkeypatch.chdir(shards.folder.parent)
    remote = fp.ListNet().fit(fp.read_shards("s"), engine=cluster.engine)
    assert np.array_equal(
        remote.predict(fp.read_shards("s"), engine=cluster.engine), remote.predict(DATA)
    )
    assert fp.evaluate(remote, fp.read_shards("s"), engine=cluster.engine)["NDCG@10"] > 0.5


def test_errors_on_a_worker_are_raised_here(cluster, tmp_path: Path) -> None:
    cluster.require_workers(1)
    shards = fp.write_shards(DATA, tmp_path / "s", rows=300)
    (tmp_path / "s" / "00001" / "X.npy").unlink()
    with pytest.raises(DataError, match=r"on the worker tcp.*X\.npy: is missing"):
        fp.RankNet().fit(shards, engine=cluster.engine)


def test_new_workers_replace_all_that_died_at_once(
    cluster, shards, local_models, monkeypatch
) -> None:
    """New workers come in the middle of a call, when all the old ones are gone."""
    monkeypatch.setattr("firstpage.core.engine.dask_cluster.POLL_INTERVAL", 0.2)
    cluster.require_workers(2)
    starting: list[Thread] = []

    def kill(step) -> None:
        if step.iteration == 2:
            while cluster.workers:
                cluster.kill_worker()
            starting.append(Thread(target=cluster.require_workers, args=(1,)))
            starting[0].start()

    name = "RankNet(k=5)"
    remote = fp.ranker(name).fit(shards, engine=cluster.engine, progress=kill)
    starting[0].join()
    assert np.array_equal(remote.coef_, local_models[name].coef_)


def test_a_missing_scheduler_is_reported_in_one_line(shards, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.core.engine.dask_cluster.CONNECT_TIMEOUT", 0.5)
    with pytest.raises(EngineError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        fp.RankNet().fit(shards, engine="dask://127.0.0.1:9")


@pytest.mark.parametrize("name", ["RankNet(k=5)"])
def test_a_lost_scheduler_leaves_a_checkpoint(
    cluster, shards, local_models, name, tmp_path, monkeypatch, capfd
) -> None:
    cluster.require_workers(1)
    file = tmp_path / "fit.ckpt"

    def kill(step) -> None:
        if step.iteration == 3:
            cluster.kill_scheduler()

    with (
        monkeypatch.context() as patch,
        pytest.raises(
            EngineError, match=r"was lost\. Start it again and fit again\. With checkpoint="
        ) as error,
    ):
        patch.setattr("firstpage.core.engine.dask_cluster.CONNECT_TIMEOUT", 3.0)
        fp.ranker(name).fit(shards, engine=cluster.engine, checkpoint=file, progress=kill)
    assert "\n" not in str(error.value)
    assert "Traceback" not in capfd.readouterr().err
    assert file.exists()
    cluster.start()
    cluster.require_workers(1)
    with pytest.warns(FirstpageWarning, match="continuing from"):
        remote = fp.ranker(name).fit(shards, engine=cluster.engine, checkpoint=file)
    assert remote.objective_ == pytest.approx(local_models[name].objective_, rel=1e-7)
    assert not file.exists()


def test_missing_workers_are_reported_in_one_line(cluster, shards, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.core.engine.dask_cluster.WORKER_TIMEOUT", 0.3)
    cluster.require_workers(0)
    with pytest.raises(EngineError, match="has no workers; start some with `dask worker"):
        fp.RankNet().fit(shards, engine=cluster.engine)
