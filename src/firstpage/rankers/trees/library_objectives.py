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

from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.errors import DataError
from firstpage.losses.registry import LOSSES, loss
from firstpage.measures.measure import Measure, convention, rank_lists
from firstpage.measures.registry import Named
from firstpage.measures.registry import measure as parse_measure
from firstpage.rankers.fit.checks import labels_of
from firstpage.rankers.registry import ranker
from firstpage.rankers.trees.growth import NO_GROUPS, LibraryData, Objective, as_it_is, offsets_of
from firstpage.registry import plain, split
from firstpage.types import Ints


def objective(name: str, **parameters: Any) -> Objective:
    """A ranker's loss for LightGBM and XGBoost, as in `objective("topk-listmle", k=10)`.

    A loss's own name does too: `objective("PairwiseExponential")`.
    """
    if plain(split(name)[0]) in map(plain, [*LOSSES, "Focused"]):
        return Objective(name, loss(name, **parameters), as_it_is)
    return ranker(name, **parameters)._tree_objective()


class Metric:
    """A measure for the libraries' own evaluation: exact with ties, for labels of any kind."""

    def __init__(self, which: Measure) -> None:
        self.measure = which
        self.__name__ = str(which)

    def __call__(
        self,
        first: LibraryData,
        second: LibraryData,
        weight: object = None,
        group: Ints | None = None,
    ) -> tuple[str, float, bool] | tuple[str, float]:
        """As (scores, data), or as LightGBM's estimators have it: (labels, scores, .., groups)."""
        scores, data = first, second
        if hasattr(data, "get_label"):
            labels, offsets = data.get_label(), offsets_of(data)
        elif group is None:
            raise DataError(NO_GROUPS)
        else:
            labels, scores = first, second
            offsets = offsets_from_lengths(group)
        y = labels_of(labels, int(offsets[-1]))
        how = convention("default")
        queries = Ids.from_values([str(q) for q in range(len(offsets) - 1)])
        lists = rank_lists(np.asarray(scores, np.float64).ravel(), y, offsets, queries, how)
        value = float(self.measure.values(lists, how).mean())
        if not hasattr(data, "get_uint_info"):  # LightGBM also wants to know which way is up
            return str(self.measure), value, not self.measure.lower_is_better
        return re.sub(r"[\s:]+", "_", str(self.measure)), value  # XGBoost parts its lines by these


def metric(which: Named) -> Metric:
    """`feval` of lightgbm.train, `custom_metric` of xgboost.train."""
    return Metric(parse_measure(which))
