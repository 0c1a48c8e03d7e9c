"""Rankers are estimators of scikit-learn, by definition."""

from __future__ import annotations

import pickle

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

import firstpage as fp
from firstpage.learning.rankers.registry import RANKERS

OURS = "firstpage.learning.rankers"


@pytest.mark.parametrize("name", RANKERS)
def test_a_ranker_is_an_estimator_before_anything_else_is_asked_of_it(name: str) -> None:
    ranker = RANKERS[name]()
    assert isinstance(ranker, BaseEstimator)
    assert repr(ranker) == f"{name}()"
    assert type(clone(ranker)) is type(pickle.loads(pickle.dumps(ranker))) is RANKERS[name]


@pytest.mark.parametrize(
    ("ranker", "text"),
    [
        (fp.ListMLE(k=5), "ListMLE(k=5)"),
        (fp.ListMLE(5, l2=0.01), "ListMLE(k=5)"),
        (fp.RankSVM(seed=1, C=2.0), "RankSVM(C=2.0, seed=1)"),
        (fp.FocusedNet(k=None), "FocusedNet(k=None)"),
        (fp.TopRank(first=fp.ListNet(l2=1.0)), "TopRank(first=ListNet(l2=1.0))"),
    ],
    ids=str,
)
def test_the_printed_form_names_the_parameters_that_are_set(ranker: fp.Ranker, text: str) -> None:
    assert repr(ranker) == text


def test_a_ranker_that_is_not_fitted_says_so() -> None:
    with pytest.raises(NotFittedError, match="This ListNet instance is not fitted yet"):
        fp.ListNet().predict([[1.0]])
    with pytest.raises(AttributeError, match="no attribute 'coefficients'"):
        _ = fp.ListNet().coefficients
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        fp.ListNet().set_params(depth=1)
