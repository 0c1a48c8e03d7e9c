"""Judgments that are nearly all ties: no advice is given, and nothing fails."""

from __future__ import annotations

import numpy as np
import pytest

from firstpage.core.errors import FirstpageWarning
from firstpage.data.preferences.preferences import Preferences
from firstpage.evaluation.dcglearn.advisor import advice, compare_with_dcg
from firstpage.evaluation.dcglearn.learn import DCGLearn


def nearly_all_ties(count: int = 24) -> Preferences:
    """Return pairs of which only the first is a preference."""
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 3, (2, count, 4))
    outcome = np.zeros(count)
    outcome[0] = 1
    return Preferences.from_grades(left, right, outcome, query=[f"q{i}" for i in range(count)])


def test_no_advice_without_a_held_out_preference() -> None:
    with pytest.warns(FirstpageWarning, match=r"^C = 1: cross-validation needs preferences"):
        learner = DCGLearn(4).fit(nearly_all_ties())
    assert compare_with_dcg(learner).verdict != "better"
    result = advice(learner)
    assert not result.known
    assert not result.stop
    assert "too few" in str(result)
    assert result.to_dict()["accuracy"] is None


def test_warnings_point_to_the_calling_line() -> None:
    with pytest.warns(FirstpageWarning) as caught:
        DCGLearn(4).fit(nearly_all_ties())
    assert {warning.filename for warning in caught} == {__file__}


def test_no_advice_from_ties() -> None:
    with pytest.warns(FirstpageWarning):
        learner = DCGLearn(4).fit(nearly_all_ties(160))
    result = advice(learner)
    assert result.verdict == "too few"
    assert "pairs are preferences to estimate" in str(result)
