"""Scores of the documents of shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.data.shards.shards import Shards
from firstpage.engine.engine import Engine
from firstpage.rankers.scorings import Stage
from firstpage.types import Floats


@dataclass(frozen=True, eq=False)
class ToScore:
    shards: Shards
    stage: Stage


class Scorer:
    """Scores a shard, some queries at a time."""

    nbytes = 0

    def __init__(self, spec: ToScore, threads: int) -> None:
        self._opened, self._stage = spec.shards.open(0, check=True), spec.stage
        self._threads = threads

    def release(self) -> None:
        self._opened.release()

    def scores(self) -> Floats:
        data = self._opened.data
        found = [
            self._stage.predict(data[lo : lo + QUERIES], self._threads)
            for lo in range(0, len(data), QUERIES)
        ]
        return np.concatenate([np.empty(0), *found])


QUERIES = 1000  # scored at a time, so that scaling needs little memory


def scores_of_shards(stage: Any, shards: Shards, engine: Engine) -> Floats:
    """One score a document, shard after shard."""
    specs = [ToScore(shards.alone(n), stage) for n in range(len(shards))]
    parts = engine.parts(Scorer, specs)
    try:
        return np.concatenate([np.empty(0), *parts.each("scores")])
    finally:
        parts.close()
