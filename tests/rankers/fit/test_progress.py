"""Progress of a fit, and the best model so far."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp

RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


@pytest.mark.filterwarnings("ignore:29 of 30 validation queries are in the training data")
def test_scores_that_overflow_are_never_the_best() -> None:
    bad = X.copy()
    bad[0] = 1e308
    ranker = fp.ListNet(measure="TopK01@3", solver="gd(rate=50, max_iter=5)")
    ranker.fit(X, Y, qid=QID, valid=(bad, Y, QID))
    assert ranker.best_score_ is None or np.isfinite(ranker.best_score_)
