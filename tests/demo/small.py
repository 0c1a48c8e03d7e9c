"""A subset of the embedded collection, on which the demo takes seconds."""

from __future__ import annotations

from functools import cache

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.demo.collection import FEATURES, Collection, stdlib_collection

QUESTIONS, CANDIDATES = 9, 8


@cache
def small_collection() -> Collection:
    """Return a few questions with all their answers and a few other candidates."""
    full = stdlib_collection()
    data = full.data
    assert data.docids is not None
    rows = []
    for q in range(QUESTIONS):
        candidates = np.arange(data.offsets[q], data.offsets[q + 1])
        order = candidates[np.argsort(-data.y[candidates], kind="stable")]
        rows += sorted(order[:CANDIDATES].tolist())
    docids = [str(data.docids[row]) for row in rows]
    subset = Dataset.from_arrays(
        np.asarray(data.X)[rows], data.y[rows], data.qid[rows], docids, FEATURES, "in small"
    )
    texts = {key: full.documents[key] for key in docids}
    return Collection({q: full.questions[q] for q in subset.queries}, texts, subset)
