"""Growing trees on training data in memory, by the gradients of a loss or by lambdarank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from firstpage.core import DataError, Floats, Ints
from firstpage.core.kernels import random_words
from firstpage.data import Dataset, Ids, Truth, offsets_from_lengths
from firstpage.learning.losses.base import Loss
from firstpage.learning.rankers.fit.checks import check_labels
from firstpage.learning.scorers.tree_scoring import import_lightgbm, library_errors
from firstpage.learning.scorers.trees import LightGBM, TreeCallback, Trees

if TYPE_CHECKING:
    from firstpage.data import Features


TREE_RATES = (0.03, 0.1)  # learning rates to choose from

LibraryData = Any
"""A LightGBM Dataset, an XGBoost DMatrix, or an array of theirs."""


def tree_grid(trees: Trees) -> dict[str, list[Any]]:
    """Return the values to try in tuning: these trees with several learning rates."""
    return {"scorer": [replace(trees, rate=rate) for rate in TREE_RATES]}


@dataclass(frozen=True)
class Randomness:
    """Random numbers of each call of the gradients, the same for any number of threads.

    Attributes
    ----------
    noise : float
        The standard deviation of the noise of a score.
    query_fraction : float
        The probability that a query counts.
    seed : int
        The seed.
    """

    noise: float = 0.0
    query_fraction: float = 1.0
    seed: int = 0

    @property
    def is_random(self) -> bool:
        """Whether there is any noise, or a query may not count."""
        return self.noise > 0 or self.query_fraction < 1

    def score_noise(self, rows: int, call: int) -> Floats | float:
        """Return the noise of each score; 0 without noise."""
        if self.noise == 0:
            return 0.0
        from scipy.special import ndtri  # slow to import

        return np.asarray(self.noise * ndtri(self._uniform(rows, call, 0)), np.float64)

    def queries(self, count: int, call: int) -> Floats:
        """Return 1 for each query that counts and 0 for the others; at least one counts."""
        if self.query_fraction == 1:
            return np.ones(count)
        uniform = self._uniform(count, call, 1)
        limit = max(self.query_fraction, float(uniform.min(initial=1.0)))
        return np.asarray(uniform <= limit, np.float64)

    def _uniform(self, count: int, call: int, stream: int) -> Floats:
        """Return numbers above 0 and below 1."""
        start = np.random.SeedSequence([self.seed, call, stream]).generate_state(1, np.uint64)
        words = np.empty(count, np.uint64)
        random_words(start.astype(np.uint64), np.array([0, count]), words)
        return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


class Gradients:
    """The gradient and the curvature of the summed loss with respect to each score.

    A leaf steps by the ratio of its gradients and its curvatures.  For a relevant document of small
    probability p that would be 1 / p, a hundred units of score, although the quadratic
    approximation is valid for about one unit: such trees fit noise.  Therefore the curvature is
    never less than the absolute gradient, and no leaf steps further than 1 (times the learning
    rate).  Quadratic losses do not need this.

    With `randomness`, each call adds normal noise to the scores, so that the gradient is an
    estimate without bias of that of the expected loss at scores with such noise; and it leaves out
    some of the queries, whose gradients and curvatures are then 0.
    """

    def __init__(
        self,
        loss: Loss,
        truth: Truth,
        weights: Floats | None = None,
        query_weights: Floats | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        target = loss.target(truth, weights)
        target.check_derivatives(curvature=True)
        rows = len(truth.labels)
        self.scores, self.values = np.empty(rows), np.empty(len(truth))
        self.gradient, self.curvature = np.empty(rows), np.empty(rows)
        self.query_weights = np.ones(len(truth)) if query_weights is None else query_weights
        self._row_weights = (
            None if query_weights is None else np.repeat(query_weights, truth.lengths)
        )
        self._randomness = randomness if randomness and randomness.is_random else None
        self._lengths, self._calls = truth.lengths, 0
        self._quadratic = loss.traits.quadratic
        self._run = target.bind_derivatives(
            0, len(truth), self.scores, self.values, self.gradient, self.curvature
        )

    def __call__(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the curvature at these scores, one per document."""
        self.scores[:] = scores
        row_weights = self._row_weights
        if self._randomness is not None:
            self.scores += self._randomness.score_noise(len(scores), self._calls)
            drawn = np.repeat(
                self._randomness.queries(len(self._lengths), self._calls), self._lengths
            )
            row_weights = drawn if row_weights is None else row_weights * drawn
            self._calls += 1
        self._run()
        gradient, curvature = self.gradient.copy(), self.curvature.copy()
        if not self._quadratic:
            np.maximum(curvature, np.abs(gradient), out=curvature)
        if row_weights is not None:
            gradient, curvature = gradient * row_weights, curvature * row_weights
        return gradient, curvature

    def mean_loss(self) -> float:
        """Return the mean loss over queries at the last scores, with their noise."""
        return float(self.values @ self.query_weights / self.query_weights.sum())


NO_GROUPS = (
    "the training data have no query groups. LightGBM: Dataset(.., group=sizes) or "
    "LGBMRanker.fit(.., group=sizes); XGBoost: DMatrix(.., qid=qid)."
)


class TreeObjective:
    """A loss as a custom objective of LightGBM and XGBoost.

    The training functions of both libraries call it after every tree as (scores, data), the
    estimators of LightGBM as (labels, scores, weights, groups).  It returns the gradient and the
    curvature, one value per document.  Weights of documents are averaged to one per query.

    Attributes
    ----------
    name : str
        The name of the ranker or the loss.
    loss : Loss
        The loss.
    """

    def __init__(self, name: str, loss: Loss, order: Callable[[Truth], Truth]) -> None:
        self.name, self.loss, self._order = name, loss, order
        self._key: tuple[bytes, ...] | None = None
        self._gradients: Gradients | None = None

    def __call__(
        self,
        first: LibraryData,
        second: LibraryData,
        weight: object = None,
        group: Sequence[int] | Ints | None = None,
    ) -> tuple[Floats, Floats]:
        """Return the gradient and the curvature, one value per document."""
        if hasattr(second, "get_label"):
            labels, weight, offsets = second.get_label(), second.get_weight(), offsets_of(second)
            scores = first
        else:
            if group is None:
                raise DataError(NO_GROUPS)
            labels, scores = first, second
            offsets = offsets_from_lengths(group)
        return self._prepared(labels, weight, offsets)(np.asarray(scores, np.float64).ravel())

    def __getstate__(self) -> dict[str, object]:
        """Return the state without the gradients, which a copy has to prepare itself."""
        return {**self.__dict__, "_key": None, "_gradients": None}

    def _prepared(self, labels: object, weight: object, offsets: Ints) -> Gradients:
        """Return the gradients of these data, which are prepared once and not for each tree."""
        y = check_labels(labels, int(offsets[-1]))
        weights = np.empty(0) if weight is None else np.asarray(weight, np.float64)
        key = (y.tobytes(), weights.tobytes(), offsets.tobytes())
        if self._gradients is None or key != self._key:
            queries = Ids.from_values([str(q) for q in range(len(offsets) - 1)])
            truth: Truth = self._order(Truth(y, offsets, queries))
            query_weights = None
            if len(weights) == len(offsets) - 1 and len(weights) != len(y):
                query_weights = weights
            elif len(weights):
                counts = np.maximum(np.diff(offsets), 1)
                query_weights = np.add.reduceat(np.append(weights, 0.0), offsets[:-1]) / counts
            self._gradients = Gradients(self.loss, truth, None, query_weights)
            self._key = key
        return self._gradients

    def __repr__(self) -> str:
        return f"objective({self.name!r}: {self.loss})"


def identity(truth: Truth) -> Truth:
    """Return the truth unchanged."""
    return truth


def offsets_of(data: LibraryData) -> Ints:
    """Return the group boundaries of a LightGBM Dataset or an XGBoost DMatrix."""
    if hasattr(data, "get_uint_info"):
        ends = np.asarray(data.get_uint_info("group_ptr"), np.int64)
    else:
        group = data.get_group()
        if group is None:
            raise DataError(NO_GROUPS)
        ends = offsets_from_lengths(group)
    if len(ends) < 2:
        raise DataError(NO_GROUPS)
    return ends


MAX_LABEL = 30  # the largest label for which LightGBM has the gain 2^label - 1
MAX_LIST = 10_000  # documents per query
Booster = Any
"""A booster of LightGBM or XGBoost, which are untyped."""
LibraryParameters = dict[str, Any]
"""Parameters of LightGBM by their names."""


@dataclass(frozen=True, eq=False)
class GrowthOptions:
    """Options of growing trees; `valid` are the features of the validation documents, and
    `categorical` are the columns that hold categories."""

    valid: Features | None
    seed: int
    threads: int
    categorical: tuple[int, ...] = ()


class Growth(Protocol):
    """A procedure that grows trees."""

    @property
    def trees(self) -> Trees:
        """The trees that are grown."""
        ...

    def grow(self, grown: TreeCallback) -> tuple[Booster, int]:
        """Return the booster and its number of trees; `grown` is called after every tree."""
        ...

    def loss(self) -> float:
        """Return the mean training loss after the last tree; NaN where it is unknown."""
        ...


@dataclass(frozen=True, eq=False)
class LossGrowth:
    """Grow trees by the gradients of a loss."""

    trees: Trees
    X: Features
    gradients: Gradients
    options: GrowthOptions

    def grow(self, grown: TreeCallback) -> tuple[Booster, int]:
        """Return the booster and its number of trees."""
        options = self.options
        return self.trees.grow(
            self.X,
            self.gradients,
            options.valid,
            grown,
            options.seed,
            options.threads,
            options.categorical,
        )

    def loss(self) -> float:
        """Return the mean training loss after the last tree."""
        return self.gradients.mean_loss()


@dataclass(frozen=True)
class LambdaRankOptions:
    """Options of LightGBM's lambdarank.

    Attributes
    ----------
    truncation : int
        The truncation level.
    gains : tuple of float or None
        The gains of the labels 0, 1, ..; None stands for 2^label - 1.
    """

    truncation: int
    gains: tuple[float, ...] | None

    def parameters(self) -> LibraryParameters:
        """Return the parameters of LightGBM."""
        parameters: LibraryParameters = {
            "objective": "lambdarank",
            "metric": "none",  # the default needs query groups of the validation data
            "lambdarank_truncation_level": self.truncation,
        }
        return parameters if self.gains is None else {**parameters, "label_gain": list(self.gains)}

    def check(self, y: Floats, lengths: Ints) -> None:
        """Raise an error for labels and lists that LightGBM cannot learn from."""
        gains = self.gains
        if gains is not None and y.max(initial=0.0) >= len(gains):
            raise DataError(
                f"gain has gains of the labels 0 to {len(gains) - 1}, and the data hold a label "
                f"{y.max():g}; give one gain per label."
            )
        max_label = MAX_LABEL if gains is None else len(gains) - 1
        if (y != np.round(y)).any() or (y < 0).any() or (y > max_label).any():
            raise DataError(
                f"LightGBM's lambdarank needs integer labels from 0 to {max_label}. Firstpage's "
                "objectives take any labels: ListMLE(scorer='trees')."
            )
        if int(lengths.max(initial=0)) > MAX_LIST:
            raise DataError(
                f"LightGBM's lambdarank takes lists of up to 10,000 documents, and one has "
                f"{int(lengths.max())}. Firstpage's objectives take any: ListMLE(scorer='trees')."
            )


@dataclass(frozen=True, eq=False)
class LambdaRankGrowth:
    """Grow trees by lambdarank."""

    trees: Trees
    data: Dataset
    weight: Floats | None
    rank: LambdaRankOptions
    options: GrowthOptions

    def grow(self, grown: TreeCallback) -> tuple[Booster, int]:
        """Return the booster and its number of trees."""
        lightgbm, data, options = import_lightgbm(), self.data, self.options
        params = {
            **self.trees.parameters(options.seed, options.threads),
            **self.rank.parameters(),
        }
        full = lightgbm.Dataset(
            data.X,
            data.y.astype(int),
            group=data.lengths,
            weight=self.weight,
            params=params,
            free_raw_data=False,
            position=data.positions,
            categorical_feature=list(options.categorical) or "auto",
        )
        with library_errors("lightgbm"):
            booster = lightgbm.Booster(params, full)
            return LightGBM.boost(booster, full, options.valid, self.trees.count, grown, {})

    def loss(self) -> float:
        """Return NaN: lambdarank has no loss."""
        return float("nan")
