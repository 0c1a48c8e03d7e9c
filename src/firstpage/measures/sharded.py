"""Measures over shards: each query's values where its shard is, and nothing else travels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.ids import Ids
from firstpage.data.shards.shards import Shards
from firstpage.engine.engine import Engine, ShardJob
from firstpage.errors import DataError
from firstpage.measures.inputs import make_lists
from firstpage.measures.measure import Convention, Measure
from firstpage.types import Floats

QUERIES = 1000  # scored at a time, so that scaling needs little memory


class StoredShard:
    """A shard as it was written."""

    nbytes = 0

    def __init__(self, shards: Shards, threads: int) -> None:
        self._opened, self.threads = shards.open(0, check=True), threads

    @property
    def data(self) -> Dataset:
        return self._opened.data

    def release(self) -> None:
        self._opened.release()


@dataclass(frozen=True, eq=False)
class StoredTask:
    """Opens a shard as it was written; `shards` has this one alone."""

    shards: Shards

    def open(self, threads: int) -> StoredShard:
        return StoredShard(self.shards, threads)


class Predicts(Protocol):
    """What predicts a Dataset by so many threads."""

    def predict(self, data: Dataset, threads: int | None = None) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Foreign:
    """Anything that predicts, as a model of ours does."""

    model: Any

    def predict(self, data: Dataset, threads: int | None = None) -> Any:
        return self.model.predict(data)


def predicted(shard: StoredShard, model: Predicts) -> Floats:
    """Return one score per document, some queries at a time."""
    data = shard.data
    blocks = range(0, len(data), QUERIES)
    found = [model.predict(data[lo : lo + QUERIES], shard.threads) for lo in blocks]
    return np.concatenate([np.empty(0), *found])


def predicted_shards(model: Predicts, shards: Shards, engine: Engine) -> Floats:
    """Return one score per document, shard after shard."""
    with closing(_stored(shards, engine)) as job:
        return job.concat(predicted, model)


def _stored(shards: Shards, engine: Engine) -> ShardJob[StoredShard]:
    return engine.job([StoredTask(shards.single(n)) for n in range(len(shards))])


@dataclass(frozen=True, eq=False)
class MeasureRequest:
    """What to measure.

    model   None: scores come with the call
    """

    model: Predicts | None
    measures: tuple[Measure, ...]
    how: Convention
    k: int | None


def measured(shard: StoredShard, request: MeasureRequest, scores: Floats) -> tuple[Floats, Ids]:
    """Return one row per measure, and the queries; scores only where there is no model."""
    if request.model is not None:
        scores = predicted(shard, request.model)
    lists = make_lists(scores, shard.data, request.how, None, None, request.k)
    values = np.array([m.values(lists, request.how) for m in request.measures])
    return values, shard.data.queries.compact()


def shard_values(
    system: Any, shards: Shards, measures: tuple[Measure, ...], how: Convention, k: int | None,
    engine: Engine,
) -> tuple[Floats, Ids]:  # fmt: skip
    """One row a measure and one column a query; and the queries."""
    model: Predicts | None = Foreign(system) if hasattr(system, "predict") else None
    if hasattr(system, "stage_for"):  # matched with the shards' features once, for all of them
        model = system.stage_for(shards)
    own = [np.empty(0)] * len(shards) if model is not None else list(_cut(system, shards))
    with closing(_stored(shards, engine)) as job:
        answers = job.map_own(measured, own, MeasureRequest(model, measures, how, k))
    queries = reduce(Ids.concatenate, [ids for _, ids in answers])
    return np.concatenate([values for values, _ in answers], axis=1), queries


def _cut(scores: Any, shards: Shards) -> Iterator[Floats]:
    """One score a document, shard after shard, as the shards need them."""
    given = np.asarray(scores, np.float64)
    if given.ndim != 1 or len(given) != shards.n_docs:
        raise DataError(f"there are {given.size} scores for {shards.n_docs} documents.")
    lo = 0
    for shard in shards.shards:
        yield given[lo : lo + shard.rows]
        lo += shard.rows
