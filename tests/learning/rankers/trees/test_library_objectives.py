"""Firstpage's objectives in the interfaces of LightGBM and XGBoost."""

from __future__ import annotations

import copy
import pickle

import lightgbm
import numpy as np
import pytest
import xgboost

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.learning.rankers.trees.growth import Gradients

RECIPE = fp.Synthetic(queries=150, docs="uniform(2, 30)", features=8, grades=4, seed=2)
DATA = RECIPE.dataset()
TRAIN, TEST = DATA[:100], DATA[100:]
NAMES = [
    "PairwiseExponential",
    "topk-listmle",
    "ListMLE",
    "focused-net",
    "ListNet",
    "rank-net",
    "RankCosine",
    "Regression",
]
QUIET = {
    "verbosity": -1,
    "num_leaves": 7,
    "learning_rate": 0.1,
    "min_data_in_leaf": 5,
    "seed": 0,
    "deterministic": True,
    "num_threads": 2,
}


def ndcg(scores) -> float:
    return fp.evaluate(scores, TEST, measures="NDCG@10")["NDCG@10"]


@pytest.fixture(scope="module")
def lambdarank() -> float:
    data = lightgbm.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.lengths)
    return ndcg(lightgbm.train({**QUIET, "objective": "lambdarank"}, data, 50).predict(TEST.X))


@pytest.mark.parametrize("name", NAMES)
def test_objectives_in_lightgbm_train(name: str, lambdarank: float) -> None:
    data = lightgbm.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.lengths)
    valid = data.create_valid(TEST.X, TEST.y, group=TEST.lengths)
    seen: dict = {}
    unfitted = fp.objective(name, k=10)
    model = lightgbm.train(
        {**QUIET, "objective": unfitted, "metric": "none"},
        data,
        50,
        valid_sets=[valid],
        feval=fp.metric("NDCG@10"),
        callbacks=[lightgbm.record_evaluation(seen)],
    )
    assert ndcg(model.predict(TEST.X)) > lambdarank - 0.04
    curve = seen["valid_0"]["NDCG@10"]
    assert curve[-1] == pytest.approx(ndcg(model.predict(TEST.X)))
    assert max(curve[10:]) > curve[0] + 0.02  # it goes on learning


@pytest.mark.parametrize("name", ["topk-listmle", "focused-net"])
def test_objectives_in_lgbmranker(name: str, lambdarank: float) -> None:
    options = {"n_estimators": 50, "num_leaves": 7, "min_child_samples": 5, "verbosity": -1}
    model = lightgbm.LGBMRanker(objective=fp.objective(name, k=10), **options)
    model.fit(TRAIN.X, TRAIN.y, group=TRAIN.lengths)
    assert ndcg(model.predict(TEST.X)) > lambdarank - 0.04


@pytest.mark.parametrize("name", NAMES)
def test_objectives_in_xgboost_train(name: str, lambdarank: float) -> None:
    data = xgboost.DMatrix(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    valid = xgboost.DMatrix(TEST.X, TEST.y, qid=TEST.qid)
    params = {
        "max_depth": 3,
        "eta": 0.1,
        "base_score": 0.0,
        "min_child_weight": 1e-3,
        "nthread": 2,
        "disable_default_eval_metric": True,
    }
    seen: dict = {}
    model = xgboost.train(
        params,
        data,
        60,
        obj=fp.objective(name, k=10),
        custom_metric=fp.metric("NDCG@10"),
        evals=[(valid, "valid")],
        evals_result=seen,
        verbose_eval=False,
    )
    assert ndcg(model.predict(valid)) > lambdarank - 0.04
    assert seen["valid"]["NDCG@10"][-1] == pytest.approx(ndcg(model.predict(valid)))


def test_both_libraries_and_the_ranker_get_the_same_gradients() -> None:
    unfitted = fp.objective("topk-listmle", k=5)
    scores = np.random.default_rng(0).normal(size=TRAIN.n_docs)
    data = lightgbm.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.lengths).construct()
    other = xgboost.DMatrix(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    expected = Gradients(fp.ListMLE(5).compose().loss, TRAIN.truth)(scores)
    for got in (
        unfitted(scores, data),
        unfitted(scores, other),
        unfitted(TRAIN.y, scores, None, TRAIN.lengths),
    ):
        assert got[0] == pytest.approx(expected[0], rel=1e-5, abs=1e-7)
        assert got[1] == pytest.approx(expected[1], rel=1e-5, abs=1e-7)
    assert (expected[1] >= np.abs(expected[0]) - 1e-12).all()  # no leaf steps further than 1


def test_query_weights_reach_the_objective() -> None:
    unfitted = fp.objective("listnet")
    scores = np.random.default_rng(0).normal(size=TRAIN.n_docs)
    weights = np.random.default_rng(1).random(len(TRAIN))
    unweighted = unfitted(TRAIN.y, scores, None, TRAIN.lengths)
    row_weights = np.repeat(weights, TRAIN.lengths)
    weighted = unfitted(TRAIN.y, scores, row_weights, TRAIN.lengths)
    assert weighted[0] == pytest.approx(unweighted[0] * row_weights)
    assert weighted[1] == pytest.approx(unweighted[1] * row_weights)
    other = xgboost.DMatrix(TRAIN.X, TRAIN.y, qid=TRAIN.qid, weight=weights)  # one per group
    assert unfitted(scores, other)[0] == pytest.approx(
        unweighted[0] * row_weights, rel=1e-5, abs=1e-7
    )


def test_objectives_accept_real_labels_and_long_lists() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24_000, 4))
    y = X @ [1.0, -1, 0.5, 0] + 0.1 * rng.normal(size=len(X))
    data = lightgbm.Dataset(X, y, group=[12_000, 12_000])
    model = lightgbm.train({**QUIET, "objective": fp.objective("topk-listmle", k=10)}, data, 30)
    top = np.argsort(-model.predict(X[:12_000]))[:100]
    assert y[top].mean() > np.quantile(y, 0.95)
    ranker = fp.RankNet(k=10, scorer="trees(count=30)").fit(X, y, qid=np.repeat([1, 2], 12_000))
    top = np.argsort(-ranker.predict(X[12_000:]))[:100]
    assert y[12_000:][top].mean() > np.quantile(y, 0.9)


def test_missing_groups_are_rejected() -> None:
    unfitted = fp.objective("listnet")
    with pytest.raises(DataError, match="no query groups"):
        lightgbm.train({**QUIET, "objective": unfitted}, lightgbm.Dataset(TRAIN.X, TRAIN.y), 2)
    with pytest.raises(DataError, match="no query groups"):
        unfitted(TRAIN.y, TRAIN.y)
    with pytest.raises(DataError, match="no query groups"):
        xgboost.train({}, xgboost.DMatrix(TRAIN.X, TRAIN.y), 2, obj=unfitted)


def test_metrics_report_whether_higher_is_better() -> None:
    data = lightgbm.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.lengths).construct()
    assert fp.metric("NDCG@5")(np.zeros(TRAIN.n_docs), data)[-1] is True
    assert fp.metric("WKT@5")(np.zeros(TRAIN.n_docs), data)[-1] is False


@pytest.mark.parametrize("source", ["mslr", "mq2008"])
def test_trees_match_lambdarank_on_real_data(source: str, real_data) -> None:
    """Within first standard error of LightGBM's lambdarank, with equal trees."""
    rankers = fp.LambdaMART(), fp.ListMLE(k=10), fp.FocusedNet(k=10)
    if source == "mslr":
        folder = real_data / "mslr-web10k-5k"
        first, second = (fp.read_letor(folder / f"{name}.txt") for name in ("train", "test"))
        splits = [(first, second), (second, first)]
    else:
        splits = [(fold.train, fold.test) for fold in fp.read_folds(real_data / "mq2008")[:2]]
    values: list[list[np.ndarray]] = [[] for _ in rankers]
    for train, test in splits:
        for ranker, ndcg in zip(rankers, values, strict=True):
            options = "options={'max_bin': 255}"
            scorer = f"trees(count=60, leaves=15, rate=0.1, min_docs=20, forests=1, {options})"
            ranker.set_params(scorer=scorer).fit(train)
            ndcg.append(fp.evaluate(ranker.predict(test), test, measures="NDCG@10").values[0])
    lambdarank, *others = (np.concatenate(ndcg) for ndcg in values)
    for other in others:
        assert other.mean() > lambdarank.mean() - lambdarank.std() / np.sqrt(len(lambdarank))


RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


def test_used_objectives_can_be_copied() -> None:
    used = fp.objective("listnet")
    scores = RNG.normal(size=300)
    used(Y, scores, None, [10] * 30)
    for again in (copy.deepcopy(used), pickle.loads(pickle.dumps(used))):
        got = again(Y, 2 * scores, None, [10] * 30)
        assert got[0] == pytest.approx(fp.objective("listnet")(Y, 2 * scores, None, [10] * 30)[0])


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_metric_and_objective_in_lgbmranker() -> None:
    model = lightgbm.LGBMRanker(objective=fp.objective("listnet"), n_estimators=5, verbosity=-1)
    model.fit(
        X,
        Y,
        group=[10] * 30,
        eval_set=[(X, Y)],
        eval_group=[[10] * 30],
        eval_metric=fp.metric("NDCG@5"),
    )
    (curves,) = model.evals_result_.values()
    assert len(curves["NDCG@5"]) == 5
    with pytest.raises(DataError, match="LightGBM's own"):
        fp.objective("lambdamart")
