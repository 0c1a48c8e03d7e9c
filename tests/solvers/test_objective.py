"""The objective: right for any blocks and threads, dense and sparse; solvers reach its optimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import firstpage as fp
from firstpage.errors import FirstpageError
from firstpage.losses.focused import focused_net
from firstpage.losses.listwise import Cosine, PlackettLuce, SoftmaxCrossEntropy
from firstpage.losses.loss import IncompatibleComponents, Loss, Traits
from firstpage.losses.pairwise import PairwiseHinge, PairwiseLogistic
from firstpage.scorers.linear import BoundLinear, Linear
from firstpage.solvers import objective as module
from firstpage.solvers.cutting_plane.one_slack import CuttingPlane
from firstpage.solvers.descent import SGD, Adam, GradientDescent
from firstpage.solvers.lbfgs import LBFGS
from firstpage.solvers.objective import BlockObjective
from firstpage.solvers.registry import solver, solver_for

RECIPE = fp.Synthetic(queries=60, docs="uniform(1, 25)", features=7, grades=3, seed=4)
CONVEX = [
    PlackettLuce(),
    PlackettLuce(5),
    SoftmaxCrossEntropy(),
    PairwiseLogistic(),
    focused_net(4, 0.5),
]


def data(dtype=np.float64):
    found = RECIPE.dataset()
    return found.with_features(np.ascontiguousarray(found.X, dtype))


def build(loss, found, **how) -> BlockObjective:
    X = found.X
    row = X.shape[1] * X.dtype.itemsize
    return BlockObjective(loss, Linear().bind(X), found.truth, row, **how)


@pytest.mark.parametrize("loss", [*CONVEX, Cosine()], ids=str)
def test_value_and_slope_are_those_of_the_parts(loss) -> None:
    found = data()
    w = np.random.default_rng(0).normal(size=7)
    shares = np.random.default_rng(1).random(len(found))
    value, slope = build(loss, found, query_weights=shares, l2=0.3)(w)
    values, grad = loss.value_grad(found.X @ w, found.truth)
    each = np.repeat(shares / shares.sum(), found.lengths)
    assert value == pytest.approx((values * shares).sum() / shares.sum() + 0.15 * w @ w)
    assert slope == pytest.approx(found.X.T @ (grad * each) + 0.3 * w)


def test_blocks_and_threads_change_nothing(monkeypatch) -> None:
    found = data(np.float32)
    w = np.random.default_rng(0).normal(size=7)
    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "BLOCK", 1000)
    results = []
    for threads in (1, 2, 3, 8):
        made = build(PlackettLuce(5), found, threads=threads)
        assert len(made.bounds) > 8
        value, slope = made(w)
        results.append((value, slope.tolist()))
    assert all(r == results[0] for r in results)  # to the last bit
    monkeypatch.setattr(module, "BLOCK", 1 << 20)
    whole = build(PlackettLuce(5), found)(w)
    assert whole[0] == pytest.approx(results[0][0])
    assert whole[1] == pytest.approx(results[0][1], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_features_give_the_same(dtype) -> None:
    found = data(dtype)
    X = found.X * (np.random.default_rng(2).random(found.X.shape) < 0.4)
    dense = found.with_features(X.astype(dtype))
    sparse = found.with_features(csr_array(X.astype(dtype)))
    w = np.random.default_rng(0).normal(size=7)
    one, two = build(PlackettLuce(), dense)(w), build(PlackettLuce(), sparse)(w)
    assert one[0] == pytest.approx(two[0], rel=1e-5)
    assert one[1] == pytest.approx(two[1], rel=1e-3, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("loss", CONVEX, ids=str)
def test_convex_losses_have_one_optimum_from_everywhere(loss) -> None:
    found = data()
    rng = np.random.default_rng(0)
    ends = [
        LBFGS(max_iter=500).minimize(build(loss, found, l2=0.01), start)
        for start in (np.zeros(7), rng.normal(size=7), 10 * rng.normal(size=7))
    ]
    best = min(e.value for e in ends)
    assert all(e.value - best <= 1e-6 * abs(best) for e in ends)
    scale = {"PlackettLuce": 0.02, "PairwiseLogistic": 0.005}.get(type(loss).__name__, 0.3)
    down = GradientDescent(rate=scale, max_iter=20_000, tol=1e-12)
    slow = down.minimize(build(loss, found, l2=0.01), np.zeros(7))
    assert slow.value - best <= 1e-6 * abs(best)


@pytest.mark.slow
@pytest.mark.parametrize("loss", CONVEX, ids=str)
def test_the_optimum_is_that_of_an_independent_solver(loss) -> None:
    from scipy.optimize import minimize

    found = data()

    def plain(w: np.ndarray) -> float:
        return float(loss.value_grad(found.X @ w, found.truth)[0].mean() + 0.005 * w @ w)

    options = {"maxiter": 5000, "fatol": 1e-14, "xatol": 1e-10, "adaptive": True}
    ours = LBFGS().minimize(build(loss, found, l2=0.01), np.zeros(7))
    theirs = minimize(plain, ours.params + 0.1, method="Powell", options={"ftol": 1e-14})
    again = minimize(plain, theirs.x, method="Nelder-Mead", options=options)
    assert ours.value <= again.fun * (1 + 1e-6)


@pytest.mark.slow
def test_queries_that_say_nothing_change_nothing() -> None:
    found = data()
    flat = found.with_labels(
        np.where(np.repeat(np.arange(len(found)) < 10, found.lengths), 0.0, found.y)
    )
    for loss in (PlackettLuce(), PairwiseLogistic()):
        with_them = LBFGS().minimize(build(loss, flat, l2=0.01 * 50 / 60), np.zeros(7))
        without = LBFGS().minimize(build(loss, flat[10:], l2=0.01), np.zeros(7))
        assert with_them.params == pytest.approx(without.params, rel=1e-4, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "made", [SGD(rate=0.02, max_iter=30), Adam(rate=0.05, max_iter=30, batch=8)], ids=str
)
def test_stochastic_descent_comes_near_the_optimum(made) -> None:
    found = data()
    best = LBFGS().minimize(build(PlackettLuce(average=True), found, l2=0.01), np.zeros(7))
    near = made.minimize(
        build(PlackettLuce(average=True), found, l2=0.01, batch=made.batch), np.zeros(7)
    )
    whole = build(PlackettLuce(average=True), found, l2=0.01)
    assert whole(near.params)[0] < best.value + 0.05 * (whole(np.zeros(7))[0] - best.value)
    again = made.minimize(
        build(PlackettLuce(average=True), found, l2=0.01, batch=made.batch), np.zeros(7)
    )
    assert again.params.tolist() == near.params.tolist()


def test_divergence_is_said() -> None:
    found = data()
    with np.errstate(all="ignore"):
        end = GradientDescent(rate=1e200, max_iter=50).minimize(
            build(Cosine(), found, l2=1.0), np.ones(7)
        )
    assert "diverged" in end.reason


def test_solvers_by_name() -> None:
    assert solver("sgd(rate=0.5, batch=4)", 7) == SGD(rate=0.5, batch=4, seed=7)
    assert solver("L-BFGS", 0) == LBFGS()
    linear = BoundLinear(np.ones((2, 1)))
    assert solver_for("auto", PlackettLuce(), linear, 0) == LBFGS()
    assert solver_for("auto", PairwiseHinge(), linear, 0) == CuttingPlane()
    for text, words in [
        ("newton", "no solver 'newton'"),
        ("sgd(speed=1)", "no parameter 'speed'"),
        ("sgd(1)", "name=value"),
    ]:
        with pytest.raises(FirstpageError, match=words):
            solver(text, 0)


def test_unsuited_parts_are_refused() -> None:
    class Rough(Loss):
        traits = Traits(smooth=False)

    with pytest.raises(IncompatibleComponents, match="LBFGS needs a smooth loss, and Rough is not"):
        solver_for(LBFGS(), Rough(), BoundLinear(np.ones((2, 1))), 0)

    class Network(BoundLinear):
        parallel = False

    with pytest.raises(IncompatibleComponents, match="CuttingPlane needs linear scores"):
        solver_for(CuttingPlane(), Rough(), Network(np.ones((2, 1))), 0)


@pytest.mark.slow
def test_very_many_sparse_features_need_no_square_of_them() -> None:
    rng = np.random.default_rng(0)
    rows, size = 4000, 50_000
    indices = rng.integers(0, size, rows * 20)
    X = csr_array(
        (rng.random(rows * 20), indices, np.arange(0, rows * 20 + 1, 20)), shape=(rows, size)
    )
    w = rng.normal(size=size)
    y = np.digitize(X @ w, [-1, 1]).astype(float)
    qid = np.repeat(np.arange(200), 20)
    ranker = fp.ListNet(l2=1e-4).fit(X, y, qid=qid)
    assert ranker.score(X, y, qid=qid) > 0.95
    assert ranker.n_iter_ < 100


def test_a_batched_objective_is_the_whole_one() -> None:
    found = data()
    w = np.random.default_rng(0).normal(size=7)
    whole = build(PlackettLuce(), found, l2=0.1)(w)
    parts = build(PlackettLuce(), found, l2=0.1, batch=7)(w)
    assert parts[0] == pytest.approx(whole[0])
    assert parts[1] == pytest.approx(whole[1])
