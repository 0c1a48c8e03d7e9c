"""Growing trees by XGBoost's rank:ndcg, with or without its correction for position bias."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstpage.core import DataError, Floats
from firstpage.data import Dataset
from firstpage.learning.rankers.trees.growth import Booster, GrowthOptions, LambdaRankOptions
from firstpage.learning.scorers.tree_scoring import import_xgboost, library_errors
from firstpage.learning.scorers.trees import SPARSE, TreeCallback, Trees, XGBoost


@dataclass(frozen=True, eq=False)
class XGBoostRankGrowth:
    """Grow trees by rank:ndcg.

    With positions, the documents of a query are sorted by them: XGBoost takes the order of the
    documents as the order in which they were shown (`lambdarank_unbiased`).
    """

    trees: Trees
    data: Dataset
    query_weights: Floats | None
    rank: LambdaRankOptions
    options: GrowthOptions

    def grow(self, grown: TreeCallback) -> tuple[Booster, int]:
        """Return the booster and its number of trees."""
        xgboost, data, options = import_xgboost(), self.data, self.options
        valid = options.valid
        if not isinstance(data.X, np.ndarray) or not isinstance(valid, np.ndarray | None):
            raise DataError(SPARSE)
        queries = np.repeat(np.arange(len(data)), data.lengths)
        order = np.arange(data.n_docs)
        unbiased = {}
        if data.positions is not None:
            order, unbiased = np.lexsort([data.positions, queries]), {"lambdarank_unbiased": True}
        kinds = XGBoost.matrix_options(data.n_features, options.categorical, options.threads)
        with library_errors("xgboost"):
            full = xgboost.DMatrix(
                data.X[order], data.y[order], qid=queries, weight=self._weights(), **kinds
            )
            valid_data = None if valid is None else xgboost.DMatrix(valid, **kinds)
            params = {
                **self.trees.parameters(options.seed, options.threads),
                "objective": "rank:ndcg", "lambdarank_pair_method": "topk",
                "lambdarank_num_pair_per_sample": self.rank.truncation, **unbiased,
                **self.trees.options,
            }  # fmt: skip
            return XGBoost.boost(params, full, valid_data, self.trees.count, grown)

    def _weights(self) -> Floats | None:
        """Return the weights of queries; None if those of all queries with pairs are equal.

        XGBoost divides weights by their mean, which queries without pairs must not change.
        """
        if self.query_weights is None:
            return None
        starts = self.data.offsets[:-1]
        labels = self.data.y
        paired = np.maximum.reduceat(labels, starts) > np.minimum.reduceat(labels, starts)
        return None if len(np.unique(self.query_weights[paired])) <= 1 else self.query_weights

    def loss(self) -> float:
        """Return NaN: lambdarank has no loss."""
        return float("nan")
