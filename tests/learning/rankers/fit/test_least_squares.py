"""Least squares."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

import firstpage as fp

RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


def test_regression_with_many_features() -> None:
    wide = csr_array(np.c_[X, np.zeros((300, 3000))])
    assert fp.Regression().fit(wide, Y, qid=QID).score(wide, Y, qid=QID) > 0.9
