"""Cutting planes reach the optimum of an interior-point solver over all constraints."""

from __future__ import annotations

import warnings
from itertools import permutations
from math import log2

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import LinearSVC

import firstpage as fp
from firstpage.core.errors import FirstpageWarning
from firstpage.learning.losses.structural import StructuralHinge
from firstpage.learning.solvers.cutting_plane.one_slack import Planes
from tests.learning.losses.test_structural import average_precision, gains

QUERIES, DOCS, FEATURES = 8, 5, 4


def data(seed: int = 0, docs: int = DOCS, queries: int = QUERIES) -> fp.Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * docs, FEATURES))
    utility = X @ np.array([1.0, -0.5, 0.3, 0.0]) + rng.normal(size=len(X))
    qid = np.repeat(np.arange(queries), docs)
    y = np.digitize(utility, [0.0, 1.0]).astype(float)
    return fp.Dataset.from_arrays(X, y, qid)


def optimum(constraints: list[list[tuple[np.ndarray, float]]], C: float, weights=None) -> float:
    """Return the minimum of |w|^2 / (2 C) + mean over queries of max(0, offset - normal @ w).

    `constraints` has the (normal, offset) of each query, and `weights` the weight of each slack.
    The program is solved by Clarabel.
    """
    import clarabel
    from scipy.sparse import csc_matrix, diags

    count = len(constraints)
    cost = np.full(count, 1 / count) if weights is None else np.asarray(weights)
    planes = [[*query, (np.zeros(FEATURES), 0.0)] for query in constraints]
    slacks = np.repeat(np.eye(count), [len(query) for query in planes], axis=0)
    rows = -np.hstack([[normal for query in planes for normal, _ in query], slacks])
    bounds = [-offset for query in planes for _, offset in query]
    P = csc_matrix(diags(np.r_[np.full(FEATURES, 1 / C), np.zeros(count)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        P,
        np.r_[np.zeros(FEATURES), cost],
        csc_matrix(rows),
        np.array(bounds),
        [clarabel.NonnegativeConeT(len(bounds))],
        settings,
    )
    return float(solver.solve().obj_val)


def by_query(dataset: fp.Dataset):
    return [
        (dataset.X[a:b], dataset.y[a:b])
        for a, b in zip(dataset.offsets[:-1], dataset.offsets[1:], strict=True)
    ]


def ap_constraints(X, relevant) -> list[tuple[np.ndarray, float]]:
    rel = [i for i in range(len(X)) if relevant[i]]
    non = [i for i in range(len(X)) if not relevant[i]]
    if not rel or not non:
        return []
    constraints: list[tuple[np.ndarray, float]] = []
    for order in permutations(range(len(X))):
        rank = {d: p for p, d in enumerate(order)}
        normal = sum(2 * (X[i] - X[j]) for i in rel for j in non if rank[i] > rank[j])
        loss = 1 - float(average_precision([relevant[d] for d in order]))
        constraints.append((normal / (len(rel) * len(non)) + np.zeros(FEATURES), loss))
    return constraints


def structural_constraints(
    X, y, kind, depth, slack, true_discounts
) -> list[tuple[np.ndarray, float]]:
    a, b = gains(y, kind, depth)
    orders = np.array(list(permutations(range(len(y)))))
    deltas = 1 - b[orders] @ a
    normals = true_discounts @ X - np.einsum("r,orf->of", a, X[orders])
    counted = (deltas > 1e-12) & (y > 0).any()
    factors = deltas if slack else np.ones(len(deltas))
    return list(zip((factors[:, None] * normals)[counted], deltas[counted], strict=True))


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e4])
def test_rank_svm_reaches_the_optimum(C: float) -> None:
    """With one slack per pair the objective is the sum over the pairs."""
    dataset = data()
    pairs = [
        [(X[u] - X[v], 1.0)]
        for X, y in by_query(dataset)
        for u in range(DOCS)
        for v in range(DOCS)
        if y[u] > y[v]
    ]
    expected = optimum(pairs, C, np.full(len(pairs), 1 / QUERIES))
    ranker = fp.RankSVM(C=C).fit(dataset)
    assert ranker.objective_ == pytest.approx(expected, rel=1e-3)
    assert ranker.objective_ >= expected * (1 - 1e-6)
    assert (1 - ranker.gap_) * ranker.objective_ <= expected * (1 + 1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_svm_map_reaches_the_optimum(C: float) -> None:
    dataset = data(1)
    expected = optimum([ap_constraints(X, y > 0) for X, y in by_query(dataset)], C)
    ranker = fp.SVMMAP(C=C).fit(dataset)
    assert ranker.objective_ == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_focused_svm_reaches_the_optimum(C: float, beta: float) -> None:
    """On full orders, k = 3: two cuts of the top, and the pairs of the top with the rest."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(QUERIES * DOCS, FEATURES))
    y = np.concatenate([rng.permutation(DOCS) for _ in range(QUERIES)]).astype(float)
    dataset = fp.Dataset.from_arrays(X, y, np.repeat(np.arange(QUERIES), DOCS))
    constraints, weights = [], []
    for X, y in by_query(dataset):
        order = np.argsort(-y)
        top, rest = order[:3], order[3:]
        for cut in (1, 2):
            constraints.append(ap_constraints(X[top], np.arange(3) < cut))
            weights.append(beta / 2 / QUERIES)
        for u in top:
            for v in rest:
                constraints.append([(X[u] - X[v], 1.0)])
                weights.append((1 - beta) / 6 / QUERIES)
    expected = optimum(constraints, C, weights)
    ranker = fp.FocusedSVM(k=3, beta=beta, C=C).fit(dataset)
    assert ranker.objective_ == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("delta", ["NDCG", "NDCG@2", "Precision@2"])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("cls", [fp.TopMargin, fp.TopSlack])
def test_structural_rankers_reach_the_optimum(cls, C: float, delta: str) -> None:
    """The reference is the mean of the true rankings."""
    dataset = data(3)
    kind, _, depth = delta.partition("@")
    constraints = []
    for X, y in by_query(dataset):
        a, b = gains(y, kind, int(depth or DOCS))
        ideal = [
            a[list(np.argsort(order))]
            for order in permutations(range(DOCS))
            if abs((a * b[list(order)]).sum() - 1) < 1e-12
        ]
        mean = np.mean(ideal, axis=0) if ideal else np.zeros(DOCS)
        slack = cls is fp.TopSlack
        constraints.append(structural_constraints(X, y, kind, int(depth or DOCS), slack, mean))
    expected = optimum(constraints, C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        ranker = cls(C=C, delta=delta, reference="mean").fit(dataset)
    assert ranker.objective_ <= expected * 1.001
    assert ranker.objective_ >= expected * 0.999
    assert (1 - ranker.gap_) * ranker.objective_ <= expected * (1 + 1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_rank_svm_reaches_the_objective_of_linear_svc_on_pair_differences(C: float) -> None:
    dataset = data(4, docs=20, queries=15)
    better, worse = dataset.truth.pairs()
    difference = np.asarray(dataset.X)[better] - np.asarray(dataset.X)[worse]
    sign = np.where(np.arange(len(better)) % 2 == 0, 1, -1)  # LinearSVC needs two classes
    svc = LinearSVC(
        C=C / len(dataset), loss="hinge", fit_intercept=False, tol=1e-8, max_iter=2_000_000
    ).fit(difference * sign[:, None], sign)
    w = svc.coef_[0]
    loss = np.maximum(0, 1 - difference @ w).sum() / len(dataset)
    ranker = fp.RankSVM(C=C).fit(dataset)
    assert C * ranker.objective_ == pytest.approx(w @ w / 2 + C * loss, rel=1e-3)


def test_planes_of_another_c_lead_to_the_same_optimum_sooner() -> None:
    """Planes of one C are valid for the next."""
    dataset = data(5, docs=15, queries=30)
    train, valid = dataset[:20], dataset[20:]
    tuned = fp.tune(fp.RankSVM(), train, valid, {"C": [0.1, 1.0, 10.0, 100.0]})
    alone = {C: fp.RankSVM(C=C).fit(train) for C in (0.1, 1.0, 10.0, 100.0)}
    assert sum(t.iterations for t in tuned.trials) < sum(r.n_iter_ for r in alone.values())
    C = tuned.parameters["C"]
    assert tuned.best.objective_ == pytest.approx(alone[C].objective_, rel=1e-3)


def test_the_gap_is_certified_on_larger_data() -> None:
    dataset = fp.Synthetic(queries=60, docs=60, features=20, grades=4, seed=3).dataset()
    for ranker in (fp.RankSVM(C=10), fp.SVMMAP(C=10), fp.FocusedSVM(C=100), fp.TopMargin(C=10)):
        rough = clone(ranker).set_params(solver="cutting plane(tol=0.01)").fit(dataset)
        fine = clone(ranker).set_params(solver="cutting plane(tol=0.00001)").fit(dataset)
        assert fine.gap_ <= 1.1e-5
        if not isinstance(ranker, fp.TopMargin | fp.TopSlack):  # whose true rankings may differ
            assert rough.objective_ * (1 - rough.gap_) <= fine.objective_ * (1 + 1e-9)
            assert rough.objective_ >= fine.objective_ * (1 - 1e-5)


def test_old_planes_are_dropped_and_the_model_is_a_lower_bound() -> None:
    rng = np.random.default_rng(0)
    planes = Planes(3)
    for _ in range(300):
        planes.add(rng.normal(size=3), float(rng.normal()))
        params, lower_bound = planes.minimize_model(0.5)
        value = 0.25 * params @ params + max(
            (planes.gradients @ params + planes.offsets).max(), 0.0
        )
        assert lower_bound <= value + 1e-9
        assert lower_bound == pytest.approx(value, rel=1e-6, abs=1e-8)
    assert len(planes) < 100


def sparse_binary(seed: int = 0) -> tuple[fp.Dataset, np.ndarray]:
    """Return 15 noisy queries of 40 documents, 4 of them relevant, and the true direction."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=5)
    w /= np.linalg.norm(w)
    X = rng.normal(size=(600, 5))
    utility = X @ w + 0.5 * rng.normal(size=600)
    y = np.zeros(600)
    for q in range(15):
        rows = np.arange(40 * q, 40 * q + 40)
        y[rows[np.argsort(-utility[rows])[:4]]] = 1
    return fp.Dataset.from_arrays(X, y, np.repeat(np.arange(15), 40)), w


@pytest.mark.parametrize("cls", [fp.TopMargin, fp.TopSlack])
@pytest.mark.parametrize("C", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", ["NDCG", "NDCG@10"])
def test_resorted_references_find_the_direction_and_fixed_references_warn(cls, C, delta) -> None:
    dataset, w = sparse_binary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker = cls(C=C, delta=delta).fit(dataset)
    assert ranker.coef_ @ w / np.linalg.norm(ranker.coef_) > 0.9
    with pytest.warns(FirstpageWarning, match="w = 0"):
        cls(C=C, delta=delta, reference="fixed").fit(dataset)


def test_the_loss_of_a_fixed_reference_increases_in_every_direction() -> None:
    """The warning is true: the loss increases from 0 in many directions."""
    dataset, w = sparse_binary()
    loss = StructuralHinge(reference="fixed")
    at_zero = loss.value_grad(np.zeros(600), dataset.truth)[0].mean()
    for direction in [w, -w, *np.random.default_rng(1).normal(size=(50, 5))]:
        scores = np.asarray(dataset.X) @ (1e-4 * direction / np.linalg.norm(direction))
        assert loss.value_grad(scores, dataset.truth)[0].mean() > at_zero


def test_discounts_are_logarithms_to_base_2() -> None:
    a, _ = gains(np.array([1.0, 0.0]), "NDCG", 2)
    assert a.tolist() == [1.0, 1 / log2(3)]
