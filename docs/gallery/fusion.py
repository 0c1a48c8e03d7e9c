"""
Fuse words and vectors
======================

A search engine fuses two lists by weights. ``tune_fusion`` chooses them on judgments, and measures
on queries that did not choose.
"""

import numpy as np

import firstpage as fp

rng = np.random.default_rng(0)
names = [f"q{q}" for q in range(60)]
grades = {q: dict(zip(map(str, range(30)), rng.integers(0, 3, 30).tolist())) for q in names}


def stage(noise: float) -> dict[str, dict[str, float]]:
    """Return a first stage: the grades with noise."""
    return {
        q: {d: grade + rng.normal(0, noise) for d, grade in row.items()}
        for q, row in grades.items()
    }


words, vectors = stage(2.0), stage(1.5)
tuned = fp.aggregation.tune_fusion(
    [words, vectors], grades, measure="NDCG@10", stages=["words", "vectors"]
)
print(tuned)

# %%
chart = tuned.plot()
