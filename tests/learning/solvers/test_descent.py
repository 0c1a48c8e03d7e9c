"""Gradient descent solvers."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp

RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


@pytest.mark.parametrize(
    "solver", ["sgd(rate=0.01, max_iter=5)", "adam(rate=0.01, max_iter=5, batch=4)"]
)
def test_stochastic_solvers_use_the_weights_of_queries(solver: str) -> None:
    weights = np.where(np.arange(30) < 15, 0.0, 2.0)
    weighted = fp.RankNet(solver=solver).fit(X, Y, qid=QID, sample_weight=weights)
    unweighted = fp.RankNet(solver=solver).fit(X, Y, qid=QID)
    assert not np.allclose(weighted.coef_, unweighted.coef_)
