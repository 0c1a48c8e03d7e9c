"""A shard made ready for training, on whatever machine it is open, and what is asked of it."""

from __future__ import annotations

import mmap
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.shards.shards import Shards
from firstpage.data.truth import Truth
from firstpage.engine.engine import OpenShard
from firstpage.errors import DataError, FirstpageWarning
from firstpage.losses.listwise import relevance
from firstpage.losses.loss import Loss
from firstpage.measures.sharded import StoredShard
from firstpage.rankers.fit.checks import check_finite, varies
from firstpage.rankers.fit.training_data import (
    BoostingRanker,
    Convert,
    InMemory,
    Scorer,
    Transform,
    row_bytes,
)
from firstpage.scorers.linear import LinearScoring
from firstpage.solvers.boosting.weak_rankers import Learned, Sample, Weak, weak
from firstpage.solvers.least_squares import moments, rows_sum
from firstpage.solvers.objective import BlockObjective
from firstpage.solvers.sharded.boosting import BoostingShard
from firstpage.solvers.sharded.objective import ObjectiveShard
from firstpage.types import Array, Bools, Floats

SMALL = 1 << 20  # bytes that are not worth a file


class Scratch:
    """Room on disk, in the folder for temporary files (`TMPDIR`); it goes with the process."""

    def __init__(self) -> None:
        self.maps: list[mmap.mmap] = []

    def allocate(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array to write to, mapped from a file that has no name any more."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape)) * kind.itemsize
        if size <= SMALL:
            return np.empty(shape, kind)
        try:
            with tempfile.TemporaryFile(prefix="firstpage-") as file:
                _reserve(file.fileno(), size)
                held = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise DataError(
                f"{tempfile.gettempdir()}: no room for {size / 2**20:.0f} MB of scratch "
                f"({error.strerror}); set TMPDIR to a folder with more."
            ) from error
        self.maps.append(held)
        return np.frombuffer(held, kind).reshape(shape)

    def release(self) -> None:
        """Let go of the pages that are in memory; they are read again when needed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for one in self.maps:
                one.madvise(mmap.MADV_DONTNEED)


def _reserve(file: int, size: int) -> None:
    """All of it now: a disk that is full later would end the process while it writes."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)


S = TypeVar("S", bound=OpenShard)


def informative_queries(data: Dataset) -> Bools:
    """Return which queries prefer anything to anything."""
    if not len(data):
        return np.zeros(0, bool)
    starts = data.offsets[:-1]
    found: Bools = np.maximum.reduceat(data.y, starts) > np.minimum.reduceat(data.y, starts)
    return found


@dataclass(frozen=True)
class ShardSurvey:
    """What a shard has: queries with documents, documents; of these in informative queries.

    varies    whether any feature differs between two documents of a query
    """

    queries: int
    documents: int
    informative: int
    informative_documents: int
    varies: bool


def survey(shard: StoredShard) -> ShardSurvey:
    """Look through a shard once, before anything is learned: its features must be finite."""
    check_finite(shard.data)
    data = InMemory(shard.data).without_empty().data
    informative = informative_queries(data)
    documents = int(data.lengths[informative].sum())
    return ShardSurvey(len(data), data.n_docs, int(informative.sum()), documents, varies(data))


class TrainingShard:
    """The documents of a shard as a ranker trains on them: scaled, without empty queries."""

    def __init__(self, task: TrainingTask[Any], threads: int) -> None:
        self._opened, self.task, self.threads = task.shards.open(0), task, threads
        self.scratch = Scratch()
        data = InMemory(self._opened.data).without_empty().data
        if task.transform is not None:
            # To disk again, not to memory: a pass must need no more of it than without scaling.
            X = data.X
            room = self.scratch.allocate(X.shape, X.dtype) if isinstance(X, np.ndarray) else None
            data = task.transform.apply(data, room)
            self._opened.release()
        self.data = data
        self.weights: Floats = (data.lengths if task.by_docs else np.ones(len(data))).astype(float)
        if task.drops:
            self.weights = np.where(informative_queries(data), self.weights, 0.0)

    @property
    def nbytes(self) -> int:
        return 24 * self.data.n_docs

    def release(self) -> None:
        self._opened.release()
        self.scratch.release()

    @property
    def truth(self) -> Truth:
        return self.task.convert(self.data.truth)

    @property
    def row_weights(self) -> Floats:
        """Every document of a query that counts weighs alike, and all of all shards 1."""
        found: Floats = np.repeat(self.weights > 0, self.data.lengths) / self.task.total
        return found

    def in_memory(self) -> InMemory:
        """The queries that count."""
        weights = self.weights if self.task.drops else None
        return InMemory(self.data, None, weights, self.task.convert).positive_queries()


def identity(shard: TrainingShard) -> TrainingShard:
    return shard


@dataclass(frozen=True, eq=False)
class TrainingTask(Generic[S]):
    """All that a machine needs to know to work on a shard.

    shards     with this one alone
    transform  of the features, query by query
    convert    the truth to that which is trained on
    drops      whether queries without a preference weigh nothing
    by_docs    whether queries weigh by the number of their documents
    total      what all queries of all shards weigh
    setup      from the documents to what works on them
    """

    shards: Shards
    transform: Transform | None
    convert: Convert
    drops: bool
    by_docs: bool
    total: float
    setup: Callable[[TrainingShard], S]

    def open(self, threads: int) -> S:
        return self.setup(TrainingShard(self, threads))


def objective_shard(shard: TrainingShard, loss: Loss, scorer: Scorer) -> ObjectiveShard:
    """The sums of a loss over a shard."""
    X = shard.data.X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)  # `Sharded.objective` has warned
        objective = BlockObjective(
            loss, scorer.bind(X), shard.truth, row_bytes(X), None, shard.weights, 0.0,
            shard.threads, None, shard.task.total,
        )  # fmt: skip
    return ObjectiveShard(objective, shard)


def feature_means(shard: TrainingShard, k: int | None) -> tuple[Floats, float]:
    weight = shard.row_weights
    return rows_sum(shard.data.X, weight), float(weight @ relevance(shard.truth, None, k))


def feature_products(
    shard: TrainingShard, k: int | None, mean: Floats, level: float
) -> tuple[Floats, Floats]:
    y = relevance(shard.truth, None, k)
    return moments(shard.data.X, y, shard.row_weights, mean, level)


def squared_error(shard: TrainingShard, k: int | None, params: Floats, intercept: float) -> float:
    y = relevance(shard.truth, None, k)
    off = y - LinearScoring(params, intercept).predict(shard.data.X)
    return float(shard.row_weights @ off**2)


def sampled_rows(shard: TrainingShard, kind: Weak, rows: tuple[int, int]) -> Sample:
    """What weak rankers are learned from.

    rows   the number of the first document that counts, and how many there are in all
    """
    sample = kind.sample(shard.in_memory().data.X, *rows)
    return np.array(sample) if isinstance(sample, np.ndarray) else sample


def boosting_shard(
    shard: TrainingShard, ranker: BoostingRanker, learned: Learned, start: Floats | None
) -> BoostingShard:
    """A shard with its weak rankers."""
    training = shard.in_memory()
    X = training.data.X
    pool = weak(ranker.weak).of(learned, X, shard.threads, shard.scratch.allocate)
    scores = np.zeros(training.data.n_docs)
    if start is not None:
        scores += pool.scoring([], start).predict(X)
    terms = [term for _, term in ranker._terms(training, pool)]
    return BoostingShard(pool, terms, scores, shard)
