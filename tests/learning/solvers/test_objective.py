"""The objective for any blocks and threads, dense and sparse; solvers reach its optimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import firstpage as fp
from firstpage.core.errors import FirstpageError
from firstpage.learning.losses.base import IncompatibleComponents, Loss, Traits
from firstpage.learning.losses.focused import focused_net
from firstpage.learning.losses.listwise import Cosine, PlackettLuce, SoftmaxCrossEntropy
from firstpage.learning.losses.pairwise import PairwiseHinge, PairwiseLogistic
from firstpage.learning.scorers.linear import BoundLinear, Linear
from firstpage.learning.solvers import objective as module
from firstpage.learning.solvers.cutting_plane.one_slack import CuttingPlane
from firstpage.learning.solvers.descent import SGD, Adam, GradientDescent
from firstpage.learning.solvers.lbfgs import LBFGS
from firstpage.learning.solvers.objective import BlockObjective
from firstpage.learning.solvers.registry import solver, solver_for
from tests.narrow import dense

RECIPE = fp.Synthetic(queries=60, docs="uniform(1, 25)", features=7, grades=3, seed=4)
CONVEX = [
    PlackettLuce(),
    PlackettLuce(5),
    SoftmaxCrossEntropy(),
    PairwiseLogistic(),
    focused_net(4, 0.5),
]


def data(dtype=np.float64):
    dataset = RECIPE.dataset()
    return dataset.with_features(np.ascontiguousarray(dataset.X, dtype))


def build(loss, dataset, **options) -> BlockObjective:
    X = dataset.X
    row = X.shape[1] * X.dtype.itemsize
    return BlockObjective(loss, Linear().bind(X), dataset.truth, row, **options)


@pytest.mark.parametrize("loss", [*CONVEX, Cosine()], ids=str)
def test_value_and_gradient_are_weighted_sums_over_queries(loss) -> None:
    dataset = data()
    w = np.random.default_rng(0).normal(size=7)
    weights = np.random.default_rng(1).random(len(dataset))
    value, gradient = build(loss, dataset, query_weights=weights, l2=0.3)(w)
    values, grad = loss.value_grad(dataset.X @ w, dataset.truth)
    row_weights = np.repeat(weights / weights.sum(), dataset.lengths)
    assert value == pytest.approx((values * weights).sum() / weights.sum() + 0.15 * w @ w)
    assert gradient == pytest.approx(dataset.X.T @ (grad * row_weights) + 0.3 * w)


def test_blocks_and_threads_change_nothing(monkeypatch) -> None:
    dataset = data(np.float32)
    w = np.random.default_rng(0).normal(size=7)
    monkeypatch.setattr(module, "SINGLE_THREAD_BYTES", 0)
    monkeypatch.setattr(module, "BLOCK_BYTES", 1000)
    results = []
    for threads in (1, 2, 3, 8):
        objective = build(PlackettLuce(5), dataset, threads=threads)
        assert len(objective.bounds) > 8
        value, gradient = objective(w)
        results.append((value, gradient.tolist()))
    assert all(r == results[0] for r in results)  # to the last bit
    monkeypatch.setattr(module, "BLOCK_BYTES", 1 << 20)
    full = build(PlackettLuce(5), dataset)(w)
    assert full[0] == pytest.approx(results[0][0])
    assert full[1] == pytest.approx(results[0][1], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_features_give_the_same_objective(dtype) -> None:
    dataset = data(dtype)
    X = dataset.X * (np.random.default_rng(2).random(dataset.X.shape) < 0.4)
    dense = dataset.with_features(X.astype(dtype))
    sparse = dataset.with_features(csr_array(X.astype(dtype)))
    w = np.random.default_rng(0).normal(size=7)
    of_dense, of_sparse = build(PlackettLuce(), dense)(w), build(PlackettLuce(), sparse)(w)
    assert of_dense[0] == pytest.approx(of_sparse[0], rel=1e-5)
    assert of_dense[1] == pytest.approx(of_sparse[1], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("loss", CONVEX, ids=str)
def test_solvers_reach_the_same_optimum_from_any_start(loss) -> None:
    dataset = data()
    rng = np.random.default_rng(0)
    results = [
        LBFGS(max_iter=500).minimize(build(loss, dataset, l2=0.01), start)
        for start in (np.zeros(7), rng.normal(size=7), 10 * rng.normal(size=7))
    ]
    best = min(r.value for r in results)
    assert all(r.value - best <= 1e-6 * abs(best) for r in results)
    scale = {"PlackettLuce": 0.02, "PairwiseLogistic": 0.005}.get(type(loss).__name__, 0.3)
    descent = GradientDescent(rate=scale, max_iter=20_000, tol=1e-12)
    slow = descent.minimize(build(loss, dataset, l2=0.01), np.zeros(7))
    assert slow.value - best <= 1e-6 * abs(best)


@pytest.mark.parametrize("loss", CONVEX, ids=str)
def test_the_optimum_is_that_of_an_independent_solver(loss) -> None:
    from scipy.optimize import minimize

    dataset = data()

    def plain(w: np.ndarray) -> float:
        return float(loss.value_grad(dataset.X @ w, dataset.truth)[0].mean() + 0.005 * w @ w)

    solved = LBFGS().minimize(build(loss, dataset, l2=0.01), np.zeros(7))
    independent = minimize(  # with gradients by differences
        plain,
        solved.params + 0.1,
        method="BFGS",
        jac="3-point",
        options={"gtol": 1e-7, "finite_diff_rel_step": 1e-5},
    )
    assert independent.success
    assert solved.value == pytest.approx(independent.fun, rel=1e-6)


def test_uninformative_queries_do_not_change_the_optimum() -> None:
    dataset = data()
    uninformative = dataset.with_labels(
        np.where(np.repeat(np.arange(len(dataset)) < 10, dataset.lengths), 0.0, dataset.y)
    )
    for loss in (PlackettLuce(), PairwiseLogistic()):
        with_them = LBFGS().minimize(build(loss, uninformative, l2=0.01 * 50 / 60), np.zeros(7))
        without = LBFGS().minimize(build(loss, uninformative[10:], l2=0.01), np.zeros(7))
        assert with_them.params == pytest.approx(without.params, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    "stochastic", [SGD(rate=0.02, max_iter=30), Adam(rate=0.05, max_iter=30, batch=8)], ids=str
)
def test_stochastic_solvers_approach_the_optimum(stochastic) -> None:
    dataset = data()
    best = LBFGS().minimize(build(PlackettLuce(average=True), dataset, l2=0.01), np.zeros(7))
    near = stochastic.minimize(
        build(PlackettLuce(average=True), dataset, l2=0.01, batch=stochastic.batch), np.zeros(7)
    )
    full = build(PlackettLuce(average=True), dataset, l2=0.01)
    assert full(near.params)[0] < best.value + 0.05 * (full(np.zeros(7))[0] - best.value)
    again = stochastic.minimize(
        build(PlackettLuce(average=True), dataset, l2=0.01, batch=stochastic.batch), np.zeros(7)
    )
    assert again.params.tolist() == near.params.tolist()


def test_divergence_is_reported() -> None:
    dataset = data()
    with np.errstate(all="ignore"):
        result = GradientDescent(rate=1e200, max_iter=50).minimize(
            build(Cosine(), dataset, l2=1.0), np.ones(7)
        )
    assert "diverged" in result.reason


def test_solvers_are_created_by_name() -> None:
    assert solver("sgd(rate=0.5, batch=4)", 7) == SGD(rate=0.5, batch=4, seed=7)
    assert solver("L-BFGS", 0) == LBFGS()
    linear = BoundLinear(np.ones((2, 1)))
    assert solver_for("auto", PlackettLuce(), linear, 0) == LBFGS()
    assert solver_for("auto", PairwiseHinge(), linear, 0) == CuttingPlane()
    for text, message in [
        ("newton", "no solver 'newton'"),
        ("sgd(speed=1)", "no parameter 'speed'"),
        ("sgd(1)", "name=value"),
    ]:
        with pytest.raises(FirstpageError, match=message):
            solver(text, 0)


def test_incompatible_components_are_refused() -> None:
    class Rough(Loss):
        traits = Traits(smooth=False)

    with pytest.raises(IncompatibleComponents, match="LBFGS needs a smooth loss, and Rough is not"):
        solver_for(LBFGS(), Rough(), BoundLinear(np.ones((2, 1))), 0)

    class Network(BoundLinear):
        linear = False

    with pytest.raises(IncompatibleComponents, match="CuttingPlane needs linear scores"):
        solver_for(CuttingPlane(), Rough(), Network(np.ones((2, 1))), 0)


def test_many_sparse_features_need_no_covariance_matrix() -> None:
    rng = np.random.default_rng(0)
    rows, size = 4000, 50_000
    indices = rng.integers(0, size, rows * 20)
    X = csr_array(
        (rng.random(rows * 20), indices, np.arange(0, rows * 20 + 1, 20)), shape=(rows, size)
    )
    w = rng.normal(size=size)
    y = np.digitize(dense(X @ w), [-1, 1]).astype(float)
    qid = np.repeat(np.arange(200), 20)
    ranker = fp.ListNet(l2=1e-4).fit(X, y, qid=qid)
    assert ranker.score(X, y, qid=qid) > 0.95
    assert ranker.n_iter_ < 100


def test_a_batched_objective_is_the_full_objective() -> None:
    dataset = data()
    w = np.random.default_rng(0).normal(size=7)
    full = build(PlackettLuce(), dataset, l2=0.1)(w)
    batched = build(PlackettLuce(), dataset, l2=0.1, batch=7)(w)
    assert batched[0] == pytest.approx(full[0])
    assert batched[1] == pytest.approx(full[1])
