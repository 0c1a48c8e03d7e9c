"""A shard prepared for training, on any machine, and the functions that workers apply to it."""

from __future__ import annotations

import mmap
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from firstpage.core import Array, Bools, DataError, FirstpageWarning, Floats, Ints
from firstpage.core.engine import CachedShard
from firstpage.data import Dataset, Ids, Transform, Truth, match_queries
from firstpage.data.shards import Shards, heap_bytes
from firstpage.evaluation.measures import StoredShard
from firstpage.learning.losses.base import Loss
from firstpage.learning.losses.listwise import relevance
from firstpage.learning.models.finite_values import check_finite
from firstpage.learning.rankers.fit.checks import shared_queries, varies
from firstpage.learning.rankers.fit.training_data import (
    BoostingPlan,
    Convert,
    InMemory,
    Scorer,
    row_bytes,
)
from firstpage.learning.scorers.linear import LinearScoring
from firstpage.learning.solvers.boosting.sharded import BoostingShard
from firstpage.learning.solvers.boosting.weak_rankers import (
    PoolParameters,
    ShardSample,
    WeakRankers,
)
from firstpage.learning.solvers.least_squares import moments, weighted_row_sum
from firstpage.learning.solvers.objective import BlockObjective
from firstpage.learning.solvers.sharded import ObjectiveShard

SMALL = 1 << 20  # bytes, up to which an array stays in memory


class Scratch:
    """Arrays on disk, in the folder for temporary files (`TMPDIR`), until the process ends."""

    def __init__(self) -> None:
        self.maps: list[mmap.mmap] = []

    def allocate(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an uninitialized array, mapped from an unlinked file if it is large."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape)) * kind.itemsize
        if size <= SMALL:
            return np.empty(shape, kind)
        try:
            with tempfile.TemporaryFile(prefix="firstpage-") as file:
                _reserve(file.fileno(), size)
                mapped = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise DataError(
                f"{tempfile.gettempdir()}: no space for {size / 2**20:.0f} MB of temporary "
                f"data ({error.strerror}); set TMPDIR to a folder with more space."
            ) from error
        self.maps.append(mapped)
        return np.frombuffer(mapped, kind).reshape(shape)

    def release(self) -> None:
        """Drop the pages in memory; they are read again when needed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapped in self.maps:
                mapped.madvise(mmap.MADV_DONTNEED)


def _reserve(file: int, size: int) -> None:
    """Allocate the file now: writing to a map on a full disk would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)


S = TypeVar("S", bound=CachedShard)


def informative_queries(data: Dataset) -> Bools:
    """Return a mask of the queries with different labels."""
    if not len(data):
        return np.zeros(0, bool)
    starts = data.offsets[:-1]
    mask: Bools = np.maximum.reduceat(data.y, starts) > np.minimum.reduceat(data.y, starts)
    return mask


@dataclass(frozen=True)
class ShardSurvey:
    """Counts of a shard, without empty queries."""

    queries: int
    documents: int
    informative: int  # queries with different labels
    informative_documents: int  # of these queries
    varies: bool  # whether any feature differs between two documents of a query
    missing: int  # features


def survey(shard: StoredShard, missing: bool) -> ShardSurvey:
    """Return the counts of a shard; raise an error if features are not finite, or not `missing`."""
    check_finite(shard.data, missing)
    data = InMemory(shard.data).without_empty().data
    informative = informative_queries(data)
    documents = int(data.lengths[informative].sum())
    return ShardSurvey(
        len(data),
        data.n_docs,
        int(informative.sum()),
        documents,
        varies(data),
        data.n_missing if missing else 0,
    )


def greatest_label(shard: StoredShard, convert: Convert) -> float:
    """Return the greatest label of a shard for training, at least 0."""
    truth = convert(InMemory(shard.data).without_empty().data.truth)
    return float(truth.max_labels.max(initial=0.0))


def queries_in_shard(shard: StoredShard, queries: Ids) -> Ints:
    """Return the indices of the queries whose ids are in a shard."""
    return np.flatnonzero(match_queries(queries, shard.data.queries) >= 0)


def shared_with_shard(
    shard: StoredShard, transform: Transform | None, candidates: Dataset
) -> list[int]:
    """Return the indices of the scaled queries with the id and the features of a shard's query."""
    data = shard.data[np.flatnonzero(match_queries(shard.data.queries, candidates.queries) >= 0)]
    return shared_queries(data if transform is None else transform.apply(data), candidates)


class TrainingShard:
    """The documents of a shard as a ranker trains on them: scaled, without empty queries."""

    def __init__(self, task: TrainingTask[Any], threads: int) -> None:
        self._opened, self.task, self.threads = task.shards.open(0), task, threads
        self.scratch = Scratch()
        data = InMemory(self._opened.data).without_empty().data
        if task.transform is not None:
            # On disk, so that a pass needs no more memory than without scaling.
            X = data.X
            buffer = self.scratch.allocate(X.shape, X.dtype) if isinstance(X, np.ndarray) else None
            data = task.transform.apply(data, buffer)
            self._opened.release()
        self.data = data
        self.weights: Floats = (data.lengths if task.by_length else np.ones(len(data))).astype(
            float
        )
        if task.drop_uninformative:
            self.weights = np.where(informative_queries(data), self.weights, 0.0)

    @property
    def nbytes(self) -> int:
        return 24 * self.data.n_docs + self.heap_bytes

    @cached_property
    def heap_bytes(self) -> int:
        """The bytes of the arrays that were not mapped, such as those of Parquet files."""
        scaled = 0 if self.task.transform is None else heap_bytes(self.data)
        return self._opened.nbytes + scaled

    def release(self) -> None:
        self._opened.release()
        self.scratch.release()

    @property
    def truth(self) -> Truth:
        return self.task.convert(self.data.truth)

    @property
    def row_weights(self) -> Floats:
        """Equal weights of the documents that count; their total over all shards is 1."""
        weights: Floats = np.repeat(self.weights > 0, self.data.lengths) / self.task.total
        return weights

    def in_memory(self) -> InMemory:
        """Return the queries of positive weight."""
        weights = self.weights if self.task.drop_uninformative else None
        return InMemory(self.data, None, weights, self.task.convert).positive_queries()


def identity(shard: TrainingShard) -> TrainingShard:
    """Return the shard unchanged."""
    return shard


@dataclass(frozen=True, eq=False)
class TrainingTask(Generic[S]):
    """What a worker needs to process a shard."""

    shards: Shards  # the shard alone
    transform: Transform | None
    convert: Convert  # from the truth of the data to the truth for training
    drop_uninformative: bool  # queries with equal labels have weight 0
    by_length: bool  # queries are weighted by their numbers of documents
    total: float  # the sum of the query weights over all shards
    first_query: int  # the number of the shard's first query among those of all shards
    setup: Callable[[TrainingShard], S]  # from the training shard to what works on it

    def open(self, threads: int) -> S:
        """Read the shard and set it up."""
        return self.setup(TrainingShard(self, threads))


def objective_shard(
    shard: TrainingShard, loss: Loss, scorer: Scorer, batch: int | None
) -> ObjectiveShard:
    """Return the objective of a loss over a shard, in batches of the queries of all shards."""
    X = shard.data.X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)  # `ShardedData.objective` has warned
        objective = BlockObjective(
            loss,
            scorer.bind(X),
            shard.truth,
            row_bytes(X),
            None,
            shard.weights,
            0.0,
            shard.threads,
            batch,
            shard.task.total,
            shard.task.first_query,
        )
    return ObjectiveShard(objective, shard)


def feature_means(shard: TrainingShard, k: int | None) -> tuple[Floats, float]:
    """Return the weighted sums of the features and of the labels."""
    weight = shard.row_weights
    return weighted_row_sum(shard.data.X, weight), float(weight @ relevance(shard.truth, None, k))


def feature_products(
    shard: TrainingShard, k: int | None, feature_mean: Floats, label_mean: float
) -> tuple[Floats, Floats]:
    """Return the weighted second moments of the centered features and labels."""
    y = relevance(shard.truth, None, k)
    return moments(shard.data.X, y, shard.row_weights, feature_mean, label_mean)


def squared_error(shard: TrainingShard, k: int | None, params: Floats, intercept: float) -> float:
    """Return the weighted squared error of a linear model."""
    y = relevance(shard.truth, None, k)
    residuals = y - LinearScoring(params, intercept).predict(shard.data.X)
    return float(shard.row_weights @ residuals**2)


def sampled_rows(shard: TrainingShard, kind: WeakRankers, rows: tuple[int, int]) -> ShardSample:
    """Return the sample that weak rankers are learned from.

    `rows` are the number of the shard's first document and the total number of documents.
    """
    sample = kind.sample(shard.in_memory().data.X, *rows)
    return np.array(sample) if isinstance(sample, np.ndarray) else sample


def greatest_measured_label(shard: TrainingShard, k: int | None) -> float:
    """Return the greatest label that boosting measures, of queries of positive weight."""
    return float(relevance(shard.in_memory().truth, None, k).max(initial=0.0))


def boosting_shard(
    shard: TrainingShard, plan: BoostingPlan, learned: PoolParameters, start: Floats | None
) -> BoostingShard:
    """Return a shard with its weak rankers and terms."""
    training = shard.in_memory()
    X = training.data.X
    pool = plan.weak.build_pool(learned, X, shard.threads, shard.scratch.allocate)
    scores = np.zeros(training.data.n_docs)
    if start is not None:
        scores += pool.scoring([], start).predict(X)
    terms = [term for _, term in plan.terms(training, pool)]
    return BoostingShard(pool, terms, scores, shard)
