"""
Compare rankers
===============

Is one ranker better than another, or is the difference due to chance? ``compare`` tests the
differences per query, and corrects for the number of comparisons.
"""

import firstpage as fp

data = fp.Synthetic(queries=150, docs=20, features=10, grades=3, noise=1.0).dataset()
train, test = data[:75], data[75:]

rankers = {
    "ListMLE, top 10": fp.ListMLE(k=10),
    "RankNet": fp.RankNet(),
    "one feature": fp.Regression(l2=1e6),
}
scores = {name: ranker.fit(train).predict(test) for name, ranker in rankers.items()}
scores["one feature"] = test.X[:, 0]

# %%
comparison = fp.compare(scores, test, measures="NDCG@5")
print(comparison)

# %%
chart = comparison.plot()
