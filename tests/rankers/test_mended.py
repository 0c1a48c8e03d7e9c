"""Mistakes that were found once, each with the smallest case that showed it."""

from __future__ import annotations

import copy
import pickle

import lightgbm
import numpy as np
import pytest
from scipy.sparse import csr_array

import firstpage as fp
from firstpage.errors import DataError, FirstpageError
from firstpage.losses.focused import TopList
from firstpage.losses.listwise import SoftmaxCrossEntropy
from firstpage.solvers.descent import SGD, GradientDescent

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


@pytest.mark.parametrize(
    "solver", ["sgd(rate=0.01, max_iter=5)", "adam(rate=0.01, max_iter=5, batch=4)"]
)
def test_stochastic_descents_know_the_weights_of_queries(solver: str) -> None:
    weights = np.where(np.arange(30) < 15, 0.0, 2.0)
    heavy = fp.RankNet(solver=solver).fit(X, Y, qid=QID, sample_weight=weights)
    plain = fp.RankNet(solver=solver).fit(X, Y, qid=QID)
    assert not np.allclose(heavy.coef_, plain.coef_)


def test_a_used_objective_can_be_copied() -> None:
    used = fp.objective("listnet")
    scores = RNG.normal(size=300)
    used(Y, scores, None, [10] * 30)
    for again in (copy.deepcopy(used), pickle.loads(pickle.dumps(used))):
        got = again(Y, 2 * scores, None, [10] * 30)
        assert got[0] == pytest.approx(fp.objective("listnet")(Y, 2 * scores, None, [10] * 30)[0])


def test_a_fit_that_fails_leaves_the_old_model() -> None:
    ranker = fp.ListNet().fit(X, Y, qid=QID)
    before = ranker.predict(X)
    with pytest.raises(DataError):
        ranker.fit(np.c_[X, X], np.full(300, np.nan), qid=QID)
    assert ranker.n_features_in_ == 5
    assert ranker.predict(X).tolist() == before.tolist()


@pytest.mark.parametrize("cls", LINEAR[:-1])
def test_queries_that_prefer_nothing_change_nothing(cls) -> None:
    want = cls().fit(X, Y, qid=QID).coef_
    more = np.r_[X, RNG.normal(size=(40, 5))]
    labels = np.r_[Y, np.ones(20), np.arange(20) % 3]
    qid = np.r_[QID, np.repeat([100, 101], 10), np.arange(200, 220)]  # tied, and alone
    assert cls().fit(more, labels, qid=qid).coef_ == pytest.approx(want, rel=1e-4, abs=1e-5)
    data = fp.Dataset.from_arrays(X, Y, QID)
    empty = fp.Dataset(
        data.X, data.y, np.insert(data.offsets, [0, 7, 30], data.offsets[[0, 7, 30]]),
        type(data.queries).of([str(i) for i in range(33)]),
    )  # fmt: skip
    assert cls().fit(empty).coef_ == pytest.approx(want, rel=1e-4, abs=1e-5)


def test_empty_queries_do_not_break_trees_or_regression() -> None:
    data = fp.Dataset.from_arrays(X, Y, QID)
    empty = fp.Dataset(
        data.X,
        data.y,
        np.append(data.offsets, 300),
        type(data.queries).of([str(i) for i in range(31)]),
    )
    for made in (
        fp.LambdaMART(scorer="trees(count=3)"),
        fp.Regression(),
        fp.ListNet(scorer="trees(count=3)"),
    ):
        assert np.isfinite(made.fit(empty).predict(X)).all()


def test_names_written_otherwise_mean_the_same() -> None:
    want = fp.Regression().fit(X + 5, Y, qid=QID)
    for other in (fp.Regression(scorer="Linear"), fp.Regression(solver="lbfgs")):
        assert other.fit(X + 5, Y, qid=QID).coef_ == pytest.approx(want.coef_)


def test_missing_scores_show() -> None:
    values, _ = SoftmaxCrossEntropy().value_grad(
        np.array([1.0, np.nan]), fp.Truth.of([1, 0], [1, 1])
    )
    assert np.isnan(values[0])


@pytest.mark.filterwarnings("ignore:29 of 30 validation queries are in the training data")
def test_scores_that_overflow_are_never_the_best() -> None:
    bad = X.copy()
    bad[0] = 1e308
    ranker = fp.ListNet(measure="TopK01@3", solver="gd(rate=50, max_iter=5)")
    ranker.fit(X, Y, qid=QID, valid=(bad, Y, QID))
    assert ranker.best_score_ is None or np.isfinite(ranker.best_score_)


def test_each_query_chooses_its_list_form_by_itself() -> None:
    strict = fp.Truth.of([3, 2, 1, 0, 0], [1] * 5)
    both = fp.Truth.of([3, 2, 1, 0, 0, 1, 1, 1, 0, 0], [1] * 5 + [2] * 5)
    scores = RNG.normal(size=10)
    alone = TopList(3).value_grad(scores[:5], strict)[0][0]
    assert TopList(3).value_grad(scores, both)[0][0] == pytest.approx(alone)


@pytest.mark.filterwarnings("ignore:the validation data are the training data")
def test_an_interrupt_stops_tuning() -> None:
    data = fp.Dataset.from_arrays(X, Y, QID)
    fits = []

    class Once(fp.ListNet):
        def fit(self, *args, **more):
            def stop(step) -> None:
                fits.append(1)
                raise KeyboardInterrupt

            return super().fit(*args, **more, callback=stop)

    with pytest.warns(UserWarning, match="interrupted"):
        found = fp.tune(Once(), data, data)
    assert found.interrupted
    assert len(fits) == 1


@pytest.mark.filterwarnings("ignore:the validation data are the training data")
def test_a_rate_that_diverges_spoils_no_other_trial() -> None:
    data = fp.Dataset.from_arrays(1000 * X, Y, QID)
    with np.errstate(all="ignore"):
        found = fp.tune(fp.Regression(solver="gd"), data, data)
        assert len(found.trials) == 5  # the best iteration before it went wrong is kept
        far = fp.Dataset.from_arrays(1e200 * X, Y, QID)
        with pytest.raises(DataError, match="lower the rate"):
            fp.tune(fp.Regression(solver="gd"), far, far)


def test_parts_survive_a_model_file(tmp_path) -> None:
    for made in (
        fp.ListNet(solver=GradientDescent(rate=0.1, max_iter=7)),
        fp.ListNet(solver=SGD(rate=0.1, max_iter=2)),
        fp.ListNet(scorer="trees(count=3, options={'max_depth': 3, 'lambda_l2': 1.0})"),
        fp.ListNet(measure=fp.measure("NDCG@5")),
    ):
        made.fit(X, Y, qid=QID).save(tmp_path / "m.json")
        again = fp.load(tmp_path / "m.json")
        assert again.fit(X, Y, qid=QID).predict(X).tolist() == made.predict(X).tolist()


@pytest.mark.parametrize(
    "settings",
    [
        {"l2": "abc"}, {"seed": "abc"}, {"seed": -5}, {"patience": "x"}, {"solver": 5}, {"scorer": 5},
        {"k": True}, {"threads": "x"}, {"solver": "sgd(rate=x)"}, {"solver": "sgd(batch=0)"},
        {"solver": "gd(rate=-1)"}, {"solver": "lbfgs(max_iter=x)"}, {"scorer": "trees(count=x)"},
        {"scorer": "trees(rate=inf)"}, {"scorer": "trees(options=3)"}, {"verbose": "maybe"},
        {"scorer": "trees(options={'num_leaves': -3})"},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_parameters_are_said(settings) -> None:
    with pytest.raises(FirstpageError) as caught:
        fp.ListNet(**settings).fit(X, Y, qid=QID)
    assert "\n" not in str(caught.value)


def test_what_the_libraries_refuse_is_one_line() -> None:
    for made in (
        fp.LambdaMART(scorer="trees(count=3, options={'num_leaves': -3})"),
        fp.ListNet(scorer="trees(count=3, library=xgboost, options={'tree_method': 'oak'})"),
    ):
        with pytest.raises(DataError, match="refuses") as caught:
            made.fit(X, Y, qid=QID)
        assert "\n" not in str(caught.value)


def test_regression_on_very_many_features() -> None:
    wide = csr_array(np.c_[X, np.zeros((300, 3000))])
    assert fp.Regression().fit(wide, Y, qid=QID).score(wide, Y, qid=QID) > 0.9


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_metric_and_objective_in_lightgbm_s_estimator() -> None:
    model = lightgbm.LGBMRanker(objective=fp.objective("listnet"), n_estimators=5, verbosity=-1)
    model.fit(
        X, Y, group=[10] * 30, eval_set=[(X, Y)], eval_group=[[10] * 30],
        eval_metric=fp.metric("NDCG@5"),
    )  # fmt: skip
    (curves,) = model.evals_result_.values()
    assert len(curves["NDCG@5"]) == 5
    with pytest.raises(DataError, match="LightGBM's own"):
        fp.objective("lambdamart")


def test_long_lists_of_trees_cost_what_k_says() -> None:
    loss = fp.RankNet(k=10)._loss()
    truth = fp.Truth.of(RNG.random(100_000), np.zeros(100_000))
    assert np.isfinite(loss.curvature(np.zeros(100_000), truth)).all()  # O(n^2) would take minutes


def test_cross_validation_s_edges(tmp_path) -> None:
    fp.write_folds(fp.Dataset.from_arrays(X, Y, QID), tmp_path, 3)
    folds = fp.read_folds(tmp_path)
    found = fp.cross_validate(fp.ListNet(), folds, "NDCG@5")
    assert list(found.values) == ["ListNet()"]
    twice = fp.cross_validate([fp.ListNet(), fp.ListNet()], folds, fp.measure("NDCG@5"))
    assert len(twice.values) == 2
    with pytest.raises(DataError, match="at least one seed"):
        fp.cross_validate(fp.ListNet(), folds, seeds=[])
