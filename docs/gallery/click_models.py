"""
Which click model fits?
=======================

Click models are compared on pages that did not fit them. The users of this log go down the list and
stop when they are satisfied: a cascade.
"""

import numpy as np

import firstpage as fp

rng = np.random.default_rng(0)
pages, length = 3000, 6
attractive = rng.uniform(0.1, 0.6, (20, 10))
rows = []
for page in range(pages):
    query = int(rng.integers(20))
    documents = rng.permutation(10)[:length]
    stopped = False
    for rank, document in enumerate(documents, 1):
        click = not stopped and rng.random() < attractive[query, document]
        rows.append((f"q{query}", f"d{document}", rank, click, page))
        stopped = stopped or (click and rng.random() < 0.8)
query, document, rank, clicked, page = zip(*rows)
sessions = fp.Sessions.from_arrays(
    query=query, document=document, rank=rank, clicked=clicked, page=page
)

# %%
train, test = sessions.split(0.75, seed=1)
comparison = fp.clicks.compare_models(["RankCTR", "PBM", "SimplifiedDBN", "DBN"], train, test)
print(comparison)

# %%
chart = comparison.plot()
