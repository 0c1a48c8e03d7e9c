"""Training data in memory, and the protocol that they share with data in shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from firstpage.core import Bools, DataError, Floats, Ints
from firstpage.data import Categories, Dataset, Transform, Truth, offsets_from_lengths
from firstpage.data.preferences import PairTruth, RowPairs
from firstpage.learning.losses.base import Loss, safe_inverse
from firstpage.learning.losses.levels import query_sums
from firstpage.learning.losses.listwise import relevance
from firstpage.learning.rankers.fit.checks import varies, warn_of_overlap
from firstpage.learning.rankers.fit.progress import Record
from firstpage.learning.rankers.trees.growth import (
    Gradients,
    Growth,
    GrowthOptions,
    LambdaRankGrowth,
    LambdaRankOptions,
    LossGrowth,
    Randomness,
    identity,
)
from firstpage.learning.rankers.trees.xgboost_rank import XGBoostRankGrowth
from firstpage.learning.scorers.linear import LinearScoring
from firstpage.learning.scorers.scorer import BoundScorer
from firstpage.learning.scorers.trees import Trees
from firstpage.learning.solvers.boosting.boosting import BoostingState
from firstpage.learning.solvers.boosting.pools import WeakRankerPool
from firstpage.learning.solvers.boosting.statistics import WeightedTerms
from firstpage.learning.solvers.boosting.weak_rankers import WeakRankers
from firstpage.learning.solvers.least_squares import ridge
from firstpage.learning.solvers.objective import BlockObjective
from firstpage.learning.solvers.solver import AnySolver, Objective

if TYPE_CHECKING:
    from firstpage.data import Features

MAX_COPIES = 1000  # per document on average
Convert = Callable[[Truth], Truth]
"""From the truth of the data to the truth for training."""
Chosen = Sequence[tuple[int, float]]
"""Weak rankers and their step sizes, by round."""
LeastSquares = tuple[Floats, float, float]
"""Weights, intercept, mean squared error."""


class Scorer(Protocol):
    """A scorer with parameters that a solver can optimize."""

    @property
    def linear(self) -> bool:
        """Whether scores are linear in the parameters."""
        ...

    @property
    def device(self) -> str:
        """The device it is fitted on: "cpu", "cuda" and the like."""
        ...

    def bind(self, X: Features, offsets: Ints | None = None, seed: int = 0) -> BoundScorer:
        """Return the scorer bound to features, of queries that begin and end at `offsets`."""
        ...


class BoostingPlan(Protocol):
    """What boosting is given: weak rankers, and the terms of the loss."""

    @property
    def k(self) -> int | None: ...

    @property
    def weak(self) -> WeakRankers: ...

    def with_scale(self, greatest: Callable[[], float]) -> BoostingPlan:
        """Return the plan for a part of data with this greatest label."""
        ...

    def terms(self, training: InMemory, pool: WeakRankerPool) -> WeightedTerms:
        """Return the terms of the loss, with weights that sum to 1."""
        ...

    def state(self, pool: WeakRankerPool, terms: WeightedTerms, scores: Floats) -> BoostingState:
        """Return the state from which the rounds continue."""
        ...


class TrainingData(Protocol):
    """Documents to train on, in memory or in shards."""

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        ...

    @property
    def n_features(self) -> int:
        """The number of features."""
        ...

    @property
    def categories(self) -> Categories:
        """The categories of each column that holds categories."""
        ...

    @property
    def transform(self) -> Transform | None:
        """The scaling of the features, which becomes a part of the model."""
        ...

    @property
    def weights(self) -> Floats | None:
        """Weights of documents, where they differ within a query; they act as copies."""
        ...

    @property
    def query_weights(self) -> Floats | None:
        """Weights of queries; None: all equal."""
        ...

    @property
    def pairs(self) -> RowPairs | None:
        """Votes on pairs of documents, where these are trained on."""
        ...

    def by_documents(self) -> Self:
        """Return the data with query weights multiplied by the numbers of documents."""
        ...

    def fingerprint(self) -> Record:
        """Return the checksum and the size of the data."""
        ...

    def varies(self) -> bool:
        """Return whether any feature differs between two documents of a query."""
        ...

    def has_preferences(self) -> bool:
        """Return whether a query has different labels or, where pairs are trained on, votes."""
        ...

    def warn_of_overlap(self, valid: Dataset) -> None:
        """Warn if validation queries, scaled like the training data, are in the training data."""
        ...

    def in_memory(self, ranker_name: str) -> InMemory:
        """Return the data in memory; raise an error for shards."""
        ...

    def bind(self, scorer: Scorer, seed: int) -> BoundScorer:
        """Return the scorer bound to the features."""
        ...

    def objective(
        self,
        loss: Loss,
        scorer: Scorer,
        bound: BoundScorer,
        l2: float,
        solver: AnySolver,
        threads: int | None,
    ) -> Objective:
        """Return the mean loss plus the penalty as a function of the scorer's parameters."""
        ...

    def least_squares(self, k: int | None, l2: float) -> LeastSquares:
        """Return the ridge regression of the labels, or of the top-k labels, over documents."""
        ...

    def direction(self, k: int | None, l2: float) -> Floats:
        """Return the weights of such a regression, with the query weights."""
        ...

    def boosting_state(
        self, plan: BoostingPlan, start: Floats | None, chosen: Chosen, threads: int | None
    ) -> BoostingState:
        """Return the state of boosting after some rounds."""
        ...

    def loss_growth(self, trees: Trees, loss: Loss, options: GrowthOptions) -> Growth:
        """Return the growth of trees by the gradients of a loss."""
        ...

    def lambdarank_growth(
        self, trees: Trees, rank: LambdaRankOptions, options: GrowthOptions
    ) -> Growth:
        """Return the growth of trees by LightGBM's lambdarank."""
        ...

    def close(self) -> None:
        """Release resources on other machines."""
        ...


@dataclass(frozen=True, eq=False)
class InMemory:
    """Documents in memory, grouped by query, with weights."""

    data: Dataset  # scaled
    weights: Floats | None = None  # of documents, where they differ within a query: copies
    query_weights: Floats | None = None  # None: all equal
    convert: Convert = identity  # from the truth of the data to the truth for training
    transform: Transform | None = None  # that was applied
    pairs: RowPairs | None = None  # votes on documents, where these are trained on

    @property
    def n_docs(self) -> int:
        return self.data.n_docs

    @property
    def n_features(self) -> int:
        return self.data.n_features

    @property
    def categories(self) -> Categories:
        return self.data.categories

    @cached_property
    def truth(self) -> Truth:
        """The truth for training."""
        truth = self.convert(self.data.truth)
        return truth if self.pairs is None else PairTruth.of(truth, self.pairs)

    def in_memory(self, ranker_name: str) -> InMemory:
        return self

    def fingerprint(self) -> Record:
        return self.data.fingerprint()

    def varies(self) -> bool:
        return varies(self.data)

    def has_preferences(self) -> bool:
        return self.pairs is not None or bool(self._informative().any())

    def warn_of_overlap(self, valid: Dataset) -> None:
        warn_of_overlap(self.data, valid)

    def close(self) -> None:
        """Do nothing: there are no resources to release."""

    def each_query(self) -> Floats:
        """Return one weight per query."""
        return np.ones(len(self.data)) if self.query_weights is None else self.query_weights

    def each_document(self) -> Floats:
        """Return one weight per document, without the weights of queries."""
        return np.ones(self.data.n_docs) if self.weights is None else self.weights

    def row_weights(self) -> Floats:
        """Return one weight per document, multiplied by that of its query."""
        weights = np.repeat(self.each_query(), self.data.lengths)
        return weights if self.weights is None else weights * self.weights

    def by_documents(self) -> InMemory:
        counts = query_sums(self.each_document(), self.data.offsets)
        weights = counts if self.query_weights is None else counts * self.query_weights
        return replace(self, query_weights=weights)

    def transformed(self, transform: Transform) -> InMemory:
        """Return the data with scaled features."""
        return replace(self, data=transform.apply(self.data), transform=transform)

    def without_empty(self) -> InMemory:
        """Return the data without queries that have no documents."""
        data, weights = self.data, self.query_weights
        filled = data.lengths > 0
        if filled.all():
            return self
        offsets = np.append(data.offsets[:-1][filled], data.n_docs)  # the rows do not change
        data = replace(data, offsets=offsets, queries=data.queries[np.flatnonzero(filled)])
        return replace(self, data=data, query_weights=None if weights is None else weights[filled])

    def without_uninformative(self) -> InMemory:
        """Return the data with weight 0 for queries with equal labels, unless all are so."""
        informative = self._informative()
        if informative.all():
            return self
        query_weights = np.where(informative, self.each_query(), 0.0)
        return replace(self, query_weights=query_weights) if query_weights.sum() > 0 else self

    def _informative(self) -> Bools:
        """Return whether each query has different labels among documents of positive weight."""
        y, starts, weights = self.data.y, self.data.offsets[:-1], self.weights
        high = low = y
        if weights is not None:
            high, low = (np.where(weights > 0, y, absent) for absent in (-np.inf, np.inf))
        high, low = np.maximum.reduceat(high, starts), np.minimum.reduceat(low, starts)
        informative: Bools = high > low
        return informative

    def with_pairs(self, pairs: RowPairs, labeled: bool) -> InMemory:
        """Return the data with votes on pairs; queries without any have weight 0.

        Where labels are read too, queries with different labels keep their weight.
        """
        first = np.repeat(self.data.offsets[:-1], pairs.per_query())
        weights = self.each_document()
        copies = weights[first + pairs.left] * weights[first + pairs.right]
        voted = query_sums(copies, pairs.offsets) > 0
        if labeled:
            starts, y = self.data.offsets[:-1], self.data.y
            voted |= np.maximum.reduceat(y, starts) > np.minimum.reduceat(y, starts)
        query_weights = np.where(voted, self.each_query(), 0.0)
        if not query_weights.sum() > 0:
            raise DataError("all pairs are of queries of weight 0; there is nothing to learn from.")
        unweighted = voted.all() and self.query_weights is None
        return replace(self, pairs=pairs, query_weights=None if unweighted else query_weights)

    def positive_queries(self) -> InMemory:
        """Return the data without queries of weight 0."""
        query_weights = self.query_weights
        if query_weights is None or (query_weights > 0).all():
            return self
        positive = query_weights > 0
        rows = np.repeat(positive, self.data.lengths)
        weights = None if self.weights is None else self.weights[rows]
        pairs = None if self.pairs is None else self.pairs.take(positive)
        return replace(
            self,
            data=self.data[positive],
            weights=weights,
            query_weights=query_weights[positive],
            pairs=pairs,
        )

    def with_copies(self, ranker_name: str) -> InMemory:
        """Return the data with each document repeated as often as its weight.

        For rankers that cannot weight documents; the weights of queries stay.
        """
        weights, data = self.weights, self.data
        if weights is None:
            return self
        if (weights != np.round(weights)).any():
            fraction = weights[np.argmax(weights != np.round(weights))]
            raise DataError(
                f"{ranker_name} weights documents by copying them: weights that differ within a "
                f"query must be integers, and one is {fraction:g}. Weights of queries may be any."
            )
        if weights.sum() > MAX_COPIES * len(weights):
            raise DataError(
                f"{ranker_name} weights documents by copying them, and {weights.sum():.3g} copies "
                f"of {len(weights)} documents are too many. Scale the weights down."
            )
        copies = weights.astype(np.int64)
        rows = np.repeat(np.arange(len(copies)), copies)
        new_offsets = offsets_from_lengths(copies)
        copied = replace(
            data,
            X=data.X[rows],
            y=data.y[rows],
            offsets=new_offsets[data.offsets],
            docids=None if data.docids is None else data.docids[rows],
            row_order=None,
            positions=None if data.positions is None else data.positions[rows],
        )
        return replace(self, data=copied, weights=None)

    def bind(self, scorer: Scorer, seed: int) -> BoundScorer:
        return scorer.bind(self.data.X, self.data.offsets, seed)

    def objective(
        self,
        loss: Loss,
        scorer: Scorer,
        bound: BoundScorer,
        l2: float,
        solver: AnySolver,
        threads: int | None,
    ) -> Objective:
        host = BlockObjective(
            loss,
            bound,
            self.truth,
            row_bytes(self.data.X),
            self.weights,
            self.query_weights,
            l2,
            threads,
            solver.batch,
        )
        if scorer.device == "cpu":
            return host
        if solver.linear:
            raise DataError(
                f"on a device, linear scorers are fitted by 'lbfgs' or a descent, not by "
                f"{type(solver).__name__}. Leave device= out, or choose another solver."
            )
        from firstpage.learning.solvers.gpu.objective import device_objective

        return device_objective(host, self.truth, scorer.device)

    def least_squares(self, k: int | None, l2: float) -> LeastSquares:
        weights = self.each_document()
        counts = query_sums(weights, self.data.offsets)
        totals = counts if self.query_weights is None else counts * self.query_weights
        weights = weights * np.repeat(totals * safe_inverse(counts), self.data.lengths)
        weights = weights / weights.sum()
        y = relevance(self.truth, self.weights, k)
        params, intercept = ridge(self.data.X, y, weights, l2)
        residuals = y - LinearScoring(params, intercept).predict(self.data.X)
        return params, intercept, float(weights @ residuals**2)

    def direction(self, k: int | None, l2: float) -> Floats:
        weights = np.repeat(self.each_query(), self.data.lengths)
        y = relevance(self.truth, None, k)
        return ridge(self.data.X, y, weights / weights.sum(), l2)[0]

    def boosting_state(
        self, plan: BoostingPlan, start: Floats | None, chosen: Chosen, threads: int | None
    ) -> BoostingState:
        training = self.positive_queries()
        X = training.data.X
        pool = plan.weak.pool(X, training.row_weights(), threads)
        scores = np.zeros(training.data.n_docs)
        if start is not None:
            scores += pool.scoring([], start).predict(X)
        for number, step in chosen:
            pool.add(number, step, scores)
        return plan.state(pool, plan.terms(training, pool), scores)

    def loss_growth(self, trees: Trees, loss: Loss, options: GrowthOptions) -> Growth:
        training = self.positive_queries()  # the others would only cost time
        X, weights = training.data.X, training.query_weights
        randomness = Randomness(trees.noise, trees.query_fraction, options.seed)
        gradients = Gradients(loss, training.truth, training.weights, weights, randomness)
        grown = trees.for_loss(X.shape[0], X.shape[1], bool(options.categorical))
        return LossGrowth(grown, X, gradients, options)

    def lambdarank_growth(
        self, trees: Trees, rank: LambdaRankOptions, options: GrowthOptions
    ) -> Growth:
        rank.check(self.data.y, self.data.lengths)
        if trees.library == "xgboost":
            if self.weights is not None:
                raise DataError("XGBoost's rank:ndcg takes weights of queries, not of documents.")
            return XGBoostRankGrowth(trees, self.data, self.query_weights, rank, options)
        unweighted = self.weights is None and self.query_weights is None
        weights = None if unweighted else self.row_weights()
        return LambdaRankGrowth(trees, self.data, weights, rank, options)


def row_bytes(X: Features) -> int:
    """Return the approximate size of a document's features in bytes."""
    if isinstance(X, np.ndarray):
        return int(np.dtype(X.dtype).itemsize * X.shape[1])
    return int(12 * X.nnz / max(X.shape[0], 1))


def with_weights(data: Dataset, sample_weight: object) -> InMemory:
    """Return training data with weights of documents or of queries.

    One number per query is the weight of the query.  So is one number per document where they are
    equal within a query; where they differ, a document of weight 2 counts as two copies.  The
    weights of queries that the data have are multiplied with them.
    """
    if data.query_weights is not None:
        training = with_weights(replace(data, query_weights=None), sample_weight)
        weights = training.each_query() * data.query_weights
        return replace(training, query_weights=_check_positive(weights))
    if sample_weight is None:
        return InMemory(data)
    weight = np.asarray(sample_weight, np.float64)
    if weight.ndim != 1:
        raise DataError(f"Sample weights must be 1D array or scalar; the shape is {weight.shape}.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise DataError("weights must be finite and not negative.")
    lengths = data.lengths
    if len(weight) == len(data) and len(weight) != data.n_docs:
        return InMemory(data, None, _check_positive(weight))
    if len(weight) != data.n_docs:
        raise DataError(
            f"there are {len(weight)} weights; give one per document ({data.n_docs}) or one per "
            f"query ({len(data)})."
        )
    weight = data.to_row_order(weight)
    filled = lengths > 0
    starts = data.offsets[:-1][filled]
    low, high = np.zeros(len(data)), np.zeros(len(data))
    low[filled], high[filled] = (
        np.minimum.reduceat(weight, starts),
        np.maximum.reduceat(weight, starts),
    )
    equal = low == high
    if equal.all():
        return InMemory(data, None, _check_positive(high))
    within: Floats = np.where(np.repeat(equal, lengths), 1.0, weight)
    return InMemory(data, within, _check_positive(np.where(equal, high, 1.0)))


def _check_positive(weights: Floats) -> Floats:
    """Return weights of which at least one is positive; raise an error otherwise."""
    if not weights.sum() > 0:
        raise DataError("all weights are zero; there is nothing to learn from.")
    return weights
