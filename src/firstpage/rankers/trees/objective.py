"""A loss as an objective of boosted trees, called by the library that grows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.losses.loss import Loss
from firstpage.rankers.fit.checks import labels_of
from firstpage.types import Floats, Ints

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
            queries = Ids.of([str(q) for q in range(len(offsets) - 1)])
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
