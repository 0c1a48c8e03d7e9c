"""Trees over shards: LightGBM's own cluster training, with its objective and with ours."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.ids import Ids
from firstpage.engine.engine import EngineError
from firstpage.errors import DataError
from firstpage.scorers.trees import Trees
from tests.engine.machines import Machines
from tests.patience import PATIENCE

pytest.importorskip("distributed")
pytest.importorskip("lightgbm")

TRAIN = fp.Synthetic(queries=120, docs="uniform(4, 30)", features=7, seed=3).dataset()
TREES = "trees(count=15, leaves=7, min_docs=5)"
RANKERS = {
    "lambdarank": f"LambdaMART(k=5, scorer={TREES})",
    "its gains": f"LambdaMART(k=5, scorer={TREES}, gain=[0, 1, 2, 3, 9])",
    "listwise": f"ListMLE(k=5, scorer={TREES})",
    "pairwise, scaled": f"RankNet(k=5, scorer={TREES}, normalize=minmax)",
    "ties broken": f"ListMLE(k=5, scorer={TREES}, ties=random)",
}


@pytest.fixture(scope="module")
def one_query_is_flat() -> fp.Dataset:
    y = TRAIN.y.copy()
    y[TRAIN.offsets[7] : TRAIN.offsets[8]] = 2.0
    return replace(TRAIN, y=y)


@pytest.fixture(scope="module")
def cut(one_query_is_flat, tmp_path_factory) -> fp.Shards:
    return fp.write_shards(one_query_is_flat, tmp_path_factory.mktemp("cut") / "s", rows=500)


def agreeing(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1])


# In this order workers only go: to start one takes seconds.


@pytest.mark.parametrize("name", RANKERS)
def test_two_workers_learn_much_the_same(name, machines, cut, one_query_is_flat, capfd) -> None:
    """Each finds the bins of some features, from the documents that it has: not the same trees."""
    machines.need(2)
    far = fp.ranker(RANKERS[name]).fit(cut, engine=machines.engine)
    assert not capfd.readouterr().out
    near = fp.ranker(RANKERS[name]).fit(one_query_is_flat)
    assert far.n_iter_ == near.n_iter_ == 15
    assert agreeing(far.predict(TRAIN), near.predict(TRAIN)) > 0.95
    score = fp.evaluate(far, cut, measures="NDCG@10", engine=machines.engine)["NDCG@10"]
    assert score == pytest.approx(near.score(one_query_is_flat), abs=0.02)


def test_validation_tells_how_many_trees_to_keep(machines, cut) -> None:
    machines.need(2)
    valid = TRAIN[:30]
    noisy = replace(valid, y=np.random.default_rng(0).permutation(valid.y))
    seen = []
    far = fp.ranker(RANKERS["listwise"], measure="NDCG@5").fit(
        cut, engine=machines.engine, valid=noisy, callback=seen.append
    )
    values = [step.measure for step in seen]
    assert far.best_iteration_ == 1 + int(np.argmax(values))
    assert far.model_.text.count("\nTree=") == far.best_iteration_
    assert far.score(noisy) == pytest.approx(max(values))


def test_the_model_is_one_like_any_other(machines, cut, tmp_path: Path) -> None:
    machines.need(2)
    far = fp.ranker(RANKERS["lambdarank"]).fit(cut, engine=machines.engine)
    far.save(tmp_path / "model.json")
    again = fp.load(tmp_path / "model.json")
    assert np.array_equal(again.predict(TRAIN), far.predict(TRAIN))
    assert fp.export(far, "lightgbm").files


def test_sparse_shards(machines, tmp_path: Path) -> None:
    from scipy.sparse import csr_array

    machines.need(2)
    X = np.where(TRAIN.X > 0, TRAIN.X, 0)
    sparse = fp.write_shards(replace(TRAIN, X=csr_array(X)), tmp_path / "s", rows=500)
    far = fp.ranker(RANKERS["listwise"]).fit(sparse, engine=machines.engine)
    near = fp.ranker(RANKERS["listwise"]).fit(replace(TRAIN, X=X))
    assert agreeing(far.predict(replace(TRAIN, X=X)), near.predict(replace(TRAIN, X=X))) > 0.97


def test_parameters_as_lightgbm_calls_them_and_a_shard_without_documents(
    machines, tmp_path: Path
) -> None:
    machines.need(2)
    none = replace(TRAIN[:0], offsets=np.zeros(4, int), queries=Ids.from_values(["x", "y", "z"]))
    cut = fp.write_shards(iter([TRAIN, none]), tmp_path / "s", rows=TRAIN.n_docs)
    assert [shard.rows for shard in cut.shards] == [TRAIN.n_docs, 0]
    trees = Trees(count=5, options={"verbosity": -1, "max_depth": 1, "deterministic": False})
    far = fp.ListMLE(scorer=trees).fit(cut, engine=machines.engine)
    assert far.model_.text.count("num_leaves=2\n") == 5


@pytest.mark.parametrize(
    ("y", "name", "said"),
    [
        (TRAIN.y + 0.5, "lambdarank", "whole labels from 0 to 30"),
        (TRAIN.y + 3, "its gains", "the data hold a label"),
        (TRAIN.y + 1e-9 * np.arange(len(TRAIN.y)), "listwise", "keeps labels in 32 bits"),
    ],
)
def test_labels_that_lightgbm_cannot_learn_from(machines, y, name, said, tmp_path: Path) -> None:
    machines.need(2)
    bad = fp.write_shards(replace(TRAIN, y=y), tmp_path / "s", rows=500)
    with pytest.raises(DataError, match=said) as error:
        fp.ranker(RANKERS[name]).fit(bad, engine=machines.engine)
    assert "\n" not in str(error.value)


def test_a_worker_that_dies_ends_the_fit_with_one_clear_line(machines, cut) -> None:
    machines.need(2)
    killer = threading.Thread(target=kill_in_mid_fit, args=(machines,))
    killer.start()
    with pytest.raises(EngineError, match=r"a worker of tcp.* went away.*; fit again\."):
        fp.ListMLE(scorer="trees(count=20000, leaves=7)").fit(cut, engine=machines.engine)
    killer.join()


def kill_in_mid_fit(machines: Machines) -> None:
    from distributed import Client

    with Client(f"tcp://127.0.0.1:{machines.port}", set_as_default=False) as client:
        until = time.time() + PATIENCE
        while sum("_train_part" in str(keys) for keys in client.processing().values()) < 2:
            assert time.time() < until
            time.sleep(0.1)
    time.sleep(1)
    machines.kill_worker()


@pytest.mark.parametrize("name", RANKERS)
def test_one_worker_learns_what_one_machine_does(name, machines, cut, one_query_is_flat) -> None:
    machines.need(1)
    far = fp.ranker(RANKERS[name]).fit(cut, engine=machines.engine)
    near = fp.ranker(RANKERS[name]).fit(one_query_is_flat)
    assert far.predict(TRAIN) == pytest.approx(near.predict(TRAIN), abs=1e-6)


@pytest.mark.parametrize("name", ["lambdarank", "listwise"])
def test_on_one_machine_trees_grow_in_memory(name, cut) -> None:
    with pytest.raises(DataError, match=r"over shards trees are grown by LightGBM on a Dask"):
        fp.ranker(RANKERS[name]).fit(cut)


def test_what_lightgbm_cannot_do_on_a_cluster_is_said(machines, cut, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="or by XGBoost, they grow in memory"):
        fp.ListMLE(scorer="trees(library='xgboost')").fit(cut, engine=machines.engine)
    with pytest.raises(DataError, match="trees leave no checkpoints"):
        fp.ranker(RANKERS["listwise"]).fit(
            cut, engine=machines.engine, checkpoint=tmp_path / "fit.ckpt"
        )
