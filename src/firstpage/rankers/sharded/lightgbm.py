"""Trees over shards, grown by LightGBM's distributed training on Dask (`DaskLGBMRanker`).

Workers read their shards and keep them in memory.  LightGBM connects the workers, sums its
histograms, and asks our objective for the gradients of a worker's documents.  It cannot continue
without one of the workers, and the assignment of shards to workers affects the last digits.
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
from firstpage.engine.dask_cluster import CONNECTION_ERRORS, DaskEngine, import_distributed
from firstpage.engine.engine import EngineError
from firstpage.errors import DataError
from firstpage.losses.loss import Loss
from firstpage.rankers.sharded.shard import TrainingShard, TrainingTask
from firstpage.rankers.trees.growth import (
    Booster,
    GrowthOptions,
    LambdaRankOptions,
    LibraryParameters,
    TreeObjective,
    identity,
)
from firstpage.scorers.tree_scoring import import_lightgbm, library_errors
from firstpage.scorers.trees import TreeCallback, Trees
from firstpage.types import Array, Floats

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

    from firstpage.data.dataset import Features

Check = Callable[[Floats, Array], None]
"""(labels, lengths of lists) -> None; raises an error for data that cannot be learned from."""


class LoadedShard(NamedTuple):
    """A shard in memory, with the lengths of its lists and the weights of its documents."""

    features: Any
    labels: Floats
    lengths: Array
    weights: Floats


@dataclass(frozen=True, eq=False)
class ClusterShards:
    """Shards and the Dask client that processes them.

    Attributes
    ----------
    client : Client
        The Dask client.
    shards : Shards
        The shards.
    tasks : list of TrainingTask
        One task per shard.
    drop_uninformative : bool
        Whether queries with equal labels have weight 0.
    """

    client: Any
    shards: Shards
    tasks: list[TrainingTask[TrainingShard]]
    drop_uninformative: bool


class ClusterColumns:
    """Columns of all shards, in the memory of the workers as long as this object exists.

    With `raw_labels`, labels are those of the data and not those for training.
    """

    def __init__(
        self, engine: DaskEngine, training: ClusterShards, raw_labels: bool, check: Check
    ) -> None:
        self._client, self._shards = engine.client, training.shards
        workers = engine.workers()
        futures = [
            self._client.submit(
                load_shard, task, raw_labels, check, workers=[workers[n % len(workers)]],
                allow_other_workers=True, pure=False,
            )
            for n, task in enumerate(training.tasks)
        ]  # fmt: skip
        import_distributed().wait(futures)
        sizes = self._client.gather(self._client.map(sizes_of, futures, pure=False))
        self._loaded = [
            (future, size) for future, size in zip(futures, sizes, strict=True) if size[0]
        ]

    def features(self) -> DaskArray:
        """Return the features, one row per document."""
        import dask.array as da

        width, kind = self._shards.n_features, self._shards.dtype
        return da.concatenate([
            da.from_delayed(values, (rows, width), kind)
            for values, (rows, _) in self._each("features")
        ])  # fmt: skip

    def column(self, name: str) -> DaskArray:
        """Return the column `labels`, `lengths` or `weights`."""
        import dask.array as da

        axis, kind = (1, np.int64) if name == "lengths" else (0, np.float64)
        return da.concatenate([
            da.from_delayed(values, (size[axis],), kind) for values, size in self._each(name)
        ])  # fmt: skip

    def _each(self, name: str) -> list[tuple[DaskArray, tuple[int, int]]]:
        """Return an attribute of each loaded shard, delayed, with the shard's size."""
        import dask

        shards, sizes = zip(*self._loaded, strict=True)
        futures = self._client.map(operator.attrgetter(name), shards, pure=False)
        return [(dask.delayed(f), size) for f, size in zip(futures, sizes, strict=True)]


def load_shard(task: TrainingTask[TrainingShard], raw_labels: bool, check: Check) -> LoadedShard:
    """Read a shard on a worker, scaled, without empty queries."""
    shard = task.open(1)
    labels = shard.data.y if raw_labels else shard.truth.labels
    if len(np.unique(labels)) != len(np.unique(labels.astype(np.float32))):
        raise DataError(
            f"{shard.data.source}: LightGBM stores labels in 32 bits, in which some of these are "
            "equal; use coarser labels."
        )
    check(labels, shard.data.lengths)
    X: Any = shard.data.X
    if isinstance(X, np.ndarray):
        X = np.array(X)  # a copy, not a view of the map
    else:
        from scipy.sparse import csr_matrix

        X = csr_matrix(X)
    weights = np.repeat(shard.weights, shard.data.lengths)
    loaded = LoadedShard(X, np.array(labels), np.asarray(shard.data.lengths), weights)
    shard.release()
    return loaded


def sizes_of(shard: LoadedShard) -> tuple[int, int]:
    """Return the numbers of documents and queries."""
    return len(shard.labels), len(shard.lengths)


DISCONNECT_TIMEOUT = 60.0  # seconds


def accept_all(labels: Floats, lengths: Array) -> None:
    """Accept all labels and lists: Firstpage's losses have no limits."""


def loss_growth(
    training: ClusterShards, trees: Trees, loss: Loss, options: GrowthOptions
) -> ClusterGrowth:
    """Return the growth of trees by the gradients of a loss."""
    return ClusterGrowth(
        training, trees, TreeObjective(str(loss), loss, identity), {}, False, accept_all, options
    )


def lambdarank_growth(
    training: ClusterShards, trees: Trees, rank: LambdaRankOptions, options: GrowthOptions
) -> ClusterGrowth:
    """Return the growth of trees by lambdarank, from the labels of the data."""
    return ClusterGrowth(
        training, trees, "lambdarank", rank.parameters(), True, rank.check, options
    )


@dataclass(frozen=True, eq=False)
class ClusterGrowth:
    """Grow trees on the workers; validation data then choose how many to keep."""

    training: ClusterShards
    trees: Trees
    objective: str | TreeObjective
    parameters: LibraryParameters
    raw_labels: bool
    check: Check
    options: GrowthOptions

    def loss(self) -> float:
        """Return NaN: the loss is not summed over the workers."""
        return float("nan")

    def grow(self, grown: TreeCallback) -> tuple[Booster, int]:
        """Return the booster and its number of trees."""
        engine = DaskEngine(self.training.client)
        with library_errors("lightgbm"), _engine_errors(engine), engine.client.as_current():
            booster = self._booster(engine)
        return booster, _validate(booster, self.options.valid, grown, self.options.threads)

    def _booster(self, engine: DaskEngine) -> Booster:
        """Return the booster of all shards."""
        lightgbm, trees = import_lightgbm(), self.trees
        parameters = {
            "n_estimators": trees.count, "num_leaves": trees.leaves, "learning_rate": trees.rate,
            "min_child_samples": trees.min_docs, "random_state": self.options.seed,
            "deterministic": True, "force_row_wise": True, "verbosity": -1, **self.parameters,
            **trees.options,
        }  # fmt: skip
        ranker = lightgbm.DaskLGBMRanker(
            client=engine.client, objective=self.objective, **parameters
        )
        columns = ClusterColumns(engine, self.training, self.raw_labels, self.check)
        weight = columns.column("weights") if self.training.drop_uninformative else None
        with warnings.catch_warnings(), redirect_stdout(StringIO()):  # LightGBM prints
            warnings.filterwarnings("ignore", "Parameter n_jobs will be ignored")
            ranker.fit(
                columns.features(), columns.column("labels"), group=columns.column("lengths"),
                sample_weight=weight,
                categorical_feature=list(self.training.shards.categories) or "auto",
            )  # fmt: skip
        return ranker.booster_


@contextmanager
def _engine_errors(engine: DaskEngine) -> Iterator[None]:
    """Translate the errors of lost workers into EngineError."""
    try:
        yield
    except CONNECTION_ERRORS as error:
        raise engine.lost() from error
    except ImportError as error:
        raise EngineError(
            f"a worker of {engine.address} lacks a package that trees need ({error}); install "
            "firstpage[trees] there."
        ) from error
    except import_lightgbm().basic.LightGBMError as error:
        _disconnect(engine)
        if "socket" not in str(error).lower():
            raise
        raise EngineError(
            f"a worker of {engine.address} was lost, and LightGBM cannot grow trees without it; "
            "fit again."
        ) from error


def _disconnect(engine: DaskEngine) -> None:
    """Close LightGBM's connections in the threads of all workers.

    Threads in which LightGBM failed keep their connections and would fail again.  Therefore each
    worker gets as many simultaneous tasks as it has threads.
    """
    client = engine.client
    with suppress(Exception):  # whatever fails here, the original error is reported
        pending = [
            (worker, client.submit(_free_network, n, workers=[worker], pure=False))
            for worker, threads in client.nthreads().items()
            for n in range(threads)
        ]
        until = time.monotonic() + DISCONNECT_TIMEOUT
        while pending and time.monotonic() < until:
            time.sleep(0.1)
            alive = client.nthreads()
            pending = [(w, future) for w, future in pending if w in alive and not future.done()]


def _free_network(number: int) -> None:
    """Close the connections of this thread."""
    from lightgbm.basic import _LIB, _safe_call

    _safe_call(_LIB.LGBM_NetworkFree())
    time.sleep(0.2)  # so that no thread runs two of these tasks


def _validate(booster: Booster, valid: Features | None, grown: TreeCallback, threads: int) -> int:
    """Report the trees one by one; return how many were reported before a stop."""
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
