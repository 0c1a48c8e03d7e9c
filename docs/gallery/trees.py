"""
Trees for a utility that is not linear
======================================

The same loss trains linear models, networks and trees: ``scorer`` chooses. Trees need the extra
``trees``.
"""

import firstpage as fp

data = fp.Synthetic(queries=200, docs=20, features=6, utility="nonlinear", noise=0.2).dataset()
train, valid, test = data[:100], data[100:140], data[140:]

scores = {}
for name, scorer in {"linear": "linear", "trees": "trees"}.items():
    ranker = fp.ListMLE(k=10, scorer=scorer).fit(train, valid=valid)
    scores[name] = ranker.predict(test)

# %%
comparison = fp.compare(scores, test, measures="NDCG@10")
print(comparison)

# %%
chart = comparison.plot()
