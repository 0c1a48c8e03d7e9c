"""
Learn the measure
=================

How much better is a grade of 3 than a grade of 2, and how much does position 2 count? DCGLearn
learns both from people who say which of two result lists is better.
"""

import numpy as np

import firstpage as fp

rng = np.random.default_rng(0)
left, right = rng.integers(0, 4, (2, 400, 5))  # grades of 400 pairs of lists, 5 positions each
gains = np.array([0.0, 0.1, 0.3, 1.0])
discounts = np.array([1.0, 0.9, 0.4, 0.2, 0.1])
outcome = np.where((gains[left] - gains[right]) @ discounts > 0, 1, -1)

learner = fp.dcglearn.DCGLearn(K=5).fit(left, right, outcome)
print("gains", learner.gains_.round(2), "discounts", learner.discounts_.round(2))

# %%
# The learned measure evaluates like any other.
data = fp.Synthetic(queries=60, docs=20, features=6, grades=4).dataset()
scores = {
    "ListMLE": fp.ListMLE(k=5).fit(data[:30]).predict(data[30:]),
    "feature 1": data[30:].X[:, 0],
}
learned = fp.measure("NDCG@5", of=learner.utility_)
comparison = fp.compare(scores, data[30:], measures=["NDCG@5", learned])
print(comparison)

# %%
chart = comparison.plot("NDCG@5")
