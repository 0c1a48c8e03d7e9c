"""Training data in shards, processed by an engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, TypeVar

import numpy as np

from firstpage.core import DataError, Floats
from firstpage.core.engine import CachedShard, Engine, ShardJob
from firstpage.data import Categories, Dataset, Ids, Transform
from firstpage.data.shards import LOAD_SHARDS, Shards
from firstpage.evaluation.measures import open_shards, reads_scale, with_scale
from firstpage.learning.losses.base import Loss
from firstpage.learning.losses.lambdaloss import LambdaLoss
from firstpage.learning.losses.plrank import ExpectedMeasure
from firstpage.learning.rankers.fit.checks import warn_of_shared_queries
from firstpage.learning.rankers.fit.progress import Record
from firstpage.learning.rankers.fit.training_data import (
    BoostingPlan,
    Chosen,
    Convert,
    InMemory,
    LeastSquares,
    Scorer,
)
from firstpage.learning.rankers.sharded.shard import (
    ShardSurvey,
    TrainingShard,
    TrainingTask,
    boosting_shard,
    feature_means,
    feature_products,
    greatest_label,
    greatest_measured_label,
    identity,
    objective_shard,
    queries_in_shard,
    sampled_rows,
    shared_with_shard,
    squared_error,
    survey,
)
from firstpage.learning.rankers.trees.growth import Growth, GrowthOptions, LambdaRankOptions
from firstpage.learning.scorers.scorer import BoundScorer
from firstpage.learning.scorers.trees import Trees
from firstpage.learning.solvers.boosting.boosting import BoostingState
from firstpage.learning.solvers.boosting.sharded import ShardedBoostingState
from firstpage.learning.solvers.least_squares import solve_normal_equations
from firstpage.learning.solvers.sharded import ShardedObjective
from firstpage.learning.solvers.solver import AnySolver

ON_A_CLUSTER = (
    "over shards, trees are grown by LightGBM on a Dask cluster (engine='dask://..'); on one "
    f"machine, or with XGBoost, they grow in memory: {LOAD_SHARDS}."
)
ONE_FOREST = (
    "over shards, trees have one forest, no noise and all queries; leave forests, noise and "
    f"query_fraction out, or {LOAD_SHARDS}."
)
IN_MEMORY = f"{{}} trains on data in memory, not on shards; {LOAD_SHARDS}, or use {{}}."
S = TypeVar("S", bound=CachedShard)


@dataclass(frozen=True, eq=False)
class ShardedData:
    """Training data in shards, without sample weights."""

    shards: Shards
    engine: Engine  # that processes them
    transform: Transform | None
    convert: Convert  # from the truth of the data to the truth for training
    surveys: tuple[ShardSurvey, ...]  # the counts of each shard
    drop_uninformative: bool  # queries with equal labels have weight 0
    by_length: bool = False  # queries are weighted by their numbers of documents
    jobs: list[ShardJob[Any]] = field(default_factory=list)  # of the fit, which `close` ends
    weights: ClassVar[None] = None
    query_weights: ClassVar[None] = None
    pairs: ClassVar[None] = None

    @classmethod
    def from_shards(
        cls,
        shards: Shards,
        engine: Engine,
        transform: Transform | None,
        convert: Convert,
        needs_preferences: bool,
        missing: bool = False,
    ) -> ShardedData:
        """Read all shards once and return them as training data.

        With `needs_preferences`, queries with equal labels have weight 0; with `missing`, features
        may be NaN.
        """
        with closing(open_shards(shards, engine)) as job:
            surveys = tuple(job.map(survey, missing))
        if not sum(s.documents for s in surveys):
            raise DataError(f"{shards.source} has no documents to learn from.")
        # Queries with equal labels have weight 0, unless all are so.
        queries, informative = (
            sum(s.queries for s in surveys),
            sum(s.informative for s in surveys),
        )
        drop_uninformative = needs_preferences and 0 < informative < queries
        return cls(shards, engine, transform, convert, surveys, drop_uninformative)

    @property
    def n_docs(self) -> int:
        return self.shards.n_docs

    @property
    def n_features(self) -> int:
        return self.shards.n_features

    @property
    def categories(self) -> Categories:
        return self.shards.categories

    @property
    def total(self) -> float:
        """The sum of the query weights."""
        if self.by_length:
            return float(sum(self._documents()))
        return float(
            sum(s.informative if self.drop_uninformative else s.queries for s in self.surveys)
        )

    def _documents(self) -> list[int]:
        """Return the number of documents of positive weight per shard."""
        return [
            s.informative_documents if self.drop_uninformative else s.documents
            for s in self.surveys
        ]

    def by_documents(self) -> ShardedData:
        return replace(self, by_length=True)

    def varies(self) -> bool:
        return any(survey.varies for survey in self.surveys)

    def has_preferences(self) -> bool:
        return any(survey.informative > 0 for survey in self.surveys)

    def fingerprint(self) -> Record:
        missing = sum(survey.missing for survey in self.surveys)
        return {**self.shards.fingerprint(), **({"missing": missing} if missing else {})}

    def warn_of_overlap(self, valid: Dataset) -> None:
        """Warn if validation queries are in a shard; features are compared where ids are equal."""
        with closing(open_shards(self.shards, self.engine)) as job:
            matched = job.map(queries_in_shard, valid.queries)
            candidates = [valid[queries] if len(queries) else None for queries in matched]
            indices = job.map_own(shared_with_shard, candidates, self.transform)
        filled = [queries for queries in matched if len(queries)]
        shared = [
            q for queries, i in zip(filled, indices, strict=True) for q in queries[i].tolist()
        ]
        warn_of_shared_queries(sorted(shared), valid)

    def in_memory(self, ranker_name: str) -> InMemory:
        raise DataError(IN_MEMORY.format(ranker_name, "a ranker with linear weights"))

    def tasks(self, setup: Callable[[TrainingShard], S]) -> list[TrainingTask[S]]:
        """Return one task per shard, to be sent to a worker."""
        first_queries = [0, *accumulate(survey.queries for survey in self.surveys)]
        return [
            TrainingTask(
                self.shards.single(n),
                self.transform,
                self.convert,
                self.drop_uninformative,
                self.by_length,
                self.total,
                first_queries[n],
                setup,
            )
            for n in range(len(self.shards))
        ]

    def job(self, setup: Callable[[TrainingShard], S]) -> ShardJob[S]:
        """Return a job with all shards open; it is closed at the end of the fit."""
        job = self.engine.job(self.tasks(setup))
        self.jobs.append(job)
        return job

    def close(self) -> None:
        while self.jobs:
            self.jobs.pop().close()

    def no_documents(self) -> Dataset:
        """Return a Dataset without documents, with the features of the shards."""
        kind, shape = np.dtype(self.shards.dtype), (0, self.n_features)
        X: Any = np.empty(shape, kind)
        if self.shards.is_sparse:
            from scipy.sparse import csr_array

            X = csr_array(shape, dtype=kind)
        return Dataset(X, np.empty(0), np.zeros(1, np.int64), Ids.from_values([]))

    # --- for fits

    def bind(self, scorer: Scorer, seed: int) -> BoundScorer:
        """Return the scorer bound to no documents, with as many features."""
        if not scorer.linear:
            name = type(scorer).__name__.lower()
            raise DataError(IN_MEMORY.format(f"scorer={name!r}", "scorer='linear'"))
        return scorer.bind(self.no_documents().X)

    def objective(
        self,
        loss: Loss,
        scorer: Scorer,
        bound: BoundScorer,
        l2: float,
        solver: AnySolver,
        threads: int | None,
    ) -> ShardedObjective:
        if scorer.device != "cpu":
            raise DataError("shards are processed on CPUs; leave device= out, or fit in memory.")
        loss = self._with_scale(loss)
        loss.target(self.no_documents().truth)  # for its warnings, once
        counts = [(s.queries, s.documents) for s in self.surveys]
        job = self.job(partial(objective_shard, loss=loss, scorer=scorer, batch=solver.batch))
        return ShardedObjective(job, bound, counts, l2, solver.batch)

    def _with_scale(self, loss: Loss) -> Loss:
        """Return the loss with the scale of grades of all shards, if it reads one from the data."""
        if not isinstance(loss, (LambdaLoss, ExpectedMeasure)):
            return loss
        if not reads_scale(loss.parsed_measure):
            return loss
        with closing(open_shards(self.shards, self.engine)) as job:
            greatest = job.max(greatest_label, self.convert)
        return replace(loss, measure=str(with_scale(loss.parsed_measure, greatest)))

    def least_squares(self, k: int | None, l2: float) -> LeastSquares:
        job, params, intercept = self._ridge(k, l2)
        return params, intercept, float(job.sum(squared_error, k, params, intercept))

    def direction(self, k: int | None, l2: float) -> Floats:
        return self._ridge(k, l2)[1]

    def _ridge(self, k: int | None, l2: float) -> tuple[ShardJob[TrainingShard], Floats, float]:
        """Return the job, the weights and the intercept of a ridge regression of the labels."""
        job = self.by_documents().job(identity)
        feature_mean, label_mean = job.sum(feature_means, k)
        gram, moments = job.sum(feature_products, k, feature_mean, label_mean)
        return job, *solve_normal_equations(gram, moments, feature_mean, label_mean, l2)

    def boosting_state(
        self, plan: BoostingPlan, start: Floats | None, chosen: Chosen, threads: int | None
    ) -> BoostingState:
        """Return the state of boosting; takes two passes, for the weak rankers and the setup."""
        kind, counts = plan.weak, self._documents()
        firsts = [0, *accumulate(counts)]
        samples = self.job(identity)
        rows = [(first, firsts[-1]) for first in firsts[:-1]]
        learned = kind.learn(samples.map_own(sampled_rows, rows, kind))
        plan = plan.with_scale(partial(samples.max, greatest_measured_label, plan.k))
        samples.close()
        job = self.job(partial(boosting_shard, plan=plan, learned=learned, start=start))
        empty = self.no_documents()
        pool = kind.build_pool(learned, empty.X, 1)
        terms = plan.terms(InMemory(empty), pool)
        return ShardedBoostingState(job, pool, terms, tuple(chosen))

    def loss_growth(self, trees: Trees, loss: Loss, options: GrowthOptions) -> Growth:
        from firstpage.learning.rankers.sharded.lightgbm import ClusterShards, loss_growth

        shards = ClusterShards(
            self.engine.client, self.shards, self.tasks(identity), self.drop_uninformative
        )
        return loss_growth(shards, trees, self._with_scale(loss), options)

    def lambdarank_growth(
        self, trees: Trees, rank: LambdaRankOptions, options: GrowthOptions
    ) -> Growth:
        from firstpage.learning.rankers.sharded.lightgbm import ClusterShards, lambdarank_growth

        shards = ClusterShards(
            self.engine.client, self.shards, self.tasks(identity), self.drop_uninformative
        )
        return lambdarank_growth(shards, trees, rank, options)


def check_trees(engine: Engine, trees: Trees) -> None:
    """Raise an error unless trees are grown by LightGBM on a cluster."""
    if engine.client is None or trees.library != "lightgbm":
        raise DataError(ON_A_CLUSTER)
    if trees.randomized:
        raise DataError(ONE_FOREST)
