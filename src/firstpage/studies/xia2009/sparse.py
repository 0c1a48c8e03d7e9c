"""Lists like those of TD2003 and TD2004, made up: hundreds of documents, one in a hundred relevant.

The truth is known to be linear, so that whatever ListMLE loses it loses by its loss.
"""

from __future__ import annotations

import numpy as np

from firstpage.data.synthetic import Synthetic
from firstpage.measures.evaluate import evaluate
from firstpage.studies.base import Row
from firstpage.studies.learning import rows_of, seed_of
from firstpage.studies.xia2009.printed import MEASURES
from firstpage.studies.xia2009.training import Depth, called, listmle

TRAIN, VALID, TEST = 30, 10, 100
MADE = {"docs": 500, "features": 44, "grades": 2, "noise": 0.5}


def simulated(rng: np.random.Generator, k: Depth, training: str, relevant: float) -> list[Row]:
    """ListMLE on data of its own, a share of them relevant."""
    seed = seed_of(rng)
    queries = TRAIN + VALID + TEST
    data = Synthetic(queries=queries, relevant=relevant, seed=seed, **MADE).dataset()  # type: ignore[arg-type]
    train, valid, test = data[:TRAIN], data[TRAIN : TRAIN + VALID], data[TRAIN + VALID :]
    ranker = listmle(k, training).set_params(seed=seed).fit(train, valid=valid)
    found = evaluate(ranker.predict(test), test, measures=MEASURES, convention="letor")
    labels = {"method": called(k), "model": "ListMLE", "k": k, "training": training,
              "relevant": relevant}  # fmt: skip
    rows = rows_of(dict(zip(MEASURES, found.values, strict=True)), labels)
    # Every run has queries of its own: runs, not queries, are what chance is judged by.
    return [{name: v for name, v in row.items() if name != "queries"} for row in rows]
