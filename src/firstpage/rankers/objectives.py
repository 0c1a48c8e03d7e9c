"""Our losses as objectives of LightGBM's and XGBoost's own interfaces.

    lightgbm.train({"objective": fp.objective("topk-listmle", k=10), ..}, dataset)
    lightgbm.LGBMRanker(objective=fp.objective("focused-net", k=10)).fit(X, y, group=sizes)
    xgboost.train(params, dmatrix, obj=fp.objective("listnet"), custom_metric=fp.metric("NDCG@10"))

Groups come from the library's own data object.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from firstpage.data.ids import Ids
from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.losses.base import Loss
from firstpage.losses.names import LOSSES, loss
from firstpage.measures.base import Measure
from firstpage.measures.conventions import convention
from firstpage.measures.lists import rank_lists
from firstpage.measures.parse import Named
from firstpage.measures.parse import measure as parse_measure
from firstpage.names import plain, split
from firstpage.rankers.composed import Composed
from firstpage.rankers.lambdamart import LambdaMART
from firstpage.rankers.names import ranker
from firstpage.rankers.training import labels_of
from firstpage.rankers.tree_fitting import Slopes
from firstpage.types import Floats, Ints

NO_GROUPS = (
    "the training data have no query groups. LightGBM: Dataset(.., group=sizes) or "
    "LGBMRanker.fit(.., group=sizes); XGBoost: DMatrix(.., qid=qid)."
)


class Objective:
    """A loss for boosted trees.  Called by the library, after every tree, with scores and data.

    Both libraries' training functions call it as (scores, data), LightGBM's estimators as
    (labels, scores, weights, groups).  Returns slope and curvature, one a document.  Weights of
    documents are averaged into one of their query.
    """

    def __init__(self, name: str, loss: Loss, order: Any) -> None:
        self.name, self.loss, self._order = name, loss, order
        self._key: tuple[bytes, ...] | None = None
        self._slopes: Slopes | None = None

    def __call__(
        self, first: Any, second: Any, weight: Any = None, group: Any = None
    ) -> tuple[Floats, Floats]:
        if hasattr(second, "get_label"):
            labels, weight, offsets = second.get_label(), second.get_weight(), _offsets(second)
            scores = first
        else:
            if group is None:
                raise DataError(NO_GROUPS)
            labels, scores = first, second
            offsets = np.concatenate([[0], np.cumsum(group)]).astype(np.int64)
        return self._prepared(labels, weight, offsets)(np.asarray(scores, np.float64).ravel())

    def __getstate__(self) -> dict[str, Any]:
        """Copies read their data anew: what is prepared points at arrays of this one."""
        return {**self.__dict__, "_key": None, "_slopes": None}

    def _prepared(self, labels: Any, weight: Any, offsets: Ints) -> Slopes:
        """Truth is read once, not once a tree."""
        y = labels_of(labels, int(offsets[-1]))
        heavy = np.empty(0) if weight is None else np.asarray(weight, np.float64)
        key = (y.tobytes(), heavy.tobytes(), offsets.tobytes())
        if self._slopes is None or key != self._key:
            queries = Ids.of([str(q) for q in range(len(offsets) - 1)])
            truth: Truth = self._order(Truth(y, offsets, queries))
            shares = None
            if len(heavy) == len(offsets) - 1 and len(heavy) != len(y):
                shares = heavy
            elif len(heavy):
                counts = np.maximum(np.diff(offsets), 1)
                shares = np.add.reduceat(np.append(heavy, 0.0), offsets[:-1]) / counts
            self._slopes, self._key = Slopes(self.loss, truth, None, shares), key
        return self._slopes

    def __repr__(self) -> str:
        return f"objective({self.name!r}: {self.loss})"


def objective(name: str, **parameters: Any) -> Objective:
    """A ranker's loss for LightGBM and XGBoost, as in `objective("topk-listmle", k=10)`.

    A loss's own name does too: `objective("PairwiseExponential")`.
    """
    if plain(split(name)[0]) in map(plain, [*LOSSES, "Focused"]):
        return Objective(name, loss(name, **parameters), _as_it_is)
    found = ranker(name, **parameters)
    if isinstance(found, LambdaMART):
        raise DataError("lambdarank is LightGBM's own: {'objective': 'lambdarank'}.")
    if not isinstance(found, Composed):
        raise DataError(f"{type(found).__name__} has no loss that trees could be grown from.")
    found._check_parameters()
    return Objective(type(found).__name__, found._tree_loss(), found._truth)


def _as_it_is(truth: Truth) -> Truth:
    return truth


class Metric:
    """A measure for the libraries' own evaluation: exact with ties, for labels of any kind."""

    def __init__(self, which: Measure) -> None:
        self.measure = which
        self.__name__ = str(which)

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> Any:
        """As (scores, data), or as LightGBM's estimators have it: (labels, scores, .., groups)."""
        scores, data = first, second
        if hasattr(data, "get_label"):
            labels, offsets = data.get_label(), _offsets(data)
        elif group is None:
            raise DataError(NO_GROUPS)
        else:
            labels, scores = first, second
            offsets = np.concatenate([[0], np.cumsum(group)]).astype(np.int64)
        y = labels_of(labels, int(offsets[-1]))
        how = convention("default")
        queries = Ids.of([str(q) for q in range(len(offsets) - 1)])
        lists = rank_lists(np.asarray(scores, np.float64).ravel(), y, offsets, queries, how)
        value = float(self.measure.values(lists, how).mean())
        if not hasattr(data, "get_uint_info"):  # LightGBM also wants to know which way is up
            return str(self.measure), value, not self.measure.lower_is_better
        return re.sub(r"[\s:]+", "_", str(self.measure)), value  # XGBoost parts its lines by these


def metric(which: Named) -> Metric:
    """`feval` of lightgbm.train, `custom_metric` of xgboost.train."""
    return Metric(parse_measure(which))


def _offsets(data: Any) -> Ints:
    """The group boundaries of a LightGBM Dataset or an XGBoost DMatrix."""
    if hasattr(data, "get_uint_info"):
        ends = np.asarray(data.get_uint_info("group_ptr"), np.int64)
    else:
        group = data.get_group()
        if group is None:
            raise DataError(NO_GROUPS)
        ends = np.concatenate([[0], np.cumsum(group)]).astype(np.int64)
    if len(ends) < 2:
        raise DataError(NO_GROUPS)
    return ends
