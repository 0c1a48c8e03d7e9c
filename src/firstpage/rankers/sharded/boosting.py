"""Boosting on shards: what weak rankers are learnt from, and parts that add them up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from firstpage.rankers.fit.training_data import Training, heavy_queries
from firstpage.rankers.sharded.data import Spread
from firstpage.rankers.sharded.shard import Piece, Spec
from firstpage.solvers.boosting.weak_rankers import weak
from firstpage.solvers.sharded.boosting import BoostPart, Chosen, SpreadState
from firstpage.types import Floats


@dataclass(frozen=True, eq=False)
class Boosts:
    """ranker: not fitted; learnt: what all shards say of their features; start: of a warm start."""

    ranker: Any
    learnt: Any = None
    start: Floats | None = None


class Sampler:
    """Tells what weak rankers are to be learnt from."""

    nbytes = 0

    def __init__(self, spec: Spec, threads: int) -> None:
        self._piece, self._weak = Piece(spec, threads), weak(spec.more.ranker.weak)

    def release(self) -> None:
        self._piece.release()

    def sample(self, place: tuple[int, int]) -> Any:
        """place: the number of the first document that counts, and how many there are in all."""
        X = _heavy(self._piece).data.X
        found = self._weak.sample(X, *place)
        return np.array(found) if isinstance(found, np.ndarray) else found


def _heavy(piece: Piece) -> Training:
    return heavy_queries(Training(piece.data, None, piece.shares if piece.spec.flat else None))


def boost_part(spec: Spec, threads: int) -> BoostPart:
    """A shard with its weak rankers."""
    piece, more = Piece(spec, threads), spec.more
    training = _heavy(piece)
    X = training.data.X
    pool = weak(more.ranker.weak).of(more.learnt, X, threads, piece.scratch.room)
    scores = np.zeros(training.data.n_docs)
    if more.start is not None:
        scores += pool.scoring([], more.start).predict(X)
    truth = spec.convert(training.data.truth)
    parts = [part for _, part in more.ranker._parts(training, truth, pool)]
    return BoostPart(pool, parts, scores, piece)


def spread_state(
    training: Spread, ranker: Any, start: Floats | None, chosen: Chosen
) -> SpreadState:
    """Two reads of the shards: weak rankers are learnt from all, then each shard is set up."""
    from sklearn.base import clone

    kind, plain = weak(ranker.weak), clone(ranker)
    counts = [
        survey.telling_documents if training.flat else survey.documents
        for survey in training.surveys
    ]
    firsts = [0, *accumulate(counts)]
    samplers = training.parts(Sampler, more=Boosts(plain))
    own = [(first, firsts[-1]) for first in firsts[:-1]]
    learnt = kind.learn(samplers.each("sample", own=own))
    samplers.close()
    parts = training.parts(boost_part, more=Boosts(plain, learnt, start))
    nothing = training.nothing()
    pool = kind.of(learnt, nothing.X, 1)
    kinds = plain._parts(Training(nothing, None, None), nothing.truth, pool)
    return SpreadState(parts, pool, kinds, chosen)
