"""Firstpage's losses and measures as objectives and metrics of LightGBM and XGBoost.

    lightgbm.train({"objective": fp.objective("topk-listmle", k=10), ..}, dataset)
    lightgbm.LGBMRanker(objective=fp.objective("focused-net", k=10)).fit(X, y, group=sizes)
    xgboost.train(params, dmatrix, obj=fp.objective("listnet"), custom_metric=fp.metric("NDCG@10"))

The query groups come from the library's data object.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from firstpage.core import DataError, Ints, canonical_name, parse_call
from firstpage.data import Ids, Truth, offsets_from_lengths
from firstpage.evaluation.measures import Convention, Measure, MeasureLike, rank_lists
from firstpage.evaluation.measures import measure as parse_measure
from firstpage.learning.losses.registry import LOSSES, loss
from firstpage.learning.rankers.fit.checks import check_labels
from firstpage.learning.rankers.fit.parameters import composition_of, truth_order
from firstpage.learning.rankers.registry import ranker
from firstpage.learning.rankers.trees.growth import (
    NO_GROUPS,
    LibraryData,
    TreeObjective,
    identity,
    offsets_of,
)


def objective(name: str, **parameters: Any) -> TreeObjective:
    """Return the loss of a ranker as a custom objective for LightGBM and XGBoost.

    Parameters
    ----------
    name : str
        The name of a ranker, such as "topk-listmle", or of a loss, such as "PairwiseExponential".
    **parameters : object
        Parameters of the ranker or the loss.

    Returns
    -------
    TreeObjective
        The objective: a function of scores and data that returns gradient and curvature.

    Raises
    ------
    DataError
        If the name or a parameter is unknown, or if the ranker has no loss.

    Examples
    --------
    >>> import firstpage as fp
    >>> objective = fp.objective("ListNet")
    >>> gradient, curvature = objective([0, 1], [0.0, 0.0], None, [2])
    >>> gradient.round(3).tolist()
    [0.231, -0.231]
    """
    if canonical_name(parse_call(name)[0]) in map(canonical_name, [*LOSSES, "Focused"]):
        return TreeObjective(name, loss(name, **parameters), identity)
    created = ranker(name, **parameters)
    title = type(created).__name__
    tree_loss = composition_of(created, "trees").tree_loss(title)
    return TreeObjective(title, tree_loss, truth_order(created))


class Metric:
    """A measure as an evaluation metric of LightGBM and XGBoost.

    Ties are treated exactly, and labels may be any numbers.

    Attributes
    ----------
    measure : Measure
        The measure.
    """

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.__name__ = str(measure)

    def __call__(
        self,
        first: LibraryData,
        second: LibraryData,
        weight: object = None,
        group: Sequence[int] | Ints | None = None,
    ) -> tuple[str, float, bool] | tuple[str, float]:
        """Return the name and the mean, called by either interface of `TreeObjective`."""
        scores, data = first, second
        if hasattr(data, "get_label"):
            labels, offsets = data.get_label(), offsets_of(data)
        elif group is None:
            raise DataError(NO_GROUPS)
        else:
            labels, scores = first, second
            offsets = offsets_from_lengths(group)
        y = check_labels(labels, int(offsets[-1]))
        default = Convention()
        queries = Ids.from_values([str(q) for q in range(len(offsets) - 1)])
        truth, needs = Truth(y, offsets, queries), self.measure.needs(default)
        lists = rank_lists(np.asarray(scores, np.float64).ravel(), truth, default, needs=needs)
        value = float(self.measure.values(lists, default).mean())
        if not hasattr(data, "get_uint_info"):  # LightGBM: and whether higher is better
            return str(self.measure), value, not self.measure.lower_is_better
        return re.sub(r"[\s:]+", "_", str(self.measure)), value  # XGBoost's separators


def metric(name: MeasureLike) -> Metric:
    """Return a measure as `feval` of lightgbm.train or `custom_metric` of xgboost.train.

    Parameters
    ----------
    name : str or Measure
        The measure, such as "NDCG@10".

    Returns
    -------
    Metric
        The metric: a function of scores and data that returns its name and the mean.

    Raises
    ------
    MeasureError
        If there is no such measure.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.metric("NDCG@10")([0, 1], [0.0, 1.0], None, [2])
    ('NDCG@10', 1.0, True)
    """
    return Metric(parse_measure(name))
