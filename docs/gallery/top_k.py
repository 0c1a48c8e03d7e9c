"""
Train for the top of the list
=============================

Every loss has a top-k form, which learns the order of the first k documents and ignores the order
of the rest. Here the tail follows another rule than the top, so that its order misleads.
"""

import numpy as np

import firstpage as fp

rng = np.random.default_rng(0)
queries, docs, features = 120, 40, 8
X = rng.normal(size=(queries * docs, features))
top, tail = rng.normal(size=(2, features))
qid = np.repeat(np.arange(queries), docs)
utility = (X @ top).reshape(queries, docs)
other = (X @ tail).reshape(queries, docs)
head = utility.argsort(1).argsort(1) >= docs - 10
order = np.where(head, 100 + utility, other).argsort(1).argsort(1)
data = fp.Dataset.from_arrays(X, order.ravel() + 1, qid)

# %%
# The truth is the order of all documents; the measure reads the first ten.
train, test = data[:60], data[60:]
labels = np.maximum(test.y - (docs - 10), 0)
scores = {
    "all positions": fp.ListMLE().fit(train).predict(test),
    "top 10": fp.ListMLE(k=10).fit(train).predict(test),
}
comparison = fp.compare(scores, test.with_labels(labels), measures="NDCG@10")
print(comparison)

# %%
chart = comparison.plot()
