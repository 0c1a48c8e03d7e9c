"""Rankers by name."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp

RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


def test_names_in_other_spellings_are_equivalent() -> None:
    expected = fp.Regression().fit(X + 5, Y, qid=QID)
    for other in (fp.Regression(scorer="Linear"), fp.Regression(solver="lbfgs")):
        assert other.fit(X + 5, Y, qid=QID).coef_ == pytest.approx(expected.coef_)
