"""What an attack on the second family of rankers found, and must stay mended."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firstpage as fp
from firstpage.errors import DataError, FirstpageError, FirstpageWarning

DATA = fp.Synthetic(queries=30, docs=12, features=6, grades=3).dataset()
TRAIN, VALID = DATA[:20], DATA[20:]


def test_lambdamart_takes_validation_data() -> None:
    found = fp.LambdaMART(scorer="trees(count=10, leaves=5)").fit(TRAIN, valid=VALID)
    assert found.best_score_ == pytest.approx(found.score(VALID))


@pytest.mark.parametrize(
    "made",
    [
        fp.FocusedSVM(beta="x"),
        fp.FocusedSVM(beta=None),
        fp.FocusedSVM(beta=[0.5]),
        fp.FocusedNet(beta="x"),
        fp.TopMargin(delta=5),
        fp.TopSlack(delta=None),
        fp.TopSlack(delta="NDCG@99999999999"),
        fp.RankSVM(k=10**30),
        fp.RankSVM(seed=10**30),
        fp.RankSVM(C=float("nan")),
        fp.RankSVM(C=10**400),
        fp.AdaRank(halvings=10**9),
        fp.TopRank(depth=10**30),
        fp.TopRank(depth=20_000),
        fp.TopRank(warm_start=True),
    ],
    ids=str,
)
def test_wrong_parameters_are_one_line(made) -> None:
    with pytest.raises(FirstpageError) as error:
        made.fit(TRAIN)
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", [fp.TopMargin, fp.TopSlack])
def test_features_whose_squares_overflow(cls) -> None:
    X = np.asarray(TRAIN.X, np.float64) * 1e200
    try:
        found = cls().fit(X, TRAIN.y, qid=TRAIN.qid)
    except DataError:
        return
    assert np.isfinite(found.coef_).all()


def test_too_many_copies() -> None:
    weights = np.ones(TRAIN.n_docs)
    weights[0] = 1e12
    with pytest.raises(DataError, match="too many"):
        fp.SVMMAP().fit(TRAIN, sample_weight=weights)


def test_boosting_in_vain_says_so_and_keeps_its_objective() -> None:
    with pytest.warns(FirstpageWarning, match="nothing was learnt"):
        fp.RankBoost().fit(np.ones((20, 3)), np.arange(20) % 3)
    ranker = fp.AdaRank(warm_start=True).fit(TRAIN)
    before = ranker.objective_
    ranker.fit(TRAIN)
    assert ranker.objective_ <= before


def test_tables_too_large_are_refused() -> None:
    import firstpage.solvers.boosting.pools as pools

    most, pools.MOST_BYTES = pools.MOST_BYTES, 1000
    try:
        with pytest.raises(DataError, match="take fewer"):
            fp.FocusedBoost(k=3).fit(TRAIN)
    finally:
        pools.MOST_BYTES = most


def test_a_ratio_without_end_is_null() -> None:
    scores = np.array([[3.0, 2.0, 1.0]])
    ballots = fp.Ballots.of_scores(scores, [0, 3], mu_scores=-scores[0])
    found = fp.aggregate(ballots, "skr")
    held = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert held["kemeny"]["ratio"] is None or held["kemeny"]["ratio"] >= 1


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"offsets": [0, 1.5, 2]}, "whole numbers"),
        ({"offsets": [0, 2], "docids": ["a"]}, "1 docids"),
        ({"offsets": [0, 2], "names": ["a", "b", "c"]}, "3 names"),
        ({"offsets": [0, 2], "depth": 0}, "depth must be"),
    ],
)
def test_ballots_are_checked(how, said) -> None:
    with pytest.raises(DataError, match=said):
        fp.Ballots.of_scores(np.ones((1, 2)), **how)
    assert len(fp.Ballots.of_scores(np.ones((1, 2)), [0, 2], depth=10**25)) == 1


@pytest.mark.filterwarnings("ignore:.*unjudged")
def test_wrong_rankings_are_one_line() -> None:
    runs = [{"q": {"a": 1.0, "b": 0.5}}, {"q": {"a": 0.5, "b": 1.0}}]
    qrels = {"q": {"a": 1}}
    for wrong in (
        lambda: fp.Ballots.of_lists([["a", "b"]]),
        lambda: fp.Ballots.of_lists([{"q": 5}]),
        lambda: fp.Ballots.of_lists([{"q": "ab"}]),
        lambda: fp.supervised_weights([], qrels),
        lambda: fp.aggregate(runs, qrels=qrels, valid=5),
    ):
        with pytest.raises(FirstpageError):
            wrong()
    assert fp.aggregate(runs, qrels=qrels).weights[0] > 0.5


@pytest.mark.parametrize(
    "cls", [fp.RankSVM, fp.SVMMAP, fp.FocusedSVM, fp.TopMargin, fp.TopSlack, fp.RankNet]
)
def test_constant_features_are_said(cls) -> None:
    X, y, qid = np.full((40, 3), 0.1), np.arange(40) % 3, np.repeat(np.arange(4), 10)
    with pytest.warns(FirstpageWarning, match="all scores are alike"):
        cls(k=5).fit(X, y, qid=qid)
