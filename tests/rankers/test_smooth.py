"""Rankers with smooth losses."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp

RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


LINEAR = [fp.RankNet, fp.ListNet, fp.ListMLE, fp.RankCosine, fp.FocusedNet, fp.Regression]


@pytest.mark.parametrize("cls", LINEAR)
def test_a_constant_or_tiny_feature_spoils_nothing(cls) -> None:
    want = cls().fit(X, Y, qid=QID).score(X, Y, qid=QID)
    by_query = np.repeat(RNG.random(30), 10)
    for extra in (
        np.full(300, 0.1),
        1e-10 * RNG.normal(size=300),
        1e6 * RNG.normal(size=300),
        by_query,
    ):
        ranker = cls().fit(np.c_[X, extra], Y, qid=QID)
        assert ranker.score(np.c_[X, extra], Y, qid=QID) > want - 0.05
        assert np.isfinite(ranker.coef_).all()


@pytest.mark.parametrize("cls", LINEAR)
def test_the_scale_of_the_features_does_not_matter(cls) -> None:
    want = cls(l2=0.0).fit(X, Y, qid=QID).score(X, Y, qid=QID)
    for scale in (1e6, 1e-6):
        assert cls(l2=0.0).fit(scale * X, Y, qid=QID).score(scale * X, Y, qid=QID) > want - 0.02


def test_small_labels_still_teach() -> None:
    assert fp.ListNet(l2=0.0).fit(X, Y * 1e-5, qid=QID).score(X, Y, qid=QID) > 0.9


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"scorer": "linear(device='cuda')"}])
def test_least_squares_are_solved_here_whatever_the_device(options) -> None:
    """A descent on the device would have no intercept, and other scores."""
    data = fp.Synthetic(queries=20, features=4).dataset()
    with pytest.warns(fp.FirstpageWarning, match="one pass over the data"):
        ranker = fp.Regression(**options).fit(data)
    assert np.array_equal(ranker.predict(data), fp.Regression().fit(data).predict(data))
