"""Networks: PyTorch fits them, NumPy scores them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import firstpage as fp
from firstpage.learning.losses.base import IncompatibleComponents
from firstpage.learning.losses.listwise import PlackettLuce
from firstpage.learning.scorers.network import Network
from firstpage.learning.solvers.objective import BlockObjective

pytestmark = pytest.mark.torch

DATA = fp.Synthetic(queries=80, docs="uniform(1, 30)", features=6, grades=3, seed=1).dataset()
TRAIN, TEST = DATA[:60], DATA[60:]
DEEP = "network(layers=(16, 8), norm=layer, dropout=0.1, input=log1p+standardize)"
ATTENTION = "network(layers=(8,), attention=(1, 2, 8), dropout=0.1)"
ADAM = "adam(rate=0.01, max_iter=12)"
INEXACT = {
    f"check_sample_weight_equivalence_on_{form}_data": "inputs are standardized without weights"
    for form in ("dense", "sparse")
}


@pytest.fixture(scope="module")
def attention() -> fp.Ranker:
    """A fitted network with attention; tests must not change it."""
    return fp.ListNet(scorer=ATTENTION, solver=ADAM, threads=1).fit(TRAIN, valid=TEST)


@pytest.mark.parametrize("attends", [None, (1, 2)])
def test_gradient_of_objectives_matches_finite_differences(attends) -> None:
    bound = Network((4,), "tanh", attention=attends).bind(TRAIN.X, TRAIN.offsets)
    weights = np.arange(1.0, len(TRAIN) + 1)
    objective = BlockObjective(PlackettLuce(5), bound, TRAIN.truth, 24, None, weights, l2=0.1)
    params = bound.initial_params(0)
    value, gradient = objective(params)
    rng = np.random.default_rng(0)
    for _ in range(5):
        direction = rng.normal(size=len(params))
        step = 1e-2 / np.linalg.norm(direction)
        (up, _), (down, _) = (
            objective(params + step * direction),
            objective(params - step * direction),
        )
        assert (up - down) / (2 * step) == pytest.approx(gradient @ direction, rel=2e-2, abs=1e-2)
    assert np.isfinite(value)


@pytest.mark.parametrize(
    "unfitted",
    [
        fp.ListMLE(k=5, scorer="mlp(hidden=16)"),
        fp.ListNet(scorer="mlp(hidden=8)", solver="lbfgs(max_iter=40)"),
        fp.FocusedNet(k=5, scorer="mlp"),
        fp.Regression(scorer="mlp", solver="adam(rate=0.01)"),
        fp.RankNet(k=5, scorer=DEEP, solver="adam(rate=0.01, max_iter=40)"),
        fp.RankCosine(scorer=DEEP, solver="adam(rate=0.01, max_iter=40)"),
        fp.PLRank(scorer=DEEP, solver="adam(rate=0.01, max_iter=40)"),
        fp.LambdaRank(scorer=ATTENTION, solver="adam(rate=0.01, max_iter=40)"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:the solver used all")
def test_networks_learn_reproducibly_and_survive_files(unfitted, tmp_path) -> None:
    unfitted.set_params(threads=1)
    ranker = unfitted.fit(TRAIN, valid=TEST)
    ground = fp.evaluate(np.random.default_rng(0).random(TEST.n_docs), TEST, measures="NDCG@10")
    assert ranker.score(TEST) > ground["NDCG@10"] + 0.1
    assert ranker.best_score_ == pytest.approx(ranker.score(TEST), rel=1e-12)
    scores = ranker.predict(TEST)
    ranker.save(tmp_path / "m.json")
    assert fp.load(tmp_path / "m.json").predict(TEST).tolist() == scores.tolist()
    assert unfitted.fit(TRAIN, valid=TEST).predict(TEST) == pytest.approx(
        scores, rel=1e-4, abs=1e-4
    )


def test_a_network_fits_what_a_linear_scorer_cannot() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = (np.abs(X[:, 0]) > 1).astype(float)
    qid = np.repeat(np.arange(100), 30)
    line = fp.ListNet().fit(X, y, qid=qid).score(X, y, qid=qid)
    net = fp.ListNet(scorer="mlp(hidden=8)", solver="adam(rate=0.01)").fit(X, y, qid=qid)
    assert net.score(X, y, qid=qid) > line + 0.3


def test_attention_fits_what_a_network_of_single_documents_cannot() -> None:
    """The sign by which a feature counts is known from the first document of the list only."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 6, 2))
    X[:, :, 1] = 0.0
    X[:, 0, 1] = sign = rng.choice([-1.0, 1.0], 100)
    y = np.clip((X[:, :, 0] * sign[:, None]).round() + 2, 0, 4).ravel()
    rows, qid, values = X.reshape(-1, 2), np.repeat(np.arange(100), 6), []
    for scorer in ("network(layers=(16,))", "network(layers=(16,), attention=(1, 2, 16))"):
        solver = "adam(rate=0.03, max_iter=25, batch=25)"
        ranker = fp.ListNet(scorer=scorer, solver=solver, threads=1).fit(rows, y, qid=qid)
        values.append(ranker.score(rows, y, qid=qid))
    assert values[1] > values[0] + 0.1


def test_early_stopping_keeps_the_best_epoch_and_stops() -> None:
    ranker = fp.ListNet(
        scorer="network(layers=(32, 32))", solver="adam(rate=0.05, max_iter=60)", patience=4
    ).fit(TRAIN, valid=TEST)
    measures = [step.measure for step in ranker.history_]
    assert ranker.best_iteration_ == int(np.argmax(measures)) + 1
    assert ranker.n_iter_ == ranker.best_iteration_ + 4 < 60
    assert ranker.score(TEST) == max(measures)


def test_sample_weights_and_warm_starts() -> None:
    weights = (np.arange(len(TRAIN)) < 30).astype(float)
    options: dict[str, Any] = {"scorer": "network(layers=(4,), attention=(1, 2, 4))", "threads": 1}
    half = fp.ListNet(solver="gd(rate=0.1, max_iter=5)", **options).fit(TRAIN[:30])
    weighted = fp.ListNet(solver="gd(rate=0.1, max_iter=5)", **options)
    weighted.fit(TRAIN, sample_weight=weights)
    assert weighted.objective_ != half.objective_  # the features are standardized over all
    again = fp.ListNet(solver="gd(rate=0.1, max_iter=5)", warm_start=True, **options)
    assert again.fit(TRAIN).fit(TRAIN).objective_ < again.history_[0].loss + 1e-9
    again.set_params(scorer="network(layers=(5,))")
    with pytest.raises(fp.DataError, match="warm_start: the previous model has"):
        again.fit(TRAIN)


def test_scores_of_a_list_need_the_list(attention, tmp_path) -> None:
    X, qid = TEST.X, np.repeat(np.arange(len(TEST)), TEST.lengths)
    scores = attention.predict(TEST)
    assert attention.predict(X, qid=qid).tolist() == scores.tolist()
    shuffled = np.random.default_rng(0).permutation(len(X))
    assert attention.predict(X[shuffled], qid=qid[shuffled]) == pytest.approx(scores[shuffled])
    for call in (attention.predict, attention.rank):
        with pytest.raises(fp.DataError, match=r"attends to the other documents.*qid=") as error:
            call(X)
        assert "\n" not in str(error.value)
    with pytest.raises(fp.DataError, match="qid="):
        attention.score(X, TEST.y)
    with pytest.raises(ValueError, match="7 features"):
        attention.predict(np.ones((3, 7)), qid=[1, 1, 1])
    with pytest.raises(fp.DataError, match="NaN"):
        attention.predict(np.full((3, 6), np.nan), qid=[1, 1, 1])
    one = attention.predict(X[:1], qid=[1])  # a list of one document
    assert np.isfinite(one).all()
    values = attention.model_.contributions(X, TEST.offsets)
    assert values.values.sum(axis=1) + values.base == pytest.approx(scores)
    assert len(fp.explain(attention).values) == 6


def test_dropout_needs_a_stochastic_solver_or_descent() -> None:
    with pytest.raises(IncompatibleComponents, match="dropout draws new ones"):
        fp.ListNet(scorer=DEEP, solver="lbfgs").fit(TRAIN)


def test_networks_are_not_fitted_on_shards(tmp_path) -> None:
    fp.write_shards(TRAIN, tmp_path / "shards", rows=300)
    with pytest.raises(fp.DataError, match=r"scorer='network' trains on data in memory"):
        fp.ListNet(scorer=ATTENTION).fit(fp.read_shards(tmp_path / "shards"))


def test_scikit_learn_estimator_checks_pass() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unfitted = fp.ListNet(scorer="network(layers=(8, 4), norm=layer)", solver=ADAM, threads=1)
        results = check_estimator(unfitted, on_skip=None, expected_failed_checks=INEXACT)
    assert len(results) > 40


def test_lbfgs_keeps_the_best_iteration_too() -> None:
    ranker = fp.ListMLE(scorer="mlp(hidden=8)", solver="lbfgs(max_iter=15)", seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not all iterations suffice
        ranker.fit(TRAIN, valid=TEST)
    values = [step.measure for step in ranker.history_]
    assert ranker.best_iteration_ == 1 + int(np.argmax(values))
    assert ranker.score(TEST) == pytest.approx(max(values))


def test_a_feature_whose_deviation_overflows_is_refused() -> None:
    X = TRAIN.X * np.array([1e170, *[1.0] * (TRAIN.n_features - 1)])
    with pytest.raises(fp.DataError, match=r"column 0 \(counted from 0\) is so large"):
        fp.ListNet(scorer="mlp(hidden=2)").fit(X, TRAIN.y, qid=TRAIN.qid)


def test_devices_are_names_or_objects_of_pytorch() -> None:
    import torch

    from firstpage.learning.scorers.mlp import MLP

    assert MLP(2, device=torch.device("cpu")) == MLP(2)
    with pytest.raises(fp.DataError, match="device 'meta' cannot be used"):
        fp.ListNet(scorer="mlp(hidden=2, device=meta)").fit(TRAIN)
