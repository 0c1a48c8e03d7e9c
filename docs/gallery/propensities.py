"""
How much does each rank count?
==============================

A propensity is the probability that people look at a rank. It can be estimated where the same
document was shown at several ranks. The intervals contain the propensities of this simulation.
"""

import numpy as np

import firstpage as fp

rng = np.random.default_rng(0)
pages, length = 4000, 6
order = np.arange(length)
shown = np.array([rng.permutation(order) for _ in range(pages)])
attractive = np.linspace(0.2, 0.7, length)
examined = 1 / np.arange(1, length + 1)
clicked = rng.random((pages, length)) < attractive[shown] * examined
sessions = fp.Sessions.from_arrays(
    query=np.repeat("shoes", pages * length),
    document=shown.ravel(),
    rank=np.tile(order + 1, pages),
    clicked=clicked.ravel(),
    page=np.repeat(np.arange(pages), length),
)

# %%
propensities = fp.clicks.estimate_propensities(sessions)
for rank, (estimate, true) in enumerate(zip(propensities.propensity, examined), 1):
    print(f"rank {rank}: {estimate:.2f}, true {true:.2f}")

# %%
chart = propensities.plot()
