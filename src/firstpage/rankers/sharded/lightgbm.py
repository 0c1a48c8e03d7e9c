"""Trees over shards, grown by LightGBM's own training on a Dask cluster (`DaskLGBMRanker`).

Workers read their shards and keep them in memory; LightGBM connects them with each other, adds up
its histograms, and asks our objective for slopes of the documents that a worker has.  It cannot go
on without one of them, and which worker has which shard shows in the last digits.
"""

from __future__ import annotations

import operator
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from firstpage.data.shards.shards import Shards
from firstpage.engine.dask_cluster import LOST, DaskEngine, library
from firstpage.engine.engine import EngineError
from firstpage.errors import DataError
from firstpage.losses.loss import Loss
from firstpage.rankers.sharded.shard import TrainingShard, TrainingTask
from firstpage.rankers.trees.growth import (
    Booster,
    GrowthOptions,
    LambdaRank,
    Parameters,
    TreeObjective,
    identity,
)
from firstpage.scorers.trees import Grown, Trees, lightgbm_or_error, refusals
from firstpage.types import Array, Floats

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

    from firstpage.data.dataset import Features

Check = Callable[[Floats, Array], None]
"""(labels, lengths of lists) -> nothing, or an error that says what cannot be learned from."""


class Loaded(NamedTuple):
    """A shard in memory; `lengths` are those of the lists, weights those of documents."""

    features: Any
    labels: Floats
    lengths: Array
    weights: Floats


@dataclass(frozen=True, eq=False)
class ClusterShards:
    """Shards and the cluster that reads them.

    drops   whether queries without a preference weigh nothing
    """

    client: Any
    shards: Shards
    tasks: list[TrainingTask[TrainingShard]]
    drops: bool


class Columns:
    """Every shard read by a worker, and stored there as long as this is.

    plain   labels as they are, and not as the ranker reads them
    """

    def __init__(
        self, engine: DaskEngine, training: ClusterShards, plain: bool, check: Check
    ) -> None:
        self._client, self._shards = engine.client, training.shards
        workers = engine.workers()
        found = [
            self._client.submit(
                loaded, task, plain, check, workers=[workers[n % len(workers)]],
                allow_other_workers=True, pure=False,
            )
            for n, task in enumerate(training.tasks)
        ]  # fmt: skip
        library().wait(found)
        sizes = self._client.gather(self._client.map(sizes_of, found, pure=False))
        self._loaded = [(part, size) for part, size in zip(found, sizes, strict=True) if size[0]]

    def features(self) -> DaskArray:
        """A row a document."""
        import dask.array as da

        width, kind = self._shards.n_features, self._shards.dtype
        return da.concatenate([
            da.from_delayed(part, (rows, width), kind) for part, (rows, _) in self._each("features")
        ])  # fmt: skip

    def column(self, name: str) -> DaskArray:
        """`labels`, `lengths` or `weights`."""
        import dask.array as da

        which, kind = (1, np.int64) if name == "lengths" else (0, np.float64)
        return da.concatenate([
            da.from_delayed(part, (size[which],), kind) for part, size in self._each(name)
        ])  # fmt: skip

    def _each(self, name: str) -> list[tuple[DaskArray, tuple[int, int]]]:
        import dask

        parts, sizes = zip(*self._loaded, strict=True)
        found = self._client.map(operator.attrgetter(name), parts, pure=False)
        return [(dask.delayed(one), size) for one, size in zip(found, sizes, strict=True)]


def loaded(task: TrainingTask[TrainingShard], plain: bool, check: Check) -> Loaded:
    """On a worker: read a shard, scaled, without empty queries."""
    shard = task.open(1)
    labels = shard.data.y if plain else shard.truth.labels
    if len(np.unique(labels)) != len(np.unique(labels.astype(np.float32))):
        raise DataError(
            f"{shard.data.source}: LightGBM keeps labels in 32 bits, and some of these would be "
            "alike; take coarser ones."
        )
    check(labels, shard.data.lengths)
    X: Any = shard.data.X
    if isinstance(X, np.ndarray):
        X = np.array(X)  # not a view of what is mapped
    else:
        from scipy.sparse import csr_matrix

        X = csr_matrix(X)
    weights = np.repeat(shard.weights, shard.data.lengths)
    found = Loaded(X, np.array(labels), np.asarray(shard.data.lengths), weights)
    shard.release()
    return found


def sizes_of(shard: Loaded) -> tuple[int, int]:
    """Documents and queries."""
    return len(shard.labels), len(shard.lengths)


PATIENCE = 60.0  # seconds for workers to let go of one that is gone


def anything(labels: Floats, lengths: Array) -> None:
    """A loss of ours takes any labels and lists."""


def loss_growth(
    training: ClusterShards, trees: Trees, loss: Loss, options: GrowthOptions
) -> ClusterGrowth:
    return ClusterGrowth(
        training, trees, TreeObjective(str(loss), loss, identity), {}, False, anything, options
    )


def lambdarank_growth(
    training: ClusterShards, trees: Trees, rank: LambdaRank, options: GrowthOptions
) -> ClusterGrowth:
    """Learns from labels as they are."""
    return ClusterGrowth(
        training, trees, "lambdarank", rank.parameters(), True, rank.check, options
    )


@dataclass(frozen=True, eq=False)
class ClusterGrowth:
    """Trees that grow on the workers; how many to keep is then told by the validation data."""

    training: ClusterShards
    trees: Trees
    objective: str | TreeObjective
    parameters: Parameters
    plain: bool
    check: Check
    options: GrowthOptions

    def loss(self) -> float:
        """Nobody adds it up."""
        return float("nan")

    def grow(self, grown: Grown) -> tuple[Booster, int]:
        engine = DaskEngine(self.training.client)
        with refusals("lightgbm"), _losses(engine), engine.client.as_current():
            booster = self._grown(engine)
        return booster, _looked_at(booster, self.options.valid, grown, self.options.threads)

    def _grown(self, engine: DaskEngine) -> Booster:
        """The booster of all shards."""
        lightgbm, trees = lightgbm_or_error(), self.trees
        asked = {
            "n_estimators": trees.count, "num_leaves": trees.leaves, "learning_rate": trees.rate,
            "min_child_samples": trees.min_docs, "random_state": self.options.seed,
            "deterministic": True, "force_row_wise": True, "verbosity": -1, **self.parameters,
            **trees.options,
        }  # fmt: skip
        ranker = lightgbm.DaskLGBMRanker(client=engine.client, objective=self.objective, **asked)
        held = Columns(engine, self.training, self.plain, self.check)
        weight = held.column("weights") if self.training.drops else None
        with warnings.catch_warnings(), redirect_stdout(StringIO()):  # it prints what it does
            warnings.filterwarnings("ignore", "Parameter n_jobs will be ignored")  # nobody gave one
            ranker.fit(
                held.features(), held.column("labels"), group=held.column("lengths"),
                sample_weight=weight,
            )  # fmt: skip
        return ranker.booster_


@contextmanager
def _losses(engine: DaskEngine) -> Iterator[None]:
    """Machines that go away in mid-fit, said in our words."""
    try:
        yield
    except LOST as error:
        raise engine.lost() from error
    except ImportError as error:
        raise EngineError(
            f"a worker of {engine.address} lacks what trees need ({error}); install "
            "firstpage[trees] there."
        ) from error
    except lightgbm_or_error().basic.LightGBMError as error:
        _disconnect(engine)
        if "socket" not in str(error).lower():
            raise
        raise EngineError(
            f"a worker of {engine.address} went away, and LightGBM cannot grow trees without it; "
            "fit again."
        ) from error


def _disconnect(engine: DaskEngine) -> None:
    """Threads whose LightGBM failed keep its connections, and would fail again: as many tasks as a
    worker has threads, at the same time, tell them to let go."""
    client = engine.client
    with suppress(Exception):  # there is an error already to be told
        told = [
            (worker, client.submit(_let_go, n, workers=[worker], pure=False))
            for worker, threads in client.nthreads().items()
            for n in range(threads)
        ]
        until = time.monotonic() + PATIENCE
        while told and time.monotonic() < until:
            time.sleep(0.1)
            there = client.nthreads()  # who went away in the meantime is not waited for
            told = [(w, one) for w, one in told if w in there and not one.done()]


def _let_go(number: int) -> None:
    from lightgbm.basic import _LIB, _safe_call

    _safe_call(_LIB.LGBM_NetworkFree())
    time.sleep(0.2)  # so that no thread takes two of these tasks


def _looked_at(booster: Booster, valid: Features | None, grown: Grown, threads: int) -> int:
    """Tree by tree, now that all are there: how many to keep is told by the validation data."""
    count = int(booster.num_trees())
    scores = None if valid is None else np.zeros(valid.shape[0])
    for tree in range(count):
        if scores is not None:
            scores = scores + booster.predict(
                valid, start_iteration=tree, num_iteration=1, raw_score=True, num_threads=threads
            )
        if grown(tree + 1, booster, scores):
            return tree + 1
    return count
