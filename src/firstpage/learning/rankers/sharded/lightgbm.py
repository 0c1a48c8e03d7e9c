"""Trees over shards, grown by LightGBM's distributed training on the workers of a Dask cluster.

Workers read their shards and keep them in memory.  LightGBM connects the workers, sums its
histograms, and asks our objective for the gradients of a worker's documents.  It cannot continue
without one of the workers, and the assignment of shards to workers affects the last digits.
"""

from __future__ import annotations

import ctypes
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np

from firstpage.core import Array, DataError, Floats
from firstpage.core.engine import (
    DaskEngine,
    EngineError,
    PinnedTasks,
    canceled,
    named_errors,
    stops_after,
    thread_count,
)
from firstpage.data.shards import Shards
from firstpage.learning.losses.base import Loss
from firstpage.learning.rankers.sharded.shard import TrainingShard, TrainingTask
from firstpage.learning.rankers.trees.growth import (
    Booster,
    GrowthOptions,
    LambdaRankOptions,
    LibraryData,
    LibraryParameters,
    TreeObjective,
    identity,
)
from firstpage.learning.scorers.tree_scoring import import_lightgbm, library_errors
from firstpage.learning.scorers.trees import LightGBM, TreeCallback, Trees

if TYPE_CHECKING:
    from firstpage.data import Features

Check = Callable[[Floats, Array], None]
"""(labels, lengths of lists) -> None; raises an error for data that cannot be learned from."""


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


CONNECTION_MINUTES = 120  # LightGBM's default time limit of a connection


class Columns(NamedTuple):
    """The documents of a worker, with the lengths of their lists."""

    features: Any
    labels: Floats
    lengths: Array
    weights: Floats


def load_columns(
    tasks: list[TrainingTask[TrainingShard]], raw_labels: bool, check: Check
) -> Columns:
    """Read the shards of a worker, scaled, without empty queries.

    With `raw_labels`, labels are those of the data and not those for training.
    """
    with named_errors():
        shards = [load_shard(task, raw_labels, check) for task in tasks]
    features, *columns = zip(*shards, strict=True)
    return Columns(stack(features), *map(np.concatenate, columns))


def load_shard(task: TrainingTask[TrainingShard], raw_labels: bool, check: Check) -> Columns:
    """Read a shard into memory."""
    shard = task.open(1)
    labels = shard.data.y if raw_labels else shard.truth.labels
    if len(np.unique(labels)) != len(np.unique(labels.astype(np.float32))):
        raise DataError(
            f"{shard.data.source}: LightGBM stores labels in 32 bits, in which some of these are "
            "equal; use coarser labels."
        )
    check(labels, shard.data.lengths)
    weights = np.repeat(shard.weights, shard.data.lengths)
    features = stack([shard.data.X])  # a copy, not a view of the map
    loaded = Columns(features, np.array(labels), np.asarray(shard.data.lengths), weights)
    shard.release()
    return loaded


def stack(blocks: Sequence[Any]) -> Any:
    """Return the rows of all blocks of features, as LightGBM takes them."""
    if isinstance(blocks[0], np.ndarray):
        return np.concatenate(blocks)
    from scipy.sparse import csr_matrix, vstack

    return csr_matrix(vstack(blocks, format="csr"))


def select_rows(columns: Columns, rows: Array) -> Any:
    """Return the features of some documents of a worker."""
    return columns.features[rows]


def reserve_port() -> socket.socket:
    """Return a socket that is bound to a free port of the worker."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("", 0))
    return reserved


def port_of(reserved: socket.socket) -> int:
    """Return the port of a socket."""
    return int(reserved.getsockname()[1])


def ready_port(reserved: socket.socket, data: LibraryData) -> int:
    """Return the port of a worker whose data are prepared."""
    return port_of(reserved)


@dataclass(frozen=True, eq=False)
class WorkerGrowth:
    """The growth of trees as each worker runs it.

    Attributes
    ----------
    job : str
        The name of the fit.
    count : int
        The number of trees.
    parameters : dict
        The parameters of LightGBM.
    objective : TreeObjective or None
        The objective; None: that of the parameters.
    categorical : tuple of int
        The columns that hold categories.
    documents : int
        The number of documents of all workers.
    weighted : bool
        Whether documents have weights.
    """

    job: str
    count: int
    parameters: LibraryParameters
    objective: TreeObjective | None
    categorical: tuple[int, ...]
    documents: int
    weighted: bool

    def sampled(self) -> Array:
        """Return the documents, of all shards, from which LightGBM chooses thresholds."""
        total, count = ctypes.c_int32(self.documents), ctypes.c_int32()
        parameters = import_lightgbm().basic._param_dict_to_str(self.parameters).encode()
        call_library("GetSampleCount", total, parameters, ctypes.byref(count))
        rows = np.empty(count.value, np.int32)
        address = ctypes.c_void_p(rows.ctypes.data)
        call_library("SampleIndices", total, parameters, address, ctypes.byref(count))
        return rows[: count.value]


def call_library(name: str, *args: Any) -> None:
    """Call a function of LightGBM's C API that has no Python interface."""
    library = import_lightgbm().basic
    library._safe_call(getattr(library._LIB, f"LGBM_{name}")(*args))


def prepare(growth: WorkerGrowth, columns: Columns, sample: list[Any]) -> LibraryData:
    """Return the documents of a worker as LightGBM stores them.

    All workers have the same thresholds, those of the sample.  Without it, LightGBM would choose
    the thresholds of a feature from the documents of one worker.
    """
    lightgbm = import_lightgbm()
    parameters = {**growth.parameters, "num_threads": thread_count()}
    features = stack(sample)
    # LightGBM leaves out features that cannot be split in so many documents of the sample.
    min_docs = parameters["min_data_in_leaf"] * features.shape[0] // growth.documents
    thresholds = lightgbm.Dataset(
        features,
        params={**parameters, "min_data_in_leaf": min_docs},
        categorical_feature=list(growth.categorical) or "auto",
    )
    return lightgbm.Dataset(
        columns.features,
        columns.labels,
        group=columns.lengths,
        weight=columns.weights if growth.weighted else None,
        reference=thresholds,
        params=parameters,
    ).construct()


def grow_on_worker(
    growth: WorkerGrowth, data: LibraryData, machines: list[str], reserved: socket.socket
) -> Booster:
    """Return the booster that this worker grew together with the others; None if canceled."""
    parameters = {**data.params, "num_machines": len(machines), "tree_learner": "data"}
    port = port_of(reserved)
    reserved.close()
    try:
        if len(machines) > 1:
            addresses = ",".join(machines).encode()
            call_library("NetworkInit", addresses, port, CONNECTION_MINUTES, len(machines))
        booster, _ = LightGBM.boost(
            import_lightgbm().Booster(parameters, data),
            data,
            None,
            growth.count,
            lambda tree, *_: stops_after(tree, growth.job),
            {"fobj": growth.objective},
        )
        return None if canceled() else booster
    finally:
        # The connections belong to this thread of the worker, whose next fit would fail with them.
        call_library("NetworkFree")


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
    return ClusterGrowth(training, trees, None, rank.parameters(), True, rank.check, options)


@dataclass(frozen=True, eq=False)
class ClusterGrowth:
    """Grow trees on the workers; validation data then choose how many to keep."""

    training: ClusterShards
    trees: Trees
    objective: TreeObjective | None
    parameters: LibraryParameters
    raw_labels: bool
    check: Check
    options: GrowthOptions

    def loss(self) -> float:
        """Return NaN: the loss is not summed over the workers."""
        return float("nan")

    def grow(self, grown: TreeCallback) -> tuple[Booster, int]:
        """Return the booster and its number of trees."""
        import_lightgbm()  # an ImportError below is that of a worker
        engine = DaskEngine(self.training.client)
        with library_errors("lightgbm"), _engine_errors(engine), PinnedTasks(engine) as tasks:
            booster = self._booster(engine, tasks)
        return booster, _validate(booster, self.options.valid, grown, self.options.threads)

    def _booster(self, engine: DaskEngine, tasks: PinnedTasks) -> Booster:
        """Return the booster of all shards."""
        training, trees = self.training, self.trees
        numbers = [n for n, shard in enumerate(training.shards.shards) if shard.rows]
        workers = engine.workers()[: len(numbers)]
        owned = {worker: numbers[at :: len(workers)] for at, worker in enumerate(workers)}
        growth = WorkerGrowth(
            uuid4().hex,
            trees.count,
            {**trees.parameters(self.options.seed, 1), **self.parameters},
            self.objective,
            tuple(training.shards.categories),
            training.shards.n_docs,
            training.drop_uninformative,
        )
        columns = {
            worker: tasks.submit(
                worker,
                load_columns,
                [training.tasks[n] for n in shards],
                self.raw_labels,
                self.check,
            )
            for worker, shards in owned.items()
        }
        is_sampled = np.zeros(growth.documents, bool)
        is_sampled[growth.sampled()] = True
        ends = np.cumsum([shard.rows for shard in training.shards.shards])
        masks = np.split(is_sampled, ends[:-1])
        sample = [
            tasks.submit(
                worker,
                select_rows,
                columns[worker],
                np.flatnonzero(np.concatenate([masks[n] for n in shards])),
            )
            for worker, shards in owned.items()
        ]
        data = {w: tasks.submit(w, prepare, growth, columns[w], sample) for w in workers}
        reserved = {w: tasks.submit(w, reserve_port) for w in workers}
        # LightGBM waits for a worker that is lost before it connects, so all start together.
        ready = [tasks.submit(w, ready_port, reserved[w], data[w]) for w in workers]
        machines = [
            f"{urlsplit(worker).hostname}:{port}"
            for worker, port in zip(workers, tasks.results(ready), strict=True)
        ]
        boosters = [
            tasks.submit(w, grow_on_worker, growth, data[w], machines, reserved[w]) for w in workers
        ]
        return tasks.results(boosters)[0]


@contextmanager
def _engine_errors(engine: DaskEngine) -> Iterator[None]:
    """Translate errors of the workers into EngineError."""
    try:
        yield
    except ImportError as error:
        raise EngineError(
            f"a worker of {engine.address} lacks a package that trees need ({error}); install "
            "firstpage[trees] there."
        ) from error
    except import_lightgbm().basic.LightGBMError as error:
        if "socket" not in str(error).lower():
            raise
        raise engine.worker_lost() from error


def _validate(booster: Booster, valid: Features | None, grown: TreeCallback, threads: int) -> int:
    """Report the trees one by one; return how many were reported before a stop."""
    count = int(booster.num_trees())
    scores = None if valid is None else np.zeros(valid.shape[0])
    for tree in range(count):
        if scores is not None:
            scores = scores + booster.predict(
                valid, start_iteration=tree, num_iteration=1, raw_score=True, num_threads=threads
            )
        if np.all(grown(tree + 1, booster, scores)):
            return tree + 1
    return count
