"""
What is in a log of clicks?
===========================

People click on what they see. The rate of clicks falls with the rank, although every document is at
every rank equally often in this log.
"""

import numpy as np

import firstpage as fp

rng = np.random.default_rng(0)
pages, length = 2000, 8
shown = np.array([rng.permutation(length) for _ in range(pages)])
attractive = np.linspace(0.1, 0.8, length)
examined = 1 / np.arange(1, length + 1) ** 0.7
clicked = rng.random((pages, length)) < attractive[shown] * examined
sessions = fp.Sessions.from_arrays(
    query=np.repeat("shoes", pages * length),
    document=shown.ravel(),
    rank=np.tile(np.arange(1, length + 1), pages),
    clicked=clicked.ravel(),
    page=np.repeat(np.arange(pages), length),
)

# %%
chart = fp.clicks.describe(sessions).plot()
