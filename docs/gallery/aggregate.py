"""
Combine rankings without labels
===============================

Five noisy systems, and no judgments: what they agree on is better than each of them.
"""

import numpy as np

import firstpage as fp

recipe = fp.Synthetic(queries=60, docs=20, features=6, grades=3)
data = recipe.dataset()
rng = np.random.default_rng(0)
truth = {
    str(q): dict(zip(map(str, range(20)), data[n].y.tolist())) for n, q in enumerate(data.queries)
}
systems = [
    {q: {d: grade + rng.normal(0, 1.5) for d, grade in row.items()} for q, row in truth.items()}
    for _ in range(5)
]

# %%
combined = {
    method: fp.aggregation.aggregate(systems, method).run for method in ("Borda", "Copeland", "RRF")
}
comparison = fp.compare({"one system": systems[0], **combined}, truth, measures="NDCG@5")
print(comparison)

# %%
chart = comparison.plot()
