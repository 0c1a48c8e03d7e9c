"""Boosted trees."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.errors import DataError

RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


def test_errors_of_the_libraries_are_one_line() -> None:
    for unfitted in (
        fp.LambdaMART(scorer="trees(count=3, options={'num_leaves': -3})"),
        fp.ListNet(scorer="trees(count=3, library=xgboost, options={'tree_method': 'oak'})"),
    ):
        with pytest.raises(DataError, match="refuses") as caught:
            unfitted.fit(X, Y, qid=QID)
        assert "\n" not in str(caught.value)


def test_cost_of_long_lists_depends_on_k() -> None:
    loss = fp.RankNet(k=10)._loss()
    truth = fp.Truth.from_labels(RNG.random(100_000), np.zeros(100_000))
    assert np.isfinite(loss.curvature(np.zeros(100_000), truth)).all()  # O(n^2) would take minutes
