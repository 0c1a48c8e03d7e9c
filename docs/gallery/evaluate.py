"""
Evaluate a ranking
==================

A mean hides the queries that fail. The chart shows how many queries have which value.
"""

import numpy as np

import firstpage as fp

recipe = fp.Synthetic(queries=200, docs=30, features=6, grades=3, seed=1)
data = recipe.dataset()
scores = recipe.true_utility(data.X) + np.random.default_rng(0).normal(0, 1, data.n_docs)

# %%
# Scores and labels are all that a measure needs. Tied scores get the mean over their orders.
evaluation = fp.evaluate(scores, data, measures="NDCG@10,AP,RR")
print(evaluation)

# %%
chart = evaluation.plot("NDCG@10")
