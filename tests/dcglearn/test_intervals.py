"""Intervals of a learned measure."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import firstpage as fp
from firstpage.dcglearn.intervals import intervals
from firstpage.errors import DataError, FirstpageWarning
from tests.dcglearn.test_learn import varied


def quiet(learner: fp.DCGLearn, *given, **more) -> fp.DCGLearn:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        return learner.fit(*given, **more)


@pytest.mark.parametrize("seed", range(4))
def test_a_first_place_that_never_differs_is_worth_nothing(seed):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 4, (200, 4)), rng.integers(0, 4, (200, 4))
    right[:, 0] = left[:, 0]
    said = np.where((left - right) @ [3, 2, 1, 0.5] + rng.logistic(size=200) > 0, 1, -1)
    learner = quiet(fp.DCGLearn(K=4, C=1.0), left, right, said)
    assert learner.discounts_[0] == 0
    assert learner.discounts_.max() == pytest.approx(1.0)
    assert np.isfinite(intervals(learner, 20).weights).all()
    assert (intervals(learner, 20).discounts <= 2).all()


def test_one_query_has_nothing_to_resample():
    given = varied(40)
    alone = fp.Preferences.from_grades(
        given.left, given.right, given.outcome, query=["q"] * 40, grades=range(5)
    )
    learner = fp.DCGLearn(10, C=1.0).fit(alone)
    with pytest.raises(DataError, match="all pairs are of one query"):
        intervals(learner)
    assert "queries" in str(fp.advice(learner))


def test_the_best_grade_has_no_interval():
    """Its gain is 1 by normalization, also where draws cannot distinguish grades."""
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 2, (12, 2)), rng.integers(0, 2, (12, 2))
    said = rng.choice([-1, 1], 12)
    learner = quiet(fp.DCGLearn(K=2, C=0.001), left, right, said)
    found = intervals(learner, 50).gains
    assert (found[[0, -1], 0] == found[[0, -1], 1]).all()
    assert (found[[0, -1], 0] == learner.gains_[[0, -1]]).all()
