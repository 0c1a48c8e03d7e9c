"""Measures over shards: each query's values where its shard is, and nothing else travels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.ids import Ids
from firstpage.data.shards.shards import Shards
from firstpage.engine.engine import Engine
from firstpage.errors import DataError
from firstpage.measures.inputs import make_lists
from firstpage.measures.measure import Convention, Measure
from firstpage.types import Floats

QUERIES = 1000  # scored at a time, so that scaling needs little memory


@dataclass(frozen=True, eq=False)
class Asked:
    """A shard with itself alone, and what to measure on it."""

    shards: Shards
    model: Any  # what predicts a Dataset by so many threads; None: scores come with the call
    measures: tuple[Measure, ...]
    how: Convention
    k: int | None


@dataclass(frozen=True, eq=False)
class Foreign:
    """Anything that predicts, as a model of ours does."""

    model: Any

    def predict(self, data: Dataset, threads: int | None = None) -> Any:
        return self.model.predict(data)


class Measured:
    """The values of a shard's queries."""

    nbytes = 0

    def __init__(self, asked: Asked, threads: int) -> None:
        self._opened, self._asked = asked.shards.open(0, check=True), asked
        self._threads = threads

    def release(self) -> None:
        self._opened.release()

    def values(self, scores: Floats | str) -> tuple[Floats, Ids]:
        """One row a measure; scores of the shard's documents, or "model"."""
        asked, data = self._asked, self._opened.data
        if isinstance(scores, str):
            blocks = range(0, len(data), QUERIES)
            found = [asked.model.predict(data[lo : lo + QUERIES], self._threads) for lo in blocks]
            scores = np.concatenate([np.empty(0), *found])
        lists = make_lists(scores, data, asked.how, None, None, asked.k)
        values = np.array([m.values(lists, asked.how) for m in asked.measures])
        return values, data.queries.compact()


def shard_values(
    system: Any, shards: Shards, measures: tuple[Measure, ...], how: Convention, k: int | None,
    engine: Engine,
) -> tuple[Floats, Ids]:  # fmt: skip
    """One row a measure and one column a query; and the queries."""
    model = Foreign(system) if hasattr(system, "predict") else None
    if hasattr(system, "stage_for"):  # matched with the shards' features once, for all of them
        model = system.stage_for(shards)
    own = ["model"] * len(shards) if model is not None else list(_cut(system, shards))
    specs = [Asked(shards.alone(n), model, measures, how, k) for n in range(len(shards))]
    parts = engine.parts(Measured, specs)
    try:
        answers = parts.each("values", own=own)
    finally:
        parts.close()
    queries = reduce(Ids.chained, [ids for _, ids in answers])
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
