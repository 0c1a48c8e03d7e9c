"""Trees over shards: LightGBM's cluster training, with its objective and with ours."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from sklearn.base import clone

import firstpage as fp
from firstpage.core.engine.engine import EngineError
from firstpage.core.errors import DataError
from firstpage.data.ids import Ids
from firstpage.learning.rankers.fit.progress import Step
from firstpage.learning.scorers.tree_scoring import TreesScoring
from firstpage.learning.scorers.trees import Trees
from tests.core.engine.dask_processes import DaskProcesses
from tests.narrow import dense, instance, present
from tests.patience import PATIENCE

pytest.importorskip("distributed")
pytest.importorskip("lightgbm")

TRAIN = fp.Synthetic(queries=120, docs="uniform(4, 30)", features=7, seed=3).dataset()
# Workers have 255 bins, and so has one machine here.
TREES = "trees(count=15, leaves=7, min_docs=5, rate=0.1, forests=1, options={'max_bin': 255})"
RANKERS = {
    "lambdarank": f"LambdaMART(k=5, scorer={TREES})",
    "its gains": f"LambdaMART(k=5, scorer={TREES}, gain=[0, 1, 2, 3, 9])",
    "listwise": f"ListMLE(k=5, scorer={TREES})",
    "pairwise, scaled": f"RankNet(k=5, scorer={TREES}, normalize=minmax)",
    "ties broken": f"ListMLE(k=5, scorer={TREES}, ties=random)",
}


@pytest.fixture(scope="module")
def one_uninformative_query() -> fp.Dataset:
    y = TRAIN.y.copy()
    y[TRAIN.offsets[7] : TRAIN.offsets[8]] = 2.0
    return replace(TRAIN, y=y)


@pytest.fixture(scope="module")
def tree_shards(one_uninformative_query, tmp_path_factory) -> fp.Shards:
    return fp.write_shards(
        one_uninformative_query, tmp_path_factory.mktemp("shards") / "s", rows=500
    )


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1])


# In this order workers are only killed: to start one takes seconds.


@pytest.mark.parametrize("name", RANKERS)
def test_two_workers_learn_nearly_the_same_model(
    name, cluster, tree_shards, one_uninformative_query, capfd
) -> None:
    """LightGBM estimates the documents of a leaf from curvatures: the trees are not identical."""
    cluster.require_workers(2)
    remote = fp.ranker(RANKERS[name]).fit(tree_shards, engine=cluster.engine)
    assert not capfd.readouterr().out
    in_memory = fp.ranker(RANKERS[name]).fit(one_uninformative_query)
    assert remote.n_iter_ == in_memory.n_iter_ == 15
    assert correlation(remote.predict(TRAIN), in_memory.predict(TRAIN)) > 0.95
    score = fp.evaluate(remote, tree_shards, measures="NDCG@10", engine=cluster.engine)["NDCG@10"]
    assert score == pytest.approx(in_memory.score(one_uninformative_query), abs=0.02)


@pytest.mark.parametrize(
    "options", ["{'max_bin': 255}", "{'max_bin': 255, 'bin_construct_sample_cnt': 300}"]
)
@pytest.mark.parametrize("sparse", [False, True])
def test_workers_choose_the_thresholds_of_one_machine(cluster, sparse, options, tmp_path) -> None:
    """Squared errors have equal curvatures, so that the trees are identical up to rounding."""
    from scipy.sparse import csr_array

    cluster.require_workers(2)
    X = np.where(dense(TRAIN.X) > 0, dense(TRAIN.X), 0)
    data = replace(TRAIN, X=csr_array(X) if sparse else X)
    ranker = fp.Regression(
        scorer=f"trees(count=3, leaves=7, rate=0.1, forests=1, options={options})"
    )
    remote = clone(ranker).fit(
        fp.write_shards(data, tmp_path / "s", rows=500), engine=cluster.engine
    )
    assert remote.predict(data) == pytest.approx(ranker.fit(data).predict(data), abs=1e-6)


@pytest.mark.filterwarnings("ignore:.*validation queries are also in the training data")
def test_validation_chooses_the_number_of_trees(cluster, tree_shards) -> None:
    cluster.require_workers(2)
    valid = TRAIN[:30]
    noisy = replace(valid, y=np.random.default_rng(0).permutation(valid.y))
    steps: list[Step] = []
    remote = fp.ranker(RANKERS["listwise"], measure="NDCG@5").fit(
        tree_shards, engine=cluster.engine, valid=noisy, progress=steps.append
    )
    values = [present(step.measure) for step in steps]
    assert remote.best_iteration_ == 1 + int(np.argmax(values))
    assert instance(TreesScoring, remote.model_).text.count("\nTree=") == remote.best_iteration_
    assert remote.score(noisy) == pytest.approx(max(values))


def test_the_model_can_be_saved_and_exported(cluster, tree_shards, tmp_path: Path) -> None:
    cluster.require_workers(2)
    remote = fp.ranker(RANKERS["lambdarank"]).fit(tree_shards, engine=cluster.engine)
    remote.save(tmp_path / "model.json")
    again = fp.load(tmp_path / "model.json")
    assert np.array_equal(again.predict(TRAIN), remote.predict(TRAIN))
    assert fp.export(remote, "lightgbm").files


def test_library_parameters_and_a_shard_without_documents(cluster, tmp_path: Path) -> None:
    cluster.require_workers(2)
    empty = replace(TRAIN[:0], offsets=np.zeros(4, int), queries=Ids.from_values(["x", "y", "z"]))
    tree_shards = fp.write_shards(iter([TRAIN, empty]), tmp_path / "s", rows=TRAIN.n_docs)
    assert [shard.rows for shard in tree_shards.shards] == [TRAIN.n_docs, 0]
    trees = Trees(
        count=5, forests=1, options={"verbosity": -1, "max_depth": 1, "deterministic": False}
    )
    remote = fp.ListMLE(scorer=trees).fit(tree_shards, engine=cluster.engine)
    assert instance(TreesScoring, remote.model_).text.count("num_leaves=2\n") == 5


@pytest.mark.parametrize(
    ("y", "name", "message"),
    [
        (TRAIN.y + 0.5, "lambdarank", "integer labels from 0 to 30"),
        (TRAIN.y + 3, "its gains", "the data hold a label"),
        (TRAIN.y + 1e-9 * np.arange(len(TRAIN.y)), "listwise", "stores labels in 32 bits"),
    ],
)
def test_labels_that_lightgbm_cannot_use_are_refused(
    cluster, y, name, message, tmp_path: Path
) -> None:
    cluster.require_workers(2)
    bad = fp.write_shards(replace(TRAIN, y=y), tmp_path / "s", rows=500)
    with pytest.raises(DataError, match=message) as error:
        fp.ranker(RANKERS[name]).fit(bad, engine=cluster.engine)
    assert "\n" not in str(error.value)


ENDLESS = "ListMLE(scorer='trees(count=1000000, leaves=7)')"


def during_growth(cluster: DaskProcesses, action: Callable[[], object]) -> Thread:
    """Start a thread that waits for all workers to grow trees, and then acts."""
    from distributed import Client

    def is_growing() -> bool:  # not a function of this module, which workers cannot import
        import sys
        from traceback import walk_stack

        stacks = [walk_stack(frame) for frame in sys._current_frames().values()]
        return any(frame.f_code.co_name == "boost" for stack in stacks for frame, _ in stack)

    def wait_and_act() -> None:
        with Client(f"tcp://127.0.0.1:{cluster.port}", set_as_default=False) as client:
            deadline = time.time() + PATIENCE
            while not all(client.run(is_growing).values()):
                assert time.time() < deadline
                time.sleep(0.05)
        action()

    thread = Thread(target=wait_and_act)
    thread.start()
    return thread


def test_an_interrupted_fit_stops_on_the_workers(cluster, tree_shards, capfd) -> None:
    cluster.require_workers(2)
    main = present(threading.main_thread().ident)
    interrupter = during_growth(cluster, lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        fp.ranker(ENDLESS).fit(tree_shards, engine=cluster.engine)
    interrupter.join()
    assert fp.ranker(RANKERS["listwise"]).fit(tree_shards, engine=cluster.engine).n_iter_ == 15
    assert "Traceback" not in capfd.readouterr().err


def test_a_lost_worker_ends_the_fit_with_an_error_of_one_line(cluster, tree_shards) -> None:
    cluster.require_workers(2)
    check_lost_worker(cluster, tree_shards)


def check_lost_worker(cluster: DaskProcesses, tree_shards: fp.Shards) -> None:
    killer = during_growth(cluster, cluster.kill_worker)
    with pytest.raises(EngineError, match=r"^a worker of tcp.* was lost.*; fit again\.$"):
        fp.ranker(ENDLESS).fit(tree_shards, engine=cluster.engine)
    killer.join()


@pytest.mark.parametrize("name", RANKERS)
def test_one_worker_learns_the_model_of_one_machine(name, cluster, tmp_path) -> None:
    """Of queries that say something: one machine leaves the others out, a worker keeps them."""
    cluster.require_workers(1)
    data = TRAIN[[len(np.unique(query.y)) > 1 for query in TRAIN]]
    shards = fp.write_shards(data, tmp_path / "s", rows=500)
    remote = fp.ranker(RANKERS[name]).fit(shards, engine=cluster.engine)
    in_memory = fp.ranker(RANKERS[name]).fit(data)
    assert remote.predict(TRAIN) == pytest.approx(in_memory.predict(TRAIN), abs=1e-6)


@pytest.mark.parametrize("name", ["lambdarank", "listwise"])
def test_trees_over_shards_need_a_cluster(name, tree_shards) -> None:
    with pytest.raises(DataError, match=r"over shards, trees are grown by LightGBM on a Dask"):
        fp.ranker(RANKERS[name]).fit(tree_shards)


def test_xgboost_and_checkpoints_are_refused_on_a_cluster(
    cluster, tree_shards, tmp_path: Path
) -> None:
    cluster.require_workers(1)
    with pytest.raises(DataError, match="or with XGBoost, they grow in memory"):
        fp.ListMLE(scorer="trees(library='xgboost')").fit(tree_shards, engine=cluster.engine)
    with pytest.raises(DataError, match="trees do not support checkpoints"):
        fp.ranker(RANKERS["listwise"]).fit(
            tree_shards, engine=cluster.engine, checkpoint=tmp_path / "fit.ckpt"
        )


def test_the_loss_of_the_only_worker_ends_the_fit(cluster, tree_shards, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.core.engine.dask_cluster.POLL_INTERVAL", 0.2)
    cluster.require_workers(1)
    check_lost_worker(cluster, tree_shards)
