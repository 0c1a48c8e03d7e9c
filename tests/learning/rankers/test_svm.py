"""Rankers with hinge losses."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning

DATA = fp.Synthetic(queries=30, docs=12, features=6, grades=3).dataset()


TRAIN, VALID = DATA[:20], DATA[20:]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", [fp.TopMargin, fp.TopSlack])
def test_features_with_overflowing_squares(cls) -> None:
    X = np.asarray(TRAIN.X, np.float64) * 1e200
    try:
        result = cls().fit(X, TRAIN.y, qid=TRAIN.qid)
    except DataError:
        return
    assert np.isfinite(result.coef_).all()


def test_too_many_copies_are_rejected() -> None:
    weights = np.ones(TRAIN.n_docs)
    weights[0] = 1e12
    with pytest.raises(DataError, match="too many"):
        fp.SVMMAP().fit(TRAIN, sample_weight=weights)


@pytest.mark.parametrize(
    "cls", [fp.RankSVM, fp.SVMMAP, fp.FocusedSVM, fp.TopMargin, fp.TopSlack, fp.RankNet]
)
def test_constant_features_cause_a_warning(cls) -> None:
    X, y, qid = np.full((40, 3), 0.1), np.arange(40) % 3, np.repeat(np.arange(4), 10)
    with pytest.warns(FirstpageWarning, match="all scores are equal"):
        cls(k=5).fit(X, y, qid=qid)
