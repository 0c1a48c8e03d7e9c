"""Measures over shards: values are computed where each shard is, and only values are sent back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np

from firstpage.core import DataError, Floats
from firstpage.core.engine import Engine, ShardJob
from firstpage.data import Column, Dataset, Ids
from firstpage.data.shards import Shards
from firstpage.evaluation.measures.base import Convention, Measure, measured_values, needs_of
from firstpage.evaluation.measures.graded import with_scale
from firstpage.evaluation.measures.inputs import make_lists, number_column

BATCH_QUERIES = 1000  # queries scored at a time, so that feature scaling needs little memory


class StoredShard:
    """An open shard, with the data as they were written."""

    def __init__(self, shards: Shards, threads: int) -> None:
        self._opened, self.threads = shards.open(0, check=True), threads

    @property
    def data(self) -> Dataset:
        return self._opened.data

    @property
    def nbytes(self) -> int:
        return self._opened.nbytes

    def release(self) -> None:
        self._opened.release()


@dataclass(frozen=True, eq=False)
class StoredTask:
    """A task that opens a stored shard; `shards` contains only this one."""

    shards: Shards

    def open(self, threads: int) -> StoredShard:
        return StoredShard(self.shards, threads)


class Predictor(Protocol):
    """A model that scores a Dataset with a number of threads."""

    def predict(self, data: Dataset, threads: int | None = None) -> Floats: ...


@dataclass(frozen=True, eq=False)
class ExternalModel:
    """Adapter of any object with a `predict` method."""

    model: Any

    def predict(self, data: Dataset, threads: int | None = None) -> Any:
        return self.model.predict(data)


def predict_shard(shard: StoredShard, model: Predictor) -> Floats:
    """Return one score per document of a shard, predicted in batches of queries."""
    data = shard.data
    starts = range(0, len(data), BATCH_QUERIES)
    batches = [model.predict(data[lo : lo + BATCH_QUERIES], shard.threads) for lo in starts]
    return np.concatenate([np.empty(0), *batches])


def predict_lines(shard: StoredShard, model: Predictor) -> Floats:
    """Return one score per document of a shard, in the order of its file."""
    return shard.data.to_file_order(predict_shard(shard, model))


def predict_shards(model: Predictor, shards: Shards, engine: Engine) -> Floats:
    """Return one score per document, shard after shard, in the order of the files."""
    with closing(open_shards(shards, engine)) as job:
        return job.concat(predict_lines, model)


def open_shards(shards: Shards, engine: Engine) -> ShardJob[StoredShard]:
    """Return a job over the shards as they are stored."""
    return engine.job([StoredTask(shards.single(n)) for n in range(len(shards))])


@dataclass(frozen=True, eq=False)
class MeasureRequest:
    """Measures to compute on each shard; `model` None means that scores come with the call."""

    model: Predictor | None
    measures: tuple[Measure, ...]
    convention: Convention
    k: int | None


def measure_shard(
    shard: StoredShard, request: MeasureRequest, scores: Floats
) -> tuple[Floats, Ids]:
    """Return the values of a shard, one row per measure, and its queries.

    `scores`, in the order of the file, are used only where the request has no model.
    """
    if request.model is None:
        scores = shard.data.to_row_order(scores)
    else:
        scores = predict_shard(shard, request.model)
    needs = needs_of(request.measures, request.convention)
    lists = make_lists(scores, shard.data, request.convention, None, None, request.k, needs=needs)
    values = np.array([measured_values(m, lists, request.convention) for m in request.measures])
    return values, lists.queries.compact()


def shard_values(
    system: Any,
    shards: Shards,
    measures: tuple[Measure, ...],
    convention: Convention,
    k: int | None,
    engine: Engine,
) -> tuple[Floats, Ids]:
    """Return the values of all shards, one row per measure and one column per query; and ids."""
    model: Predictor | None = ExternalModel(system) if hasattr(system, "predict") else None
    if hasattr(system, "stage_for"):  # matched with the shards' features once, for all of them
        model = system.stage_for(shards)
    scores = [np.empty(0)] * len(shards) if model is not None else list(_split(system, shards))
    greatest = shards.labels[1] if k is None else float(k)  # a top-k truth has the label k
    scaled = tuple(with_scale(measure, greatest) for measure in measures)
    with closing(open_shards(shards, engine)) as job:
        results = job.map_own(measure_shard, scores, MeasureRequest(model, scaled, convention, k))
    queries = reduce(Ids.concatenate, [ids for _, ids in results])
    return np.concatenate([values for values, _ in results], axis=1), queries


def _split(scores: Any, shards: Shards) -> Iterator[Floats]:
    """Yield the scores of each shard from one score per document."""
    if isinstance(scores, (Mapping, Column)):
        raise DataError(
            "shards go with a fitted ranker, or with one score per document; got a run, which "
            "requires judgments (qrels)."
        )
    values = number_column(scores, "scores")
    if len(values) != shards.n_docs:
        raise DataError(f"there are {len(values)} scores for {shards.n_docs} documents.")
    lo = 0
    for shard in shards.shards:
        yield values[lo : lo + shard.rows]
        lo += shard.rows
