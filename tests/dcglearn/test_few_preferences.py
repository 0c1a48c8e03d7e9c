"""Judgments that are nearly all ties: what cannot be told is not told, and nothing falls over."""

from __future__ import annotations

import numpy as np
import pytest

from firstpage.data.preferences.preferences import Preferences
from firstpage.dcglearn.advice import advice, against_dcg
from firstpage.dcglearn.learn import DCGLearn
from firstpage.errors import FirstpageWarning


def nearly_all_ties(count: int = 24) -> Preferences:
    """One query has a preference; all others find everything equal."""
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 3, (2, count, 4))
    outcome = np.zeros(count)
    outcome[0] = 1
    return Preferences.from_grades(left, right, outcome, query=[f"q{i}" for i in range(count)])


def test_advice_without_a_preference_to_hold_out() -> None:
    with pytest.warns(FirstpageWarning, match=r"^C = 1: cross-validation needs preferences"):
        learner = DCGLearn(4).fit(nearly_all_ties())
    assert against_dcg(learner).verdict != "better"
    found = advice(learner)
    assert not found.known
    assert not found.stop
    assert "too few" in str(found)
    assert found.to_dict()["accuracy"] is None


def test_warnings_name_the_line_that_called() -> None:
    with pytest.warns(FirstpageWarning) as caught:
        DCGLearn(4).fit(nearly_all_ties())
    assert {warning.filename for warning in caught} == {__file__}


def test_advice_of_many_ties_is_withheld() -> None:
    with pytest.warns(FirstpageWarning):
        learner = DCGLearn(4).fit(nearly_all_ties(160))
    found = advice(learner)
    assert found.verdict == "too few"
    assert "pairs are preferences to tell" in str(found)
