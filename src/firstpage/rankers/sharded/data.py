"""Training data in shards: what `InMemory` is to rankers, worked on by an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, TypeVar

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.ids import Ids
from firstpage.data.shards.shards import Shards
from firstpage.engine.engine import Engine, OpenShard, ShardJob
from firstpage.errors import DataError
from firstpage.losses.loss import Loss
from firstpage.measures.sharded import StoredTask
from firstpage.rankers.fit.record import Record
from firstpage.rankers.fit.training_data import (
    BoostingRanker,
    Chosen,
    Convert,
    InMemory,
    LeastSquares,
    Scorer,
    Transform,
)
from firstpage.rankers.sharded.shard import (
    Survey,
    TrainingShard,
    TrainingTask,
    as_opened,
    boosting_shard,
    feature_means,
    feature_products,
    objective_shard,
    sampled_rows,
    squared_error,
    survey,
)
from firstpage.rankers.trees.growth import Growth, GrowthOptions, LambdaRank
from firstpage.scorers.scorer import BoundScorer
from firstpage.scorers.trees import Trees
from firstpage.solvers.boosting.boosting import State
from firstpage.solvers.boosting.weak_rankers import weak
from firstpage.solvers.least_squares import solved
from firstpage.solvers.sharded.boosting import ShardedState
from firstpage.solvers.sharded.objective import ShardedObjective
from firstpage.solvers.solver import AnySolver
from firstpage.types import Floats

ON_A_CLUSTER = (
    "over shards trees are grown by LightGBM on a Dask cluster (engine='dask://..'); on one "
    "machine, or by XGBoost, they grow in memory: read the data with fp.read."
)
IN_MEMORY = "{} trains on data in memory, not on shards; read them with fp.read, or take {}."
BY_QUERY = (
    "this solver goes from query to query, which needs data in memory; over shards take 'lbfgs', "
    "'gd' or 'cutting plane'."
)
S = TypeVar("S", bound=OpenShard)


@dataclass(frozen=True, eq=False)
class Sharded:
    """Documents in shards, all queries alike.

    drops     whether queries without a preference weigh nothing
    by_docs   whether queries weigh by the number of their documents
    """

    shards: Shards
    engine: Engine
    transform: Transform | None
    convert: Convert
    surveys: tuple[Survey, ...]
    drops: bool
    by_docs: bool = False
    jobs: list[ShardJob[Any]] = field(default_factory=list)
    weights: ClassVar[None] = None
    query_weights: ClassVar[None] = None

    @classmethod
    def of(
        cls, shards: Shards, engine: Engine, transform: Transform | None, convert: Convert,
        prefers: bool,
    ) -> Sharded:  # fmt: skip
        """Look through all shards once.

        prefers   whether queries without a preference say nothing to the ranker
        """
        job = engine.job([StoredTask(shards.single(n)) for n in range(len(shards))])
        try:
            surveys = tuple(job.map(survey))
        finally:
            job.close()
        if not sum(s.documents for s in surveys):
            raise DataError(f"{shards.source} has no documents to learn from.")
        # Queries that prefer nothing to anything weigh nothing, unless there are no others.
        queries, informative = (
            sum(s.queries for s in surveys),
            sum(s.informative for s in surveys),
        )
        drops = prefers and 0 < informative < queries
        return cls(shards, engine, transform, convert, surveys, drops)

    @property
    def n_features(self) -> int:
        return self.shards.n_features

    @property
    def total(self) -> float:
        """What all queries weigh."""
        if self.by_docs:
            return float(sum(self._documents()))
        return float(sum(s.informative if self.drops else s.queries for s in self.surveys))

    def _documents(self) -> list[int]:
        """How many documents of each shard count."""
        return [s.informative_documents if self.drops else s.documents for s in self.surveys]

    def by_documents(self) -> Sharded:
        return replace(self, by_docs=True)

    def varies(self) -> bool:
        return any(survey.varies for survey in self.surveys)

    def fingerprint(self) -> Record:
        return self.shards.fingerprint()

    def warn_of_overlap(self, valid: Dataset) -> None:
        """Features of shards are not compared: that would read all of them."""

    def in_memory(self, who: str) -> InMemory:
        raise DataError(IN_MEMORY.format(who, "a ranker with linear weights"))

    def tasks(self, setup: Callable[[TrainingShard], S]) -> list[TrainingTask[S]]:
        """What a machine needs to know of each shard."""
        return [
            TrainingTask(
                self.shards.single(n), self.transform, self.convert, self.drops, self.by_docs,
                self.total, setup,
            )
            for n in range(len(self.shards))
        ]  # fmt: skip

    def job(self, setup: Callable[[TrainingShard], S]) -> ShardJob[S]:
        """Open all shards; they are closed with all others at the end of the fit."""
        job = self.engine.job(self.tasks(setup))
        self.jobs.append(job)
        return job

    def close(self) -> None:
        while self.jobs:
            self.jobs.pop().close()

    def no_documents(self) -> Dataset:
        """No documents, of as many features."""
        kind, shape = np.dtype(self.shards.dtype), (0, self.n_features)
        X: Any = np.empty(shape, kind)
        if self.shards.is_sparse:
            from scipy.sparse import csr_array

            X = csr_array(shape, dtype=kind)
        return Dataset(X, np.empty(0), np.zeros(1, np.int64), Ids.from_values([]))

    # --- what fits ask for

    def bind(self, scorer: Scorer) -> BoundScorer:
        """The scorer set up on no documents, as many features wide."""
        if not scorer.linear:
            name = type(scorer).__name__.lower()
            raise DataError(IN_MEMORY.format(f"scorer={name!r}", "scorer='linear'"))
        return scorer.bind(self.no_documents().X)

    def objective(
        self, loss: Loss, scorer: Scorer, bound: BoundScorer, l2: float, solver: AnySolver,
        threads: int | None,
    ) -> ShardedObjective:  # fmt: skip
        if solver.batch is not None:
            raise DataError(BY_QUERY)
        if scorer.device != "cpu":
            raise DataError(
                "shards are worked through by CPUs; leave device= out, or fit in memory."
            )
        loss.target(self.no_documents().truth)  # warns of what there is to warn of, once
        counts = [(s.queries, s.documents) for s in self.surveys]
        job = self.job(partial(objective_shard, loss=loss, scorer=scorer))
        return ShardedObjective(job, bound, counts, l2)

    def least_squares(self, k: int | None, l2: float) -> LeastSquares:
        job, params, intercept = self._ridge(k, l2)
        return params, intercept, float(job.sum(squared_error, k, params, intercept))

    def direction(self, k: int | None, l2: float) -> Floats:
        return self._ridge(k, l2)[1]

    def _ridge(self, k: int | None, l2: float) -> tuple[ShardJob[TrainingShard], Floats, float]:
        job = self.by_documents().job(as_opened)
        mean, level = job.sum(feature_means, k)
        gram, right = job.sum(feature_products, k, mean, level)
        return job, *solved(gram, right, mean, level, l2)

    def boosting_state(
        self, ranker: BoostingRanker, start: Floats | None, chosen: Chosen, threads: int | None
    ) -> State:
        """Two reads of the shards: weak rankers are learned from all, then each shard is set up."""
        from sklearn.base import clone

        plain: BoostingRanker = clone(ranker)
        kind, counts = weak(plain.weak), self._documents()
        firsts = [0, *accumulate(counts)]
        samples = self.job(as_opened)
        rows = [(first, firsts[-1]) for first in firsts[:-1]]
        learned = kind.learn(samples.map_own(sampled_rows, rows, kind))
        samples.close()
        job = self.job(partial(boosting_shard, ranker=plain, learned=learned, start=start))
        nothing = self.no_documents()
        pool = kind.of(learned, nothing.X, 1)
        terms = plain._terms(InMemory(nothing), pool)
        return ShardedState(job, pool, terms, tuple(chosen))

    def loss_growth(self, trees: Trees, loss: Loss, options: GrowthOptions) -> Growth:
        from firstpage.rankers.sharded.lightgbm import ClusterShards, loss_growth

        shards = ClusterShards(self.engine.client, self.shards, self.tasks(as_opened), self.drops)
        return loss_growth(shards, trees, loss, options)

    def lambdarank_growth(self, trees: Trees, rank: LambdaRank, options: GrowthOptions) -> Growth:
        from firstpage.rankers.sharded.lightgbm import ClusterShards, lambdarank_growth

        shards = ClusterShards(self.engine.client, self.shards, self.tasks(as_opened), self.drops)
        return lambdarank_growth(shards, trees, rank, options)


def check_trees(engine: Engine, trees: Trees) -> None:
    """Trees are grown from shards by a library that has a way of its own, on a cluster."""
    if engine.client is None or trees.library != "lightgbm":
        raise DataError(ON_A_CLUSTER)
