"""The embedded collection in small: the whole loop in seconds."""

from __future__ import annotations

from functools import cache

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.demo.collection import FEATURES, Collection, stdlib_collection

QUESTIONS, CANDIDATES = 9, 8


@cache
def small_collection() -> Collection:
    """A few questions with all their answers and a few other candidates."""
    whole = stdlib_collection()
    data = whole.data
    assert data.docids is not None
    rows = []
    for q in range(QUESTIONS):
        mine = np.arange(data.offsets[q], data.offsets[q + 1])
        order = mine[np.argsort(-data.y[mine], kind="stable")]
        rows += sorted(order[:CANDIDATES].tolist())
    docids = [str(data.docids[row]) for row in rows]
    made = Dataset.from_arrays(
        np.asarray(data.X)[rows], data.y[rows], data.qid[rows], docids, FEATURES, "in small"
    )
    texts = {key: whole.documents[key] for key in docids}
    return Collection({q: whole.questions[q] for q in made.queries}, texts, made)
