"""Intervals of a learned measure."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.evaluation.dcglearn.confidence import intervals
from tests.evaluation.dcglearn.test_learn import varied


def quiet(learner: fp.dcglearn.DCGLearn, *args, **kwargs) -> fp.dcglearn.DCGLearn:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        return learner.fit(*args, **kwargs)


@pytest.mark.parametrize("seed", range(4))
def test_first_position_without_differences_has_discount_zero(seed):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 4, (200, 4)), rng.integers(0, 4, (200, 4))
    right[:, 0] = left[:, 0]
    outcome = np.where((left - right) @ [3, 2, 1, 0.5] + rng.logistic(size=200) > 0, 1, -1)
    learner = quiet(fp.dcglearn.DCGLearn(K=4, C=1.0), left, right, outcome)
    assert learner.discounts_[0] == 0
    assert learner.discounts_.max() == pytest.approx(1.0)
    assert np.isfinite(intervals(learner, 20).weights).all()
    assert (intervals(learner, 20).discounts <= 2).all()


def test_one_query_cannot_be_resampled():
    preferences = varied(40)
    single_query = fp.dcglearn.Preferences.from_grades(
        preferences.left, preferences.right, preferences.outcome, query=["q"] * 40, grades=range(5)
    )
    learner = fp.dcglearn.DCGLearn(10, C=1.0).fit(single_query)
    with pytest.raises(DataError, match="all pairs are of one query"):
        intervals(learner)
    assert "queries" in str(fp.dcglearn.advice(learner))


def test_fixed_gains_have_no_interval():
    """The worst and best gains are 0 and 1 by normalization in every resample."""
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 2, (12, 2)), rng.integers(0, 2, (12, 2))
    outcome = rng.choice([-1, 1], 12)
    learner = quiet(fp.dcglearn.DCGLearn(K=2, C=0.001), left, right, outcome)
    bounds = intervals(learner, 50).gains
    assert (bounds[[0, -1], 0] == bounds[[0, -1], 1]).all()
    assert (bounds[[0, -1], 0] == learner.gains_[[0, -1]]).all()
