"""`gap_` bounds the relative distance of the objective to its minimum, for all rankers and solvers.

Objectives of hinges are enumerated over all rankings of short lists, and minimized by Clarabel.
Those of smooth losses are written plainly, and minimized by SciPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

import firstpage as fp
from firstpage.core.errors import FirstpageWarning
from firstpage.learning.losses.listwise import SoftmaxCrossEntropy
from firstpage.learning.losses.structural import StructuralTarget
from firstpage.learning.scorers.linear import BoundLinear
from firstpage.learning.solvers.objective import BlockObjective
from tests.learning.losses import reference as plain
from tests.learning.losses.test_structural import gains
from tests.learning.solvers.test_cutting_plane import (
    FEATURES,
    ap_constraints,
    by_query,
    optimum,
    structural_constraints,
)
from tests.narrow import present

DOCS, QUERIES = 5, 6
Slacks = list[list[tuple[np.ndarray, float]]]


def data(seed: int, kind: str = "usual") -> fp.Dataset:
    """Return informative queries, with features of much, little or no information."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(QUERIES * DOCS, FEATURES)) * (100.0 if kind == "large" else 1.0)
    y = np.concatenate(
        [rng.permutation([0, 0, 1, 2, int(rng.integers(3))]) for _ in range(QUERIES)]
    )
    if kind in ("usual", "large"):
        X[:, 0] += y
    if kind == "tied":
        X = np.round(X)
        X[: 2 * DOCS] = X[0]
    return fp.Dataset.from_arrays(X, y.astype(float), np.repeat(np.arange(QUERIES), DOCS))


@dataclass(frozen=True, eq=False)
class Problem:
    """The weighted sum of slacks, each at minimum 0 and its offset - normal @ w, plus a penalty."""

    slacks: Slacks
    weights: np.ndarray
    C: float

    def value(self, w: np.ndarray) -> float:
        losses = [max([0.0, *(h - v @ w for v, h in planes)]) for planes in self.slacks]
        return float(w @ w / (2 * self.C) + self.weights @ losses)

    def minimum(self) -> float:
        return optimum(self.slacks, self.C, self.weights)


def pairs(dataset: fp.Dataset, average: bool) -> tuple[Slacks, list[float]]:
    slacks, weights = [], []
    for X, y in by_query(dataset):
        constraints = [
            [(X[u] - X[v], 1.0)] for u in range(DOCS) for v in range(DOCS) if y[u] > y[v]
        ]
        slacks += constraints
        weights += [1 / len(constraints) / QUERIES if average else 1 / QUERIES] * len(constraints)
    return slacks, weights


def resorted(a: np.ndarray, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the discounts of the documents in the true ranking of the highest score."""
    true_discounts = np.zeros(len(y))
    true_discounts[np.lexsort((np.arange(len(y)), -scores, -y))] = a
    return true_discounts


def structural(
    dataset: fp.Dataset, ranker: fp.TopMargin, frozen: np.ndarray | None
) -> tuple[Slacks, list[float]]:
    kind, _, depth = ranker.delta.partition("@")
    slacks = []
    for number, (X, y) in enumerate(by_query(dataset)):
        a, _ = gains(y, kind, int(depth or DOCS))
        labels = (y > 0).astype(float) if kind == "Precision" else y
        if ranker.reference == "mean":
            true_discounts = np.zeros(DOCS)
            for label in np.unique(labels):
                ranks = np.argsort(np.argsort(-labels, kind="stable"), kind="stable")
                true_discounts[labels == label] = a[ranks[labels == label]].mean()
        else:
            rows = slice(number * DOCS, number * DOCS + DOCS)
            true_discounts = resorted(a, labels, np.zeros(DOCS) if frozen is None else frozen[rows])
        slack = isinstance(ranker, fp.TopSlack)
        slacks.append(structural_constraints(X, y, kind, int(depth or DOCS), slack, true_discounts))
    return slacks, [1 / QUERIES] * QUERIES


def problem(ranker: Any, dataset: fp.Dataset, frozen: np.ndarray | None) -> Problem:
    if isinstance(ranker, fp.TopMargin | fp.TopSlack):
        slacks, weights = structural(dataset, ranker, frozen)
    elif isinstance(ranker, fp.SVMMAP):
        slacks = [ap_constraints(X, y > 0) for X, y in by_query(dataset)]
        weights = [1 / QUERIES] * QUERIES
    else:
        slacks, weights = pairs(dataset, ranker.average)
    return Problem(slacks, np.array(weights), ranker.C)


def fit_and_record(create: Callable[[], Any], dataset: fp.Dataset, monkeypatch, **options):
    """Return a fitted ranker, and the scores by which it froze its true rankings last."""
    last: list[np.ndarray] = []
    freeze = StructuralTarget.freeze

    def recording(self: StructuralTarget, scores: np.ndarray) -> None:
        last.append(np.array(scores))
        freeze(self, scores)

    monkeypatch.setattr(StructuralTarget, "freeze", recording)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        ranker = create().fit(dataset, **options)
    return ranker, (last[-1] if last else None)


def check(create: Callable[[], Any], dataset: fp.Dataset, monkeypatch, **options) -> fp.RankSVM:
    ranker, frozen = fit_and_record(create, dataset, monkeypatch, **options)
    truth = problem(ranker, dataset, frozen)
    value, minimum = truth.value(ranker.params_), truth.minimum()
    small = 1e-6 * max(value, minimum)
    assert 0.0 <= ranker.gap_ <= 1.0
    assert value - minimum <= ranker.gap_ * value + small
    assert ranker.objective_ >= value - small
    assert ranker.objective_ <= value + small
    assert ranker.objective_ * (1 - ranker.gap_) <= minimum + small
    return ranker


SOLVERS = ["cutting plane", "cutting plane(max_iter=2)", "cutting plane(tol=0.1)"]
RANKERS = [
    *[(fp.RankSVM, {"average": average}) for average in (False, True)],
    (fp.SVMMAP, {}),
    *[
        (fp.TopMargin, {"delta": delta, "reference": reference})
        for delta in ("NDCG", "Precision@2")
        for reference in ("resort", "mean", "fixed")
    ],
    *[
        (fp.TopSlack, {"delta": delta, "reference": reference})
        for delta in ("NDCG", "NDCG@2", "Precision@2")
        for reference in ("resort", "mean", "fixed")
    ],
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("cls", "options"), RANKERS, ids=str)
def test_the_gap_bounds_the_distance_to_the_minimum(cls, options, solver, monkeypatch) -> None:
    for seed, (kind, C) in enumerate(
        [("usual", 1.0), ("usual", 100.0), ("tied", 10.0), ("noise", 100.0), ("large", 0.01)]
    ):
        check(partial(cls, C=C, solver=solver, **options), data(seed, kind), monkeypatch)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_the_gap_of_focused_svm_bounds_the_distance(beta: float, solver: str) -> None:
    """On full orders, k = 3: two cuts of the top, and the pairs of the top with the rest."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(QUERIES * DOCS, FEATURES))
    y = np.concatenate([rng.permutation(DOCS) for _ in range(QUERIES)]).astype(float)
    dataset = fp.Dataset.from_arrays(X, y, np.repeat(np.arange(QUERIES), DOCS))
    slacks, weights = [], []
    for X, y in by_query(dataset):
        order = np.argsort(-y)
        slacks += [ap_constraints(X[order[:3]], np.arange(3) < cut) for cut in (1, 2)]
        slacks += [[(X[u] - X[v], 1.0)] for u in order[:3] for v in order[3:]]
        weights += [beta / 2 / QUERIES] * 2 + [(1 - beta) / 6 / QUERIES] * 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        ranker = fp.FocusedSVM(k=3, beta=beta, C=10.0, solver=solver).fit(dataset)
    truth = Problem(slacks, np.array(weights), 10.0)
    value = truth.value(present(ranker.params_))
    assert value - truth.minimum() <= ranker.gap_ * value + 1e-6 * value
    assert ranker.objective_ == pytest.approx(value)


def test_the_gap_of_slack_scaling_is_small_for_a_large_C(monkeypatch) -> None:
    """Problems in which the golden section of the paper misses the most violated rankings."""
    for seed in range(12):
        kind = "noise" if seed % 2 else "usual"
        create = partial(fp.TopSlack, C=1e4, reference="mean")
        assert check(create, data(seed, kind), monkeypatch).gap_ <= 1.1e-3


@pytest.mark.parametrize("cls", [fp.RankSVM, fp.TopMargin, fp.TopSlack])
def test_the_gap_is_that_of_the_iteration_that_validation_chose(cls, monkeypatch) -> None:
    dataset = data(0)
    ranker = check(lambda: cls(C=100.0, patience=1), dataset, monkeypatch, valid=data(7, "noise"))
    assert ranker.best_iteration_ is not None


def test_the_gap_over_shards_bounds_the_distance(tmp_path: Path, monkeypatch) -> None:
    dataset = data(1)
    fp.write_shards(dataset, tmp_path / "shards", rows=2 * DOCS)
    create = partial(fp.TopSlack, C=100.0, reference="mean")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        sharded = create().fit(fp.read_shards(tmp_path / "shards"))
    truth = problem(sharded, dataset, None)
    value = truth.value(present(sharded.params_))
    assert value - truth.minimum() <= sharded.gap_ * value + 1e-6 * value
    in_memory = check(create, dataset, monkeypatch)
    assert sharded.gap_ == pytest.approx(in_memory.gap_, abs=2e-3)


def test_the_gap_of_a_degenerate_optimum_is_that_of_the_returned_weights(monkeypatch) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(QUERIES * DOCS, FEATURES))
    y = np.tile([1.0, 0, 0, 0, 0], QUERIES)
    dataset = fp.Dataset.from_arrays(X, y, np.repeat(np.arange(QUERIES), DOCS))
    create = lambda: fp.TopMargin(C=1.0, reference="fixed")  # noqa: E731
    with pytest.warns(FirstpageWarning, match="w = 0"):
        create().fit(dataset)
    check(create, dataset, monkeypatch)


@pytest.mark.parametrize(
    ("ranker", "reason"),
    [
        (fp.ListNet(l2=0.0), "without a penalty"),
        (fp.RankCosine(l2=0.1), "not convex"),
        (fp.Regression(), "normal equations"),
        (fp.RankSVM(solver="sgd"), "only cutting planes"),
        (fp.RankBoost(rounds=3), "no bound"),
        (fp.TopRank(depth=3, voters=["Regression"]), "no bound"),
    ],
    ids=str,
)
def test_without_a_bound_the_gap_is_nan_with_a_note(ranker, reason) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        ranker.fit(data(0))
    assert np.isnan(ranker.gap_)
    assert reason in ranker.gap_note_
    assert "\n" not in ranker.gap_note_
    assert fp.RankSVM().fit(data(0)).gap_note_ is None


def test_an_interrupted_fit_has_no_gap() -> None:
    def interrupt(step: fp.extend.Step) -> None:
        if step.iteration == 3:
            raise KeyboardInterrupt

    with pytest.warns(FirstpageWarning, match="interrupted"):
        ranker = fp.ListNet().fit(data(0), progress=interrupt)
    assert np.isnan(ranker.gap_)
    assert "interrupted" in ranker.gap_note_


# --- smooth losses: the gradient bounds the distance to the minimum

PlainLoss = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
SMOOTH: list[tuple[str, PlainLoss]] = [
    ("ListNet", plain.cross_entropy),
    ("ListNet(k=2, temperature=0.5)", partial(plain.cross_entropy, k=2, temperature=0.5)),
    ("ListMLE", plain.plackett_luce),
    ("ListMLE(k=2, average=true)", partial(plain.plackett_luce, k=2, average=True)),
    ("RankNet", partial(plain.pairwise, phi=plain.logistic)),
    ("RankNet(k=2, average=true)", partial(plain.pairwise, phi=plain.logistic, k=2, average=True)),
]
SMOOTH_SOLVERS = ["lbfgs", "lbfgs(max_iter=2)", "gd(max_iter=20)", "sgd(max_iter=2)"]


def plain_objective(
    loss: PlainLoss, dataset: fp.Dataset, l2: float
) -> Callable[[np.ndarray], float]:
    def value(w: np.ndarray) -> float:
        losses = [loss(X @ w, y, np.ones(len(y))) for X, y in by_query(dataset)]
        return float(np.mean(losses) + l2 / 2 * w @ w)

    return value


def smooth_minimum(value: Callable[[np.ndarray], float], start: np.ndarray) -> float:
    """Return the minimum; central differences of 1e-5 leave an error far below 1e-10."""
    options = {"gtol": 1e-8, "finite_diff_rel_step": 1e-5}
    return float(
        minimize(value, start, method="BFGS", jac="3-point", options=options).fun  # type: ignore[call-overload]
    )


def fit_silently(name: str, dataset: fp.Dataset | fp.Shards, **parameters) -> fp.Ranker:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        return fp.ranker(name, **parameters).fit(dataset)


@pytest.mark.parametrize("l2", [1e-3, 1.0])
@pytest.mark.parametrize(("name", "loss"), SMOOTH, ids=[name for name, _ in SMOOTH])
def test_the_gradient_bounds_the_distance_to_the_minimum(name, loss, l2) -> None:
    for seed, kind in enumerate(["usual", "tied", "noise"]):
        dataset = data(seed, kind)
        value = plain_objective(loss, dataset, l2)
        minimum = smooth_minimum(value, present(fit_silently(name, dataset, l2=l2).params_))
        for solver in SMOOTH_SOLVERS:
            ranker = fit_silently(name, dataset, l2=l2, solver=solver)
            at_weights = value(present(ranker.params_))
            assert at_weights - minimum <= ranker.gap_ * at_weights + 1e-10 * at_weights
            assert ranker.objective_ * (1 - ranker.gap_) <= minimum * (1 + 1e-10)
            assert ranker.gap_note_ is None
            if solver == "lbfgs":
                assert ranker.gap_ <= 1e-8
            if solver == "lbfgs(max_iter=2)" and kind == "usual":
                assert ranker.gap_ > 1e-10  # it is not a constant


@pytest.mark.parametrize("name", ["FocusedNet(k=2)", "ListNet(form=permutation)"])
def test_the_gap_is_small_at_the_optimum_only(name: str) -> None:
    optimal = fit_silently(name, data(0))
    early = fit_silently(name, data(0), solver="gd(max_iter=1)")
    assert optimal.gap_ <= 1e-8
    assert early.objective_ * (1 - early.gap_) <= optimal.objective_ < 0.999 * early.objective_


def test_the_gap_of_float32_features_is_computed_in_float64() -> None:
    dataset = data(0)
    dataset = dataset.with_features(dataset.X.astype(np.float32))
    ranker = fit_silently("ListNet", dataset)
    exact = dataset.with_features(dataset.X.astype(np.float64))
    value = plain_objective(plain.cross_entropy, exact, ranker.l2)
    minimum = smooth_minimum(value, present(ranker.params_))
    assert (
        value(present(ranker.params_)) - minimum
        <= ranker.gap_ * value(present(ranker.params_)) + 1e-11
    )
    assert ranker.gap_ <= 1e-5


def test_the_gap_over_shards_and_of_sparse_features_is_that_in_memory(tmp_path: Path) -> None:
    dataset = data(0)
    shards = fp.write_shards(dataset, tmp_path / "shards", rows=2 * DOCS)
    sparse = dataset.with_features(csr_array(dataset.X))
    for solver in ("lbfgs", "lbfgs(max_iter=3)"):
        in_memory = fit_silently("ListMLE", dataset, solver=solver)
        for other in (shards, sparse):
            ranker = fit_silently("ListMLE", other, solver=solver)
            assert ranker.gap_ == pytest.approx(in_memory.gap_, rel=1e-3, abs=1e-10)


def test_the_gap_of_a_smooth_loss_is_that_of_the_iteration_that_validation_chose() -> None:
    dataset = data(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        ranker = fp.ListNet(patience=1).fit(dataset, valid=data(7, "noise"))
    assert ranker.best_iteration_ is not None
    value = plain_objective(plain.cross_entropy, dataset, ranker.l2)
    at_weights, minimum = (
        value(present(ranker.params_)),
        smooth_minimum(value, present(ranker.params_)),
    )
    assert at_weights - minimum <= ranker.gap_ * at_weights + 1e-10


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e9])
def test_rounding_errors_of_the_gradient_are_bounded(offset: float) -> None:
    """Features with a large mean: scores, and with them the gradient, lose most digits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(QUERIES * DOCS, FEATURES)) + offset
    y, w = data(0).y, rng.normal(size=FEATURES)
    dataset = fp.Dataset.from_arrays(X, y, np.repeat(np.arange(QUERIES), DOCS))
    objective = BlockObjective(SoftmaxCrossEntropy(), BoundLinear(X), dataset.truth, X.itemsize)
    _, gradient, _, errors = objective.evaluate_with_errors(w)
    exact = np.zeros(FEATURES, np.longdouble)
    for rows, labels in by_query(dataset):
        scores = rows.astype(np.longdouble) @ w.astype(np.longdouble)
        p, q = (np.exp(s - s.max()) for s in (labels.astype(np.longdouble), scores))
        exact += rows.T.astype(np.longdouble) @ (q / q.sum() - p / p.sum()) / QUERIES
    assert np.finfo(np.longdouble).eps < np.finfo(np.float64).eps
    assert (np.abs(gradient - exact) <= errors).all()
    assert (errors <= 1e-12 * max(offset, 1.0) ** 2).all()
