"""
Train on votes
==============

People often say which of two documents is better. RankNet learns from such votes as they are: they
may be few, and they may contradict each other.
"""

import numpy as np

import firstpage as fp

rng = np.random.default_rng(0)
recipe = fp.Synthetic(queries=80, docs=12, features=6, grades=3)
data = recipe.dataset()
utility = recipe.true_utility(data.X)

# %%
# Ten votes per query, of which one in five is wrong.
train, test = data[:40], data[40:]
train = fp.Dataset.from_arrays(train.X, train.y, train.qid, docid=range(train.n_docs))
query, preferred, other = [], [], []
for q in range(len(train)):
    rows = np.arange(train.offsets[q], train.offsets[q + 1])
    for _ in range(10):
        left, right = rng.choice(rows, 2, replace=False)
        better, worse = (left, right) if utility[left] > utility[right] else (right, left)
        if rng.random() < 0.2:
            better, worse = worse, better
        query.append(train.queries[q])
        preferred.append(better)
        other.append(worse)
votes = fp.PreferencePairs.from_arrays(query, preferred, other)
print(votes)

# %%
scores = {
    "votes": fp.RankNet().fit(train, pairs=votes).predict(test),
    "labels of all documents": fp.RankNet().fit(train).predict(test),
}
comparison = fp.compare(scores, test, measures="NDCG@5")
print(comparison)

# %%
chart = comparison.plot()
