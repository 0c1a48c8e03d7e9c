"""Rankers with hinges."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.errors import DataError, FirstpageWarning

DATA = fp.Synthetic(queries=30, docs=12, features=6, grades=3).dataset()


TRAIN, VALID = DATA[:20], DATA[20:]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", [fp.TopMargin, fp.TopSlack])
def test_features_whose_squares_overflow(cls) -> None:
    X = np.asarray(TRAIN.X, np.float64) * 1e200
    try:
        found = cls().fit(X, TRAIN.y, qid=TRAIN.qid)
    except DataError:
        return
    assert np.isfinite(found.coef_).all()


def test_too_many_copies() -> None:
    weights = np.ones(TRAIN.n_docs)
    weights[0] = 1e12
    with pytest.raises(DataError, match="too many"):
        fp.SVMMAP().fit(TRAIN, sample_weight=weights)


@pytest.mark.parametrize(
    "cls", [fp.RankSVM, fp.SVMMAP, fp.FocusedSVM, fp.TopMargin, fp.TopSlack, fp.RankNet]
)
def test_constant_features_are_said(cls) -> None:
    X, y, qid = np.full((40, 3), 0.1), np.arange(40) % 3, np.repeat(np.arange(4), 10)
    with pytest.warns(FirstpageWarning, match="all scores are alike"):
        cls(k=5).fit(X, y, qid=qid)
