"""Progress reports of a fit, and the best model so far."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.learning.rankers.fit.progress import Step

RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


@pytest.mark.filterwarnings("ignore:29 of 30 validation queries are also in the training data")
def test_scores_that_overflow_are_never_the_best() -> None:
    bad = X.copy()
    bad[0] = 1e308
    ranker = fp.ListNet(measure="TopK01@3", solver="gd(rate=50, max_iter=5)")
    ranker.fit(X, Y, qid=QID, valid=(bad, Y, QID))
    assert ranker.best_score_ is None or np.isfinite(ranker.best_score_)


@pytest.mark.filterwarnings("ignore:the validation data are the training data")
def test_one_line_per_iteration_on_standard_error(capsys) -> None:
    steps: list[Step] = []
    ranker = fp.ListNet(verbose=True, solver="gd(max_iter=3)", measure="NDCG@3")
    ranker.fit(X, Y, qid=QID, valid=(X, Y, QID), progress=steps.append)
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.splitlines() == [
        f"{s.iteration:5d}  loss {s.loss:.6f}  {ranker.measure} {s.measure:.4f}{' *' * s.best}"
        for s in steps
    ]
