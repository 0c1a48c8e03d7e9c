"""Final results of simulated assessors with the noise of Niu et al. (2012)."""

from __future__ import annotations

import numpy as np

from firstpage.labeling.statistics.relations import top_labels
from firstpage.papers.niu2012.labeling import Crowd


def simulated_results(queries=50, documents=50, k=10, assessors=2, crowd=None, seed=0):
    """Return the top-k labels ("pairs") and grades of every assessor on every query."""
    view = crowd or Crowd()
    rng = np.random.default_rng(seed)
    results = {}
    names = [f"d{i:0{len(str(documents - 1))}}" for i in range(documents)]
    for q in range(queries):
        utility = rng.standard_normal(documents)
        for a in range(assessors):
            best = np.argsort(-view.perceive(utility, rng))[:k]
            results[f"q{q}", f"u{a}", "pairs"] = top_labels([names[i] for i in best], names, k)
            grades = view.grades(utility, rng).tolist()
            results[f"q{q}", f"u{a}", "grades"] = dict(zip(names, grades, strict=True))
    return results
