"""A shard made ready for training, on whatever machine it is worked on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.shards.shards import Opened, Shards
from firstpage.data.transforms import MinMax, Standardize
from firstpage.data.truth import Truth
from firstpage.engine.scratch import Scratch
from firstpage.errors import FirstpageWarning
from firstpage.losses.loss import Loss
from firstpage.rankers.fit.training_data import (
    Training,
    check_finite,
    row_bytes,
    varies,
    without_empty,
)
from firstpage.solvers.objective import Objective
from firstpage.solvers.sharded.shard_objective import SpreadPart
from firstpage.types import Floats


@dataclass(frozen=True, eq=False)
class Spec:
    """All that a machine needs to know to work on a shard.

    shards     with this one alone
    transform  of the features, query by query
    convert    the truth to that which is trained on
    flat       whether queries without a preference weigh nothing
    by_docs    whether queries weigh by the number of their documents
    total      what all queries of all shards weigh
    """

    shards: Shards
    transform: MinMax | Standardize | None
    convert: Callable[[Truth], Truth]
    flat: bool
    by_docs: bool = False
    total: float = 1.0
    loss: Loss | None = None
    scorer: Any = None
    more: Any = None  # what one kind of part needs


@dataclass(frozen=True)
class Survey:
    """What a shard has: queries with documents, documents; of these in queries that tell.

    varies    whether any feature differs between two documents of a query
    """

    queries: int
    documents: int
    telling: int
    telling_documents: int
    varies: bool


class Surveyor:
    """Looks through a shard once, before anything is learnt."""

    nbytes = 0

    def __init__(self, spec: Spec, threads: int) -> None:
        self._opened = spec.shards.open(0, check=True)

    def release(self) -> None:
        self._opened.release()

    def survey(self) -> Survey:
        check_finite(self._opened.data)
        data = without_empty(Training(self._opened.data, None, None)).data
        telling = tells(data)
        documents = int(data.lengths[telling].sum())
        return Survey(len(data), data.n_docs, int(telling.sum()), documents, varies(data))


def tells(data: Dataset) -> Any:
    """Which queries prefer anything to anything."""
    if not len(data):
        return np.zeros(0, bool)
    starts = data.offsets[:-1]
    return np.maximum.reduceat(data.y, starts) > np.minimum.reduceat(data.y, starts)


class Piece:
    """The documents of a shard as a ranker trains on them: scaled, without empty queries."""

    def __init__(self, spec: Spec, threads: int) -> None:
        self._opened: Opened = spec.shards.open(0)
        self.scratch = Scratch()
        self.spec = spec
        data = without_empty(Training(self._opened.data, None, None)).data
        if spec.transform is not None:
            # To disk again, not to memory: a pass shall need no more of it than without scaling.
            X: Any = data.X
            room = self.scratch.room(X.shape, X.dtype) if isinstance(X, np.ndarray) else None
            data = spec.transform.apply(data, room)
            self._opened.release()
        self.data = data
        self.shares: Floats = (data.lengths if spec.by_docs else np.ones(len(data))).astype(float)
        if spec.flat:
            self.shares = np.where(tells(data), self.shares, 0.0)

    @property
    def truth(self) -> Truth:
        return self.spec.convert(self.data.truth)

    def release(self) -> None:
        self._opened.release()
        self.scratch.release()


def objective_part(spec: Spec, threads: int) -> SpreadPart:
    """The sums of a loss over a shard."""
    piece = Piece(spec, threads)
    assert spec.loss is not None
    fitting = spec.scorer.fitting(piece.data.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)  # said once, by who asked for the parts
        objective = Objective(
            spec.loss, fitting, piece.truth, row_bytes(piece.data.X), None, piece.shares, 0.0,
            threads, None, spec.total,
        )  # fmt: skip
    return SpreadPart(objective, piece)
