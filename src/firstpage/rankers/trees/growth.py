"""How trees grow on training data in memory: along the gradients of a loss, or by lambdarank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.losses.loss import Loss
from firstpage.rankers.fit.checks import labels_of
from firstpage.scorers.trees import Grown, LightGBM, Trees, lightgbm_or_error, refusals
from firstpage.types import Floats, Ints

if TYPE_CHECKING:
    from firstpage.data.dataset import Features


LibraryData = Any
"""A LightGBM Dataset, an XGBoost DMatrix, or an array of theirs."""


class Gradients:
    """The gradient and the curvature of the summed loss by each score.

    A leaf steps by its gradients over its curvatures.  For a relevant document of small probability
    p that would be 1 / p, a hundred units of score, though the curvature it rests on holds for
    about one: trees grown so learn noise.  So curvature is never taken below the size of the
    gradient, and no leaf steps further than 1 (times the rate).  Losses of constant curvature need
    no such care.
    """

    def __init__(
        self,
        loss: Loss,
        truth: Truth,
        weights: Floats | None = None,
        query_weights: Floats | None = None,
    ) -> None:
        target = loss.target(truth, weights)
        rows = len(truth.labels)
        self.scores, self.values = np.empty(rows), np.empty(len(truth))
        self.grad, self.curve = np.empty(rows), np.empty(rows)
        self.shares = np.ones(len(truth)) if query_weights is None else query_weights
        self._each = None if query_weights is None else np.repeat(query_weights, truth.lengths)
        self._exact = loss.traits.quadratic
        self._first = target.bind(0, len(truth), self.scores, self.values, self.grad)
        self._second = target.bind_curvature(0, len(truth), self.scores, self.curve)

    def __call__(self, scores: Floats) -> tuple[Floats, Floats]:
        self.scores[:] = scores
        self._first()
        self._second()
        grad, curve = self.grad.copy(), self.curve.copy()
        if not self._exact:
            np.maximum(curve, np.abs(grad), out=curve)
        if self._each is not None:
            grad, curve = grad * self._each, curve * self._each
        return grad, curve

    def mean_loss(self) -> float:
        """The mean loss over queries at the last scores."""
        return float(self.values @ self.shares / self.shares.sum())


NO_GROUPS = (
    "the training data have no query groups. LightGBM: Dataset(.., group=sizes) or "
    "LGBMRanker.fit(.., group=sizes); XGBoost: DMatrix(.., qid=qid)."
)


class Objective:
    """A loss for boosted trees.  Called by the library, after every tree, with scores and data.

    Both libraries' training functions call it as (scores, data), LightGBM's estimators as
    (labels, scores, weights, groups).  Returns gradient and curvature, one per document.  Weights
    of documents are averaged into one of their query.
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
        group: Ints | None = None,
    ) -> tuple[Floats, Floats]:
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
        """Copies read their data anew: what is prepared points at arrays of this one."""
        return {**self.__dict__, "_key": None, "_gradients": None}

    def _prepared(self, labels: object, weight: object, offsets: Ints) -> Gradients:
        """Truth is read once, not once a tree."""
        y = labels_of(labels, int(offsets[-1]))
        heavy = np.empty(0) if weight is None else np.asarray(weight, np.float64)
        key = (y.tobytes(), heavy.tobytes(), offsets.tobytes())
        if self._gradients is None or key != self._key:
            queries = Ids.from_values([str(q) for q in range(len(offsets) - 1)])
            truth: Truth = self._order(Truth(y, offsets, queries))
            shares = None
            if len(heavy) == len(offsets) - 1 and len(heavy) != len(y):
                shares = heavy
            elif len(heavy):
                counts = np.maximum(np.diff(offsets), 1)
                shares = np.add.reduceat(np.append(heavy, 0.0), offsets[:-1]) / counts
            self._gradients, self._key = Gradients(self.loss, truth, None, shares), key
        return self._gradients

    def __repr__(self) -> str:
        return f"objective({self.name!r}: {self.loss})"


def as_it_is(truth: Truth) -> Truth:
    return truth


def offsets_of(data: LibraryData) -> Ints:
    """The group boundaries of a LightGBM Dataset or an XGBoost DMatrix."""
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


MAX_LABEL = 30  # LightGBM has gains 2^label - 1 for labels up to this
MAX_LIST = 10_000  # documents of a query
Booster = Any
"""Trees of LightGBM or XGBoost, which have no types."""
Parameters = dict[str, Any]
"""Of LightGBM, as it calls them."""


@dataclass(frozen=True, eq=False)
class GrowthOptions:
    """valid: the features of the validation documents."""

    valid: Features | None
    seed: int
    threads: int


class Growth(Protocol):
    """Trees that are to grow."""

    def grow(self, grown: Grown) -> tuple[Booster, int]:
        """Return the booster and how many trees it has; `grown` is called after every tree."""
        ...

    def loss(self) -> float:
        """The mean training loss after the last tree; NaN where it is not known."""
        ...


@dataclass(frozen=True, eq=False)
class LossGrowth:
    """Along the gradients of a loss."""

    trees: Trees
    X: Features
    gradients: Gradients
    options: GrowthOptions

    def grow(self, grown: Grown) -> tuple[Booster, int]:
        options = self.options
        return self.trees.grow(
            self.X, self.gradients, options.valid, grown, options.seed, options.threads
        )

    def loss(self) -> float:
        return self.gradients.mean_loss()


@dataclass(frozen=True)
class LambdaRank:
    """LightGBM's lambdarank.

    gains        of the labels 0, 1, ..; None: 2^label - 1
    """

    truncation: int
    gains: tuple[float, ...] | None

    def parameters(self) -> Parameters:
        found: Parameters = {"lambdarank_truncation_level": self.truncation}
        return found if self.gains is None else {**found, "label_gain": list(self.gains)}

    def check(self, y: Floats, lengths: Ints) -> None:
        """Refuse labels and lists that LightGBM cannot learn from."""
        gains = self.gains
        if gains is not None and y.max(initial=0.0) >= len(gains):
            raise DataError(
                f"gain has gains of the labels 0 to {len(gains) - 1}, and the data hold a label "
                f"{y.max():g}; give one for every label."
            )
        most = MAX_LABEL if gains is None else len(gains) - 1
        if (y != np.round(y)).any() or (y < 0).any() or (y > most).any():
            raise DataError(
                f"LightGBM's lambdarank takes whole labels from 0 to {most}; these are not. Our "
                "own objectives take any: ListMLE(scorer='trees')."
            )
        if int(lengths.max(initial=0)) > MAX_LIST:
            raise DataError(
                f"LightGBM's lambdarank takes lists of up to 10,000 documents, and one has "
                f"{int(lengths.max())}. Our own objectives take any: ListMLE(scorer='trees')."
            )


@dataclass(frozen=True, eq=False)
class LambdaRankGrowth:
    """By lambdarank, of data in memory."""

    trees: Trees
    data: Dataset
    weight: Floats | None
    rank: LambdaRank
    options: GrowthOptions

    def grow(self, grown: Grown) -> tuple[Booster, int]:
        lightgbm, data, options = lightgbm_or_error(), self.data, self.options
        params = {
            **self.trees.parameters(options.seed, options.threads),
            "objective": "lambdarank",
            "metric": "none",  # its own would ask the validation data for queries
            **self.rank.parameters(),
        }
        full = lightgbm.Dataset(
            data.X, data.y.astype(int), group=data.lengths, weight=self.weight, params=params,
            free_raw_data=False,
        )  # fmt: skip
        with refusals("lightgbm"):
            booster = lightgbm.Booster(params, full)
            return LightGBM.boost(booster, full, options.valid, self.trees.count, grown, {})

    def loss(self) -> float:
        """Lambdarank has none."""
        return float("nan")
