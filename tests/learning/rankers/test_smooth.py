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
def test_constant_and_tiny_features_do_no_harm(cls) -> None:
    expected = cls().fit(X, Y, qid=QID).score(X, Y, qid=QID)
    by_query = np.repeat(RNG.random(30), 10)
    for extra in (
        np.full(300, 0.1),
        1e-10 * RNG.normal(size=300),
        1e6 * RNG.normal(size=300),
        by_query,
    ):
        ranker = cls().fit(np.c_[X, extra], Y, qid=QID)
        assert ranker.score(np.c_[X, extra], Y, qid=QID) > expected - 0.05
        assert np.isfinite(ranker.coef_).all()


@pytest.mark.parametrize("cls", LINEAR)
def test_the_scale_of_the_features_does_not_matter(cls) -> None:
    expected = cls(l2=0.0).fit(X, Y, qid=QID).score(X, Y, qid=QID)
    for scale in (1e6, 1e-6):
        assert cls(l2=0.0).fit(scale * X, Y, qid=QID).score(scale * X, Y, qid=QID) > expected - 0.02


def test_small_labels_can_be_learned() -> None:
    assert fp.ListNet(l2=0.0).fit(X, Y * 1e-5, qid=QID).score(X, Y, qid=QID) > 0.9


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"scorer": "linear(device='cuda')"}])
def test_least_squares_are_solved_on_the_cpu_for_any_device(options) -> None:
    """A descent on the device would have no intercept, and other scores."""
    data = fp.Synthetic(queries=20, features=4).dataset()
    with pytest.warns(fp.FirstpageWarning, match="one pass over the data"):
        ranker = fp.Regression(**options).fit(data)
    assert np.array_equal(ranker.predict(data), fp.Regression().fit(data).predict(data))
