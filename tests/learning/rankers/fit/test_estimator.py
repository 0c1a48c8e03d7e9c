"""Rankers are estimators of scikit-learn, by definition."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

import firstpage as fp
from firstpage.core import Registry
from firstpage.learning.rankers.registry import RANKERS

DATA = fp.Synthetic(queries=5, docs=6, features=3, seed=0).dataset()


@pytest.mark.parametrize("name", RANKERS)
def test_a_ranker_is_an_estimator_before_anything_else_is_asked_of_it(name: str) -> None:
    ranker = RANKERS[name]()
    assert isinstance(ranker, BaseEstimator)
    assert repr(ranker) == f"{name}()"
    assert type(clone(ranker)) is type(pickle.loads(pickle.dumps(ranker))) is RANKERS[name]


@pytest.mark.parametrize("name", RANKERS)
def test_at_most_three_classes_of_ours_make_a_ranker(name: str) -> None:
    ours = [c for c in RANKERS[name].__mro__ if c.__module__.startswith("firstpage.learning.")]
    assert ours[0] is RANKERS[name]
    assert ours[-1] is fp.Ranker
    assert len(ours) <= 3


@pytest.mark.parametrize(
    ("ranker", "parsed"),
    [
        (fp.ListMLE(k=2), ["scorer"]),
        (fp.RankNet(scorer="Linear", solver="gd(max_iter=2)"), ["scorer", "solver"]),
        (fp.TopMargin(solver="cutting plane(max_iter=9)"), ["scorer", "solver"]),
        (fp.ListNet(scorer="trees(count=2, min_docs=2)"), ["scorer"]),
        (fp.LambdaMART(scorer="trees(count=2, min_docs=2)"), ["scorer"]),
    ],
    ids=str,
)
def test_a_fit_parses_the_texts_of_scorer_and_solver_once(
    ranker: fp.Ranker, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds, create = list[str](), Registry.create

    def counted(self: Registry[Any], *arguments: Any, **options: Any) -> Any:
        kinds.append(self.kind)
        return create(self, *arguments, **options)

    monkeypatch.setattr(Registry, "create", counted)
    clone(ranker).fit(np.asarray(DATA.X), DATA.y, qid=DATA.qid)
    assert sorted(kinds) == parsed


def test_an_objective_is_composed_for_labels_votes_and_trees() -> None:
    votes = fp.FocusedNet(beta=0.5).compose("votes")
    assert votes.reads_labels
    assert not fp.FocusedNet(beta=0.0).compose("votes").reads_labels
    assert votes.loss != fp.FocusedNet(beta=0.5).compose().loss
    assert fp.RankCosine().compose("trees").loss != fp.RankCosine().compose().loss
    with pytest.raises(fp.DataError, match="ListNet needs labels; RankNet, RankSVM"):
        fp.ListNet().check_parameters("votes")


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
