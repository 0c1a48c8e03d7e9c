"""
A loss of your own
==================

A loss is a class with one method: it returns one value per query and one derivative per document.
"""

from dataclasses import dataclass

import numpy as np

import firstpage as fp


@dataclass(frozen=True)
class SquaredHinge(fp.extend.Loss):
    """The squared hinge over pairs of documents with different labels."""

    margin: float = 1.0

    traits = fp.extend.Traits(convex=True)

    def value_grad(self, scores, truth):
        better, worse = truth.pairs()
        slack = np.maximum(self.margin - scores[better] + scores[worse], 0.0)
        query = np.searchsorted(truth.offsets, better, side="right") - 1
        values = np.bincount(query, slack**2, len(truth))
        rows = len(scores)
        return values, 2 * (np.bincount(worse, slack, rows) - np.bincount(better, slack, rows))


# %%
# It is trained, tuned and saved like any other.
data = fp.Synthetic(queries=120, docs=15, features=8, grades=3).dataset()
train, test = data[:60], data[60:]
rankers = {"squared hinge": fp.LossRanker(loss=SquaredHinge()), "RankSVM": fp.RankSVM()}
scores = {name: ranker.fit(train).predict(test) for name, ranker in rankers.items()}
comparison = fp.compare(scores, test, measures="NDCG@10")
print(comparison)

# %%
chart = comparison.plot()
