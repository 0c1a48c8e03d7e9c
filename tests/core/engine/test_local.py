"""Shards on one machine: the models are those of data in memory."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import firstpage as fp
from firstpage.core.engine.addresses import resolve_engine
from firstpage.core.engine.engine import ShardCache
from firstpage.core.engine.threads import LocalEngine
from firstpage.core.errors import (
    DataError,
    FirstpageWarning,
    MissingDependency,
    install_command,
)
from firstpage.data.concat import concat_datasets
from firstpage.data.ids import Ids
from firstpage.evaluation.measures.registry import measure_classes
from firstpage.learning.rankers.fit.composition import Composition
from firstpage.learning.rankers.fit.parameters import truth_order
from firstpage.learning.rankers.fit.progress import Step
from firstpage.learning.rankers.fit.training_data import InMemory
from firstpage.learning.rankers.sharded.data import ShardedData
from firstpage.learning.rankers.sharded.shard import SMALL, Scratch
from firstpage.learning.rankers.svm import SVM
from firstpage.learning.rankers.trees.growth import GrowthOptions
from firstpage.learning.scorers.linear import Linear
from firstpage.learning.scorers.trees import Trees
from firstpage.learning.solvers.lbfgs import LBFGS
from tests.core.engine.conftest import DATA
from tests.narrow import dense, instance, present

EXACT = DATA[:40].with_features(DATA[:40].X.astype(np.float64))
_OTHER = fp.Synthetic(queries=80, docs="uniform(4, 30)", features=7, seed=4).dataset()
UNSEEN = replace(_OTHER, queries=Ids.from_values([f"unseen {q}" for q in _OTHER.queries]))


@pytest.fixture(scope="module")
def exact(tmp_path_factory) -> fp.Shards:
    return fp.write_shards(EXACT, tmp_path_factory.mktemp("exact") / "s", rows=200)


@pytest.mark.parametrize(
    "name", ["RankNet(k=5)", "ListMLE", "ListNet", "RankCosine", "FocusedNet(k=3)", "RankSVM"]
)
def test_the_objective_over_shards_is_that_in_memory(exact: fp.Shards, name: str) -> None:
    ranker = fp.ranker(name)
    loss, scorer = instance(Composition, ranker.compose()).loss, Linear()
    sharded = ShardedData.from_shards(exact, LocalEngine(1), None, truth_order(ranker), True)
    in_memory = InMemory(EXACT, convert=truth_order(ranker)).without_uninformative()
    sharded_objective, objective = (
        data.objective(loss, scorer, data.bind(scorer, 0), 0.3, LBFGS(), 1)
        for data in (sharded, in_memory)
    )
    for seed in range(3):
        w = np.random.default_rng(seed).normal(size=EXACT.n_features)
        value, gradient = objective(w)
        sharded_value, sharded_gradient = sharded_objective(w)
        assert sharded_value == pytest.approx(value, rel=1e-12)
        scale = np.abs(gradient).max()
        assert sharded_gradient == pytest.approx(gradient, rel=1e-10, abs=1e-12 * scale)


@pytest.mark.parametrize(
    "name",
    [
        "PLRank(k=5, samples=3, solver='adam(rate=0.05, max_iter=3, whiten=true)')",
        "PLRank(measure=ERR, samples=3, solver='gd(rate=1, max_iter=3)')",
        "YetiRank(samples=2, solver='gd(rate=1, max_iter=3)')",
        "LambdaRank(solver='adam(rate=0.05, max_iter=3, whiten=true)')",
        "LambdaRank(measure=AP, solver='gd(rate=1, max_iter=3)')",
        "ListNet(solver='sgd(rate=0.01, max_iter=3, batch=7)')",  # batches span shards
        "RankSVM(solver='adam(rate=0.01, max_iter=3, batch=1000)')",  # one batch: all shards
    ],
)
def test_descents_over_shards_are_those_in_memory(exact: fp.Shards, name: str) -> None:
    """Also where rankings are drawn at random, and batches begin and end inside a shard."""
    in_memory, sharded = fp.ranker(name).fit(EXACT), fp.ranker(name).fit(exact)
    assert sharded.coef_ == pytest.approx(in_memory.coef_, rel=1e-9, abs=1e-12)
    assert sharded.objective_ == pytest.approx(in_memory.objective_, rel=1e-10)
    assert [step.loss for step in sharded.history_] == pytest.approx(
        [step.loss for step in in_memory.history_], rel=1e-10
    )


FAMILY = [
    "RankNet(k=5)", "ListMLE(k=4, ties=random)", "ListMLE(ties=random)", "ListNet",
    "RankCosine(normalize=standard)", "FocusedNet(k=5)", "Regression", "Regression(k=3, solver='gd(max_iter=15)')",
    "RankNet(normalize=minmax)", "RankSVM(k=5)", "SVMMAP", "FocusedSVM(k=5)", "TopMargin",
    "TopSlack", "TopMargin(reference=fixed)",
]  # fmt: skip
# These open the shards in hundreds of passes; others show that opening them anew changes nothing.
CACHES = dict.fromkeys(("FocusedSVM(k=5)", "TopMargin", "TopSlack", "TopMargin(reference=fixed)"))


@pytest.mark.parametrize("name", FAMILY)
def test_models_of_shards_are_those_of_data_in_memory(exact: fp.Shards, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)  # of small data
        in_memory = fp.ranker(name).fit(EXACT)
        sharded = fp.ranker(name).fit(exact)
        again = fp.ranker(name).fit(
            exact, engine=LocalEngine(threads=2, cache_bytes=CACHES.get(name, 0))
        )
    certified = isinstance(in_memory, SVM)  # cutting planes end within a tolerance
    tol = 2 * in_memory.gap_ + 1e-9 if certified else 1e-8
    assert sharded.objective_ == pytest.approx(in_memory.objective_, rel=tol)
    assert np.array_equal(sharded.coef_, again.coef_)  # for any cache and number of threads
    order = np.corrcoef(in_memory.predict(EXACT), sharded.predict(EXACT))[0, 1]
    assert order > 1 - (1e-4 if certified else 1e-6)
    assert np.array_equal(sharded.predict(exact), sharded.predict(EXACT))
    assert sharded.training_["data"]["documents"] == EXACT.n_docs
    assert sharded.training_["data"]["shards"] == len(exact)


@pytest.mark.parametrize(
    "name",
    [
        "RankBoost(rounds=6)", "RankBoost(rounds=6, k=5, weak=features)", "AdaRank(rounds=5)",
        "AdaRank(rounds=5, k=4, on=top)", "FocusedBoost(k=5, rounds=6, weak='stumps(bins=8)')",
        "FocusedBoost(k=5, rounds=6, weak='stumps(bins=8)', edge=adjusted)",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*validation queries are also in the training data")
def test_boosting_chooses_the_weak_rankers_of_data_in_memory(exact: fp.Shards, name: str) -> None:
    in_memory = fp.ranker(name).fit(EXACT, valid=EXACT[:9])
    sharded = fp.ranker(name).fit(exact, valid=EXACT[:9])
    again = fp.ranker(name).fit(exact, valid=EXACT[:9], engine=LocalEngine(1, cache_bytes=0))
    assert sharded.objective_ == pytest.approx(in_memory.objective_, rel=1e-12)
    assert sharded.predict(EXACT) == pytest.approx(in_memory.predict(EXACT), rel=1e-12, abs=1e-12)
    assert np.array_equal(sharded.predict(EXACT), again.predict(EXACT))  # every call replays
    assert sharded.n_iter_ == in_memory.n_iter_ > 3
    sharded.set_params(warm_start=True).fit(exact)
    in_memory.set_params(warm_start=True).fit(EXACT)
    assert sharded.objective_ == pytest.approx(in_memory.objective_, rel=1e-12)


def test_thresholds_are_those_of_data_in_memory(exact, monkeypatch) -> None:
    monkeypatch.setattr("firstpage.learning.solvers.boosting.weak_rankers.MAX_SAMPLED_DOCS", 100)
    in_memory, sharded = (fp.RankBoost(rounds=5).fit(data) for data in (EXACT, exact))
    assert np.array_equal(present(sharded.params_)[:, :2], present(in_memory.params_)[:, :2])


def test_sparse_features_of_many_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.zeros((DATA.n_docs, 2100))
    X[:, :7], X[:, 7:] = dense(DATA.X), 0
    X[np.arange(DATA.n_docs), rng.integers(7, 2100, DATA.n_docs)] = 1
    data = DATA.with_features(csr_array(X))
    shards = fp.write_shards(data, tmp_path / "s", rows=300)
    in_memory, sharded = fp.ListNet(l2=0.1).fit(data), fp.ListNet(l2=0.1).fit(shards)
    assert sharded.objective_ == pytest.approx(in_memory.objective_, rel=1e-8)


def test_real_data_in_shards_gives_the_same_model(real_data: Path, tmp_path: Path) -> None:
    fold = fp.read_folds(real_data / "mq2008")[0]
    shards = fp.write_shards(fold.train, tmp_path / "s", rows=2000)
    for name in ("ListNet(k=10)", "RankSVM(C=0.1)"):
        in_memory, sharded = (
            fp.ranker(name).fit(data, valid=fold.valid) for data in (fold.train, shards)
        )
        assert sharded.objective_ == pytest.approx(
            in_memory.objective_, rel=2 * np.nan_to_num(in_memory.gap_) + 1e-6
        )
        assert sharded.score(fold.test) == pytest.approx(in_memory.score(fold.test), abs=2e-3)


def test_uninformative_queries_have_no_weight(tmp_path: Path) -> None:
    y = EXACT.y.copy()
    y[: int(EXACT.offsets[20])] = 1.0  # half of the queries are uninformative
    data = EXACT.with_labels(y)
    shards = fp.write_shards(data, tmp_path / "s", rows=250)
    in_memory, sharded = fp.ListNet().fit(data), fp.ListNet().fit(shards)
    assert sharded.objective_ == pytest.approx(in_memory.objective_, rel=1e-9)
    uninformative = EXACT.with_labels(np.ones(EXACT.n_docs))
    no_preferences = fp.write_shards(uninformative, tmp_path / "t", rows=250)
    with pytest.warns(FirstpageWarning, match="all scores are equal"):
        fp.RankNet().fit(no_preferences)


@pytest.mark.parametrize("normalize", [None, "minmax", "global standard"])
def test_validation_queries_in_the_shards_cause_a_warning(shards, normalize) -> None:
    ranker = fp.ListNet(normalize=normalize)
    with pytest.warns(FirstpageWarning, match="3 of 5 validation queries are also in the training"):
        ranker.fit(shards, valid=concat_datasets([DATA[[2, 40, 79]], UNSEEN[:2]]))
    other_features = DATA[:5].with_features(DATA[:5].X ** 2)  # the same ids
    for valid in (UNSEEN, other_features):
        with warnings.catch_warnings():
            warnings.simplefilter("error", FirstpageWarning)
            ranker.fit(shards, valid=valid)


def test_validation_and_warm_start_over_shards(shards: fp.Shards) -> None:
    valid = UNSEEN[:20]
    steps: list[Step] = []
    ranker = fp.RankNet(solver="gd(max_iter=30)").fit(shards, valid=valid, progress=steps.append)
    assert len(steps) == 30
    assert ranker.best_score_ == max(present(step.measure) for step in steps)
    ranker.set_params(warm_start=True, solver="auto").fit(shards)
    assert ranker.converged_


def test_evaluate_scores_and_models_over_shards(shards: fp.Shards) -> None:
    model = fp.ListNet(normalize="minmax").fit(DATA)
    in_memory = fp.evaluate(model.predict(DATA), DATA, measures=["NDCG@5", "AP", "RR"], ci=True)
    for system in (model, model.predict(DATA), model.predict(shards)):
        sharded = fp.evaluate(system, shards, measures=["NDCG@5", "AP", "RR"], ci=True)
        assert np.array_equal(sharded.values, in_memory.values)
        assert sharded.intervals == in_memory.intervals
        assert sharded.queries == in_memory.queries
    with pytest.raises(DataError, match="there are 3 scores"):
        fp.evaluate(np.zeros(3), shards)


MEASURED = [
    (cls.without_cutoff or cls.text_name or cls.__name__).partition(";")[0]
    for cls in measure_classes()
    if not cls.of_subtopics
]


@pytest.fixture(scope="module")
def grades(tmp_path_factory) -> tuple[fp.Dataset, fp.Shards]:
    """Data whose greatest label, 4, is in the last of three shards only."""
    data = fp.Synthetic(queries=12, docs="uniform(6, 14)", features=3, seed=2).dataset()
    y = np.where(np.repeat(np.arange(12) < 9, data.lengths), np.minimum(data.y, 2), data.y)
    assert y.max() == 4
    y[data.offsets[10] : data.offsets[11]] = 4  # without preferences
    data = data.with_features(data.X.astype(np.float64)).with_labels(y)
    shards = fp.write_shards(data, tmp_path_factory.mktemp("grades") / "s", rows=50)
    assert [shard.y.max() for shard in shards] == [2, 2, 4]
    return data, shards


@pytest.mark.parametrize("k", [None, 3])
def test_all_measures_of_shards_are_those_in_memory(
    grades: tuple[fp.Dataset, fp.Shards], k: int | None
) -> None:
    """Also on the scale of all grades, and with random orders of ties."""
    data = grades[0]
    scores = np.round(dense(2 * data.X[:, 0]))
    of_grades = ["RBP(gain=exp)", "RBP(gain=linear)", "ERR(max=query)", "BPM(min=4)", "BPM(min=3)"]
    measured = [text for text in MEASURED if k or text not in ("kNDCG", "kERR")] + of_grades
    in_memory, sharded = (fp.evaluate(scores, d, measures=measured, k=k) for d in grades)
    different = (sharded.values != in_memory.values).any(axis=1)
    assert [text for text, differs in zip(measured, different, strict=True) if differs] == []


@pytest.mark.parametrize(
    "name",
    [
        "LambdaRank(measure=ERR, solver='gd(rate=1, max_iter=3)')",
        "LambdaRank(measure=ERR, k=3, ties=random, solver='gd(rate=1, max_iter=3)')",
        "PLRank(measure=ERR@5, samples=3, solver='gd(rate=1, max_iter=3)')",
        "AdaRank(maximize=ERR, rounds=3)", "AdaRank(maximize=SDCG@5, rounds=3, k=3)",
        "AdaRank(maximize=nERR, rounds=3, k=3, on=top)",
    ],
)  # fmt: skip
def test_rankers_train_on_the_scale_of_all_grades(
    grades: tuple[fp.Dataset, fp.Shards], name: str
) -> None:
    in_memory, sharded = (fp.ranker(name).fit(data) for data in grades)
    assert sharded.objective_ == pytest.approx(in_memory.objective_, rel=1e-10)
    assert sharded.predict(grades[0]) == pytest.approx(in_memory.predict(grades[0]), rel=1e-9)


def test_trees_over_shards_read_the_scale_of_all_grades(
    grades: tuple[fp.Dataset, fp.Shards],
) -> None:
    ranker = fp.ranker("LambdaRank(measure=ERR@5, scorer=trees)")
    data = ShardedData.from_shards(grades[1], LocalEngine(1), None, truth_order(ranker), True)
    growth: Any = data.loss_growth(
        Trees(), instance(Composition, ranker.compose("trees")).loss, GrowthOptions(None, 0, 1)
    )
    assert growth.objective.loss.measure == "ERR(max=4)@5"


def test_queries_without_documents_are_ignored(tmp_path: Path) -> None:
    offsets = np.concatenate([[0, 0], EXACT.offsets[1:41], EXACT.offsets[40:], [EXACT.n_docs] * 3])
    names = [f"q{i}" for i in range(len(offsets) - 1)]
    data = fp.Dataset(EXACT.X, EXACT.y, offsets, Ids.from_values(names))
    shards = fp.write_shards(data, tmp_path / "s", rows=300)
    assert shards.n_queries == len(data)
    for name in ("ListNet", "RankSVM(k=3)", "Regression", "AdaRank(rounds=4)", "TopMargin"):
        in_memory, sharded = fp.ranker(name).fit(data), fp.ranker(name).fit(shards)
        assert sharded.objective_ == pytest.approx(
            in_memory.objective_, rel=2 * np.nan_to_num(in_memory.gap_) + 1e-8
        )
    values = fp.evaluate(sharded, shards, measures="NDCG@5").values
    assert np.array_equal(
        values, fp.evaluate(sharded.predict(data), data, measures="NDCG@5").values
    )
    assert sharded.score(shards) == pytest.approx(sharded.score(data))
    with pytest.raises(DataError, match="one shard at a time"):
        sharded.rank(shards)


def test_operations_that_shards_do_not_support_are_refused(
    shards: fp.Shards, tmp_path: Path
) -> None:
    for name in ("TopRank", "RankNet(scorer=mlp)"):
        with pytest.raises(DataError, match="in memory, not on shards"):
            fp.ranker(name).fit(shards)
    with pytest.raises(DataError, match="their own labels and query ids"):
        fp.RankNet().fit(shards, sample_weight=np.ones(80))
    with pytest.raises(DataError, match="engine requires Shards"):
        fp.RankNet().fit(DATA, engine="threads")
    with pytest.raises(DataError, match="engine must be"):
        fp.RankNet().fit(shards, engine="sparks")
    with pytest.raises(DataError, match="was trained on 7"):
        fp.RankNet().fit(shards).predict(
            fp.write_shards(DATA.with_features(DATA.X[:, :3]), tmp_path / "t")
        )
    X = DATA.X.copy()
    X[100, 2] = np.nan
    bad = fp.write_shards(DATA.with_features(X), tmp_path / "bad", rows=250)
    with pytest.raises(DataError, match="contains NaN or inf: feature 3"):
        fp.RankNet().fit(bad)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda shards, path: fp.evaluate({"q": {"d": 1.0}}, shards), "got a run, which requires"),
        (lambda shards, path: fp.evaluate("text", shards), "no such file"),
        (lambda shards, path: fp.evaluate(["a"], shards), "scores must be numbers"),
        (lambda shards, path: fp.cross_validate(fp.ListNet(), shards), "takes folds.* got Dataset"),
        (lambda shards, path: fp.describe(shards), "describe takes a Dataset, .* got Shards"),
        (lambda shards, path: fp.split_folds(shards, 3), "split_folds takes a Dataset; got Shards"),
        (lambda shards, path: shards[0:2], "takes the number of one shard; got slice"),
        (lambda shards, path: fp.write_shards(5, path), "data must be a Dataset, .* got int"),  # type: ignore[arg-type]
        (lambda shards, path: fp.write_shards(DATA, path, rows="7"), "an integer .* got '7'"),  # type: ignore[arg-type]
        (lambda shards, path: fp.write_shards(DATA, path, rows=7.5), "an integer .* got 7.5"),  # type: ignore[arg-type]
        (lambda shards, path: fp.ListNet().fit("folder"), "X is a path, 'folder'; read a file"),
        (lambda shards, path: fp.read(shards.folder), "is a folder; .* read by fp.read_shards"),
    ],
)
def test_uses_that_shards_do_not_have_are_refused_in_one_line(
    shards: fp.Shards, tmp_path: Path, use: Callable[[fp.Shards, Path], object], message: str
) -> None:
    with pytest.raises(DataError, match=message) as raised:
        use(shards, tmp_path / "s")
    assert "\n" not in str(raised.value)


def test_devices_and_rankers_in_memory_refuse_shards(shards: fp.Shards) -> None:
    with pytest.raises(DataError, match="processed on CPUs"):
        fp.RankNet(device="cuda").fit(shards)
    data = ShardedData.from_shards(shards, LocalEngine(1), None, truth_order(fp.RankNet()), True)
    with pytest.raises(DataError, match="TopRank trains on data in memory, not on shards"):
        data.in_memory("TopRank")


def test_without_dask_an_error_says_how_to_install_it(shards: fp.Shards, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependency, match=re.escape(install_command("dask"))):
        fp.RankNet().fit(shards, engine="dask://127.0.0.1:9")


class NumberShard:
    """A shard, and the task that opens it."""

    def __init__(self, *values: float) -> None:
        self.values, self.nbytes = values, 60

    def open(self, threads: int) -> NumberShard:
        return self

    def release(self) -> None: ...

    def both(self, times: float) -> tuple[float, np.ndarray]:
        return times * self.values[0], times * np.array(self.values)

    def item(self, number: int) -> float:
        return self.values[number]


def test_results_are_combined_in_the_order_of_shards() -> None:
    job = LocalEngine(1, cache_bytes=0).job(
        [NumberShard(1.0, 5.0), NumberShard(-1e-17, 2.0), NumberShard(-1.0, 7.0)]
    )
    total, sums = job.sum(NumberShard.both, 2.0)
    assert total == 2.0 - 2e-17 - 2.0
    assert sums.tolist() == [2.0 - 2e-17 - 2.0, 28.0]
    maximum, maxima = job.max(NumberShard.both, 1.0)
    assert (maximum, maxima.tolist()) == (1.0, [1.0, 7.0])
    assert job.concat(lambda shard: np.array(shard.values)).tolist() == [1, 5, -1e-17, 2, -1, 7]
    assert job.map_own(NumberShard.item, [1, None, 0]) == [5.0, -1.0]  # shard 1 is not called
    job.close()


def test_shards_stay_open_while_they_fit() -> None:
    cache = ShardCache(100)
    assert cache.offer(("a", 0), NumberShard())
    assert not cache.offer(("a", 1), NumberShard())  # and does not replace the first
    assert cache.get(("a", 0)).nbytes == 60
    assert cache.offer(("b", 0), NumberShard())  # a shard of another job does
    assert cache.get(("a", 0)) is None
    cache.drop("b")
    assert not len(cache)
    assert isinstance(resolve_engine(None), LocalEngine)


def test_scratch_arrays_are_on_disk(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scratch = Scratch()
    array = scratch.allocate((SMALL, 2), np.float32)
    array[:] = np.arange(2)
    scratch.release()
    assert array[-1].tolist() == [0, 1]
    assert not list(tmp_path.iterdir())  # the file has no name
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="set TMPDIR"):
        scratch.allocate((SMALL, 2), np.float32)


@pytest.mark.parametrize(
    "name",
    ["ListNet(solver='gd(max_iter=1)')", "Regression(normalize=minmax)", "AdaRank(rounds=1)"],
)
def test_features_of_files_count_as_memory_in_use(tmp_path: Path, monkeypatch, name: str) -> None:
    """Arrays of Parquet files are on the heap, so shards that do not fit are not cached."""
    for number in range(2):
        fp.write(DATA[number * 20 : number * 20 + 20], tmp_path / f"{number}.parquet")
    shards = fp.read_shards(tmp_path)
    features = [dense(shard.X).nbytes for shard in shards]
    caches: dict[int, ShardCache] = {}
    offer = ShardCache.offer

    def record(cache: ShardCache, key: tuple[str, int], shard: Any) -> bool:
        caches[id(cache)] = cache
        assert shard.nbytes > features[key[1]]
        return offer(cache, key, shard)

    monkeypatch.setattr(ShardCache, "offer", record)
    engine = LocalEngine(1, cache_bytes=0)
    model = fp.ranker(name).fit(shards, engine=engine)
    fp.evaluate(model, shards, engine=engine)
    assert len(caches) > 2
    assert not any(map(len, caches.values()))


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("normalize", [None, "minmax"])
def test_memory_is_less_than_the_features(tmp_path: Path, normalize: str | None) -> None:
    rng = np.random.default_rng(0)
    rows, width = 20_000, 200  # 16 MB per block
    offsets = np.arange(0, rows + 1, 100)
    fp.ListNet(normalize=normalize).fit(DATA)  # compiles the kernels

    def blocks():
        for b in range(6):
            X = rng.random((rows, width), np.float32)
            y = np.round(3 * X[:, 0])
            qid = np.repeat(np.arange(200) + 200 * b, 100)
            assert len(offsets) == 201
            yield fp.Dataset.from_arrays(X, y, qid)

    shards = fp.write_shards(blocks(), tmp_path / "s", rows=rows)
    before, during = resident(), []

    def record(_: Step) -> None:
        during.append(resident())

    ranker = fp.ListNet(normalize=normalize, solver="gd(max_iter=2)")
    ranker.fit(shards, engine=LocalEngine(1), progress=record)
    assert max(during) - before < 48 << 20  # half of the 96 MB of features
