"""Training data: what rankers ask of documents, wherever these are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.transforms import MinMax, Standardize
from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.losses.levels import query_sums
from firstpage.losses.listwise import relevance
from firstpage.losses.loss import Loss, safe_inverse
from firstpage.rankers.fit.checks import varies, warn_of_overlap
from firstpage.rankers.fit.record import Record
from firstpage.rankers.trees.growth import (
    Gradients,
    Growth,
    GrowthOptions,
    LambdaRank,
    LambdaRankGrowth,
    LossGrowth,
    as_it_is,
)
from firstpage.scorers.linear import LinearScoring
from firstpage.scorers.scorer import BoundScorer
from firstpage.scorers.trees import Trees
from firstpage.solvers.boosting.boosting import State
from firstpage.solvers.boosting.pools import Pool
from firstpage.solvers.boosting.statistics import WeightedTerms
from firstpage.solvers.boosting.weak_rankers import Weak, weak
from firstpage.solvers.least_squares import ridge
from firstpage.solvers.objective import BlockObjective
from firstpage.solvers.solver import AnySolver, Objective
from firstpage.types import Floats

if TYPE_CHECKING:
    from firstpage.data.dataset import Features

MANY_COPIES = 1000  # of a document on average
Transform = MinMax | Standardize
Convert = Callable[[Truth], Truth]
"""From the truth of the data to the one that is trained on."""
Chosen = Sequence[tuple[int, float]]
"""Weak rankers and their steps, round by round."""
LeastSquares = tuple[Floats, float, float]
"""Weights, intercept, mean squared error."""


class Scorer(Protocol):
    """What a fit asks of a scorer that solvers can move.

    linear   whether scores are linear in the parameters
    device   where it is fitted: "cpu", "cuda" and the like
    """

    @property
    def linear(self) -> bool: ...
    @property
    def device(self) -> str: ...

    def bind(self, X: Features) -> BoundScorer:
        """Set it up on features."""
        ...


class BoostingRanker(Protocol):
    """What boosting asks of a ranker."""

    weak: str | Weak

    def _terms(self, training: InMemory, pool: Pool) -> WeightedTerms:
        """The terms of the loss, with weights that sum to 1."""
        ...

    def _begin(self, pool: Pool, terms: WeightedTerms, scores: Floats) -> State: ...


class TrainingData(Protocol):
    """Documents to learn from, in memory or in shards.

    transform      of the features, which models apply too
    weights        of documents, where they differ inside a query: as if copied
    query_weights  None: all alike
    """

    @property
    def n_features(self) -> int: ...
    @property
    def transform(self) -> Transform | None: ...
    @property
    def weights(self) -> Floats | None: ...
    @property
    def query_weights(self) -> Floats | None: ...

    def by_documents(self) -> Self:
        """The same, with queries that weigh by the number of their documents as well."""
        ...

    def fingerprint(self) -> Record: ...

    def varies(self) -> bool:
        """Whether any feature differs between two documents of a query."""
        ...

    def warn_of_overlap(self, valid: Dataset) -> None:
        """Warn where validation queries are known to be training queries."""
        ...

    def in_memory(self, who: str) -> InMemory:
        """The data themselves; shards are refused."""
        ...

    def bind(self, scorer: Scorer) -> BoundScorer:
        """The scorer, set up on the features."""
        ...

    def objective(
        self, loss: Loss, scorer: Scorer, bound: BoundScorer, l2: float, solver: AnySolver,
        threads: int | None,
    ) -> Objective:  # fmt: skip
        """The mean loss plus a penalty, as a function of the scorer's parameters."""
        ...

    def least_squares(self, k: int | None, l2: float) -> LeastSquares:
        """Ridge regression of the labels, or of the top-k map; every document counts alike."""
        ...

    def direction(self, k: int | None, l2: float) -> Floats:
        """The weights alone of such a regression, in which queries count by their weights."""
        ...

    def boosting_state(
        self, ranker: BoostingRanker, start: Floats | None, chosen: Chosen, threads: int | None
    ) -> State:
        """Where boosting stands after some rounds."""
        ...

    def loss_growth(self, trees: Trees, loss: Loss, options: GrowthOptions) -> Growth:
        """Trees that grow along the gradients of a loss."""
        ...

    def lambdarank_growth(self, trees: Trees, rank: LambdaRank, options: GrowthOptions) -> Growth:
        """Trees that grow by LightGBM's own lambdarank."""
        ...

    def close(self) -> None:
        """Let go of what is held elsewhere."""
        ...


@dataclass(frozen=True, eq=False)
class InMemory:
    """Documents grouped by query, with weights."""

    data: Dataset
    weights: Floats | None = None
    query_weights: Floats | None = None
    convert: Convert = as_it_is
    transform: Transform | None = None

    @property
    def n_features(self) -> int:
        return self.data.n_features

    @cached_property
    def truth(self) -> Truth:
        """The truth that is trained on."""
        return self.convert(self.data.truth)

    def in_memory(self, who: str) -> InMemory:
        return self

    def fingerprint(self) -> Record:
        return self.data.fingerprint()

    def varies(self) -> bool:
        return varies(self.data)

    def warn_of_overlap(self, valid: Dataset) -> None:
        warn_of_overlap(self.data, valid)

    def close(self) -> None:
        """Nothing is held elsewhere."""

    # --- weights

    def each_query(self) -> Floats:
        """One weight per query."""
        return np.ones(len(self.data)) if self.query_weights is None else self.query_weights

    def each_document(self) -> Floats:
        """One weight per document, as if copied; those of queries do not count."""
        return np.ones(self.data.n_docs) if self.weights is None else self.weights

    def row_weights(self) -> Floats:
        """One weight per document, times that of its query."""
        each = np.repeat(self.each_query(), self.data.lengths)
        return each if self.weights is None else each * self.weights

    def by_documents(self) -> InMemory:
        counts = query_sums(self.each_document(), self.data.offsets)
        shares = counts if self.query_weights is None else counts * self.query_weights
        return replace(self, query_weights=shares)

    def transformed(self, transform: Transform) -> InMemory:
        """The same with other features."""
        return replace(self, data=transform.apply(self.data), transform=transform)

    def without_empty(self) -> InMemory:
        """Queries without documents dropped."""
        data, shares = self.data, self.query_weights
        filled = data.lengths > 0
        if filled.all():
            return self
        offsets = np.append(data.offsets[:-1][filled], data.n_docs)  # the rows stay as they are
        kept = replace(data, offsets=offsets, queries=data.queries[np.flatnonzero(filled)])
        return replace(self, data=kept, query_weights=None if shares is None else shares[filled])

    def without_uninformative(self) -> InMemory:
        """Queries that prefer nothing to anything weigh nothing, unless there are no others."""
        data, each = self.data, self.each_document()
        starts = data.offsets[:-1]
        high = np.maximum.reduceat(np.where(each > 0, data.y, -np.inf), starts)
        low = np.minimum.reduceat(np.where(each > 0, data.y, np.inf), starts)
        informative = high > low
        if informative.all():
            return self
        shares = np.where(informative, self.each_query(), 0.0)
        return replace(self, query_weights=shares) if shares.sum() > 0 else self

    def positive_queries(self) -> InMemory:
        """Queries that weigh nothing left out."""
        shares = self.query_weights
        if shares is None or (shares > 0).all():
            return self
        kept = shares > 0
        rows = np.repeat(kept, self.data.lengths)
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, data=self.data[kept], weights=weights, query_weights=shares[kept])

    def with_copies(self, who: str) -> InMemory:
        """Documents of weight 2 written down twice, those of weight 0 not at all.

        For rankers that cannot weigh a document; queries keep their weights.
        """
        weights, data = self.weights, self.data
        if weights is None:
            return self
        if (weights != np.round(weights)).any():
            some = weights[np.argmax(weights != np.round(weights))]
            raise DataError(
                f"{who} cannot weigh a document but by copying it: weights that differ inside a "
                f"query must be whole numbers, and one is {some:g}. Weights of queries may be any."
            )
        if weights.sum() > MANY_COPIES * len(weights):
            raise DataError(
                f"{who} weighs documents by copying them, and {weights.sum():.3g} copies of "
                f"{len(weights)} documents are too many. Scale the weights down."
            )
        copies = weights.astype(np.int64)
        rows = np.repeat(np.arange(len(copies)), copies)
        reached = offsets_from_lengths(copies)
        copied = replace(
            data,
            X=data.X[rows],
            y=data.y[rows],
            offsets=reached[data.offsets],
            docids=None if data.docids is None else data.docids[rows],
            row_order=None,
        )
        return replace(self, data=copied, weights=None)

    # --- what fits ask for

    def bind(self, scorer: Scorer) -> BoundScorer:
        return scorer.bind(self.data.X)

    def objective(
        self, loss: Loss, scorer: Scorer, bound: BoundScorer, l2: float, solver: AnySolver,
        threads: int | None,
    ) -> Objective:  # fmt: skip
        host = BlockObjective(
            loss, bound, self.truth, row_bytes(self.data.X), self.weights, self.query_weights,
            l2, threads, solver.batch,
        )  # fmt: skip
        if scorer.device == "cpu":
            return host
        if solver.linear or (solver.batch and scorer.linear):
            raise DataError(
                f"on a device linear scores are fitted by 'lbfgs' or 'gd', not by "
                f"{type(solver).__name__}. Leave device= out, or choose another solver."
            )
        from firstpage.solvers.gpu.objective import device_objective

        return device_objective(host, self.truth, scorer.device)

    def least_squares(self, k: int | None, l2: float) -> LeastSquares:
        each = self.each_document()
        counts = query_sums(each, self.data.offsets)
        shares = counts if self.query_weights is None else counts * self.query_weights
        weight = each * np.repeat(shares * safe_inverse(counts), self.data.lengths)
        weight = weight / weight.sum()
        y = relevance(self.truth, self.weights, k)
        params, intercept = ridge(self.data.X, y, weight, l2)
        error = y - LinearScoring(params, intercept).predict(self.data.X)
        return params, intercept, float(weight @ error**2)

    def direction(self, k: int | None, l2: float) -> Floats:
        weight = np.repeat(self.each_query(), self.data.lengths)
        y = relevance(self.truth, None, k)
        return ridge(self.data.X, y, weight / weight.sum(), l2)[0]

    def boosting_state(
        self, ranker: BoostingRanker, start: Floats | None, chosen: Chosen, threads: int | None
    ) -> State:
        training = self.positive_queries()
        X = training.data.X
        pool = weak(ranker.weak).pool(X, training.row_weights(), threads)
        scores = np.zeros(training.data.n_docs)
        if start is not None:
            scores += pool.scoring([], start).predict(X)
        for number, step in chosen:
            pool.add(number, step, scores)
        return ranker._begin(pool, ranker._terms(training, pool), scores)

    def loss_growth(self, trees: Trees, loss: Loss, options: GrowthOptions) -> Growth:
        gradients = Gradients(loss, self.truth, self.weights, self.query_weights)
        return LossGrowth(trees, self.data.X, gradients, options)

    def lambdarank_growth(self, trees: Trees, rank: LambdaRank, options: GrowthOptions) -> Growth:
        rank.check(self.data.y, self.data.lengths)
        alike = self.weights is None and self.query_weights is None
        return LambdaRankGrowth(
            trees, self.data, None if alike else self.row_weights(), rank, options
        )


def row_bytes(X: Features) -> int:
    """Of a document's features, about."""
    if isinstance(X, np.ndarray):
        return int(np.dtype(X.dtype).itemsize * X.shape[1])
    return int(12 * X.nnz / max(X.shape[0], 1))


def with_weights(data: Dataset, given: object) -> InMemory:
    """Weights of documents or of queries.

    One number per query weighs the query.  One per document does so too where all documents of a
    query have the same; where they differ, a document of weight 2 counts as two copies.
    """
    if given is None:
        return InMemory(data)
    weight = np.asarray(given, np.float64)
    if weight.ndim != 1:
        raise DataError(f"Sample weights must be 1D array or scalar; the shape is {weight.shape}.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise DataError("weights must be finite and not negative.")
    lengths = data.lengths
    if len(weight) == len(data) and len(weight) != data.n_docs:
        return InMemory(data, None, _some(weight))
    if len(weight) != data.n_docs:
        raise DataError(
            f"there are {len(weight)} weights; give one a document ({data.n_docs}) or one a "
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
    even = low == high
    if even.all():
        return InMemory(data, None, _some(high))
    inside: Floats = np.where(np.repeat(even, lengths), 1.0, weight)
    return InMemory(data, inside, _some(np.where(even, high, 1.0)))


def _some(weights: Floats) -> Floats:
    if not weights.sum() > 0:
        raise DataError("all weights are zero; there is nothing to learn from.")
    return weights
