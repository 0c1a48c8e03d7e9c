"""Cutting planes end at the optimum that an interior-point solver finds over all constraints."""

from __future__ import annotations

import warnings
from itertools import permutations
from math import log2

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import LinearSVC

import firstpage as fp
from firstpage.errors import FirstpageWarning
from firstpage.losses.structural import StructuralHinge
from firstpage.solvers.cutting_plane.one_slack import Planes
from tests.losses.test_structural import average_precision, gains

QUERIES, DOCS, FEATURES = 8, 5, 4


def data(seed: int = 0, docs: int = DOCS, queries: int = QUERIES) -> fp.Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * docs, FEATURES))
    utility = X @ np.array([1.0, -0.5, 0.3, 0.0]) + rng.normal(size=len(X))
    qid = np.repeat(np.arange(queries), docs)
    y = np.digitize(utility, [0.0, 1.0]).astype(float)
    return fp.Dataset.from_arrays(X, y, qid)


def optimum(constraints: list[list[tuple[np.ndarray, float]]], C: float, parts=None) -> float:
    """min |w|^2 / (2 C) + mean over queries of max(0, max of height - slope @ w), by Clarabel.

    `constraints` has for each query its (slope, height).  `parts` are weights of slacks; one a list.
    """
    import clarabel
    from scipy.sparse import csc_matrix, diags

    count = len(constraints)
    share = np.full(count, 1 / count) if parts is None else np.asarray(parts)
    planes = [[*held, (np.zeros(FEATURES), 0.0)] for held in constraints]
    slacks = np.repeat(np.eye(count), [len(held) for held in planes], axis=0)
    rows = -np.hstack([[slope for held in planes for slope, _ in held], slacks])
    right = [-height for held in planes for _, height in held]
    P = csc_matrix(diags(np.r_[np.full(FEATURES, 1 / C), np.zeros(count)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        P, np.r_[np.zeros(FEATURES), share], csc_matrix(rows), np.array(right),
        [clarabel.NonnegativeConeT(len(right))], settings,
    )  # fmt: skip
    return float(solver.solve().obj_val)


def by_query(found: fp.Dataset):
    return [
        (found.X[a:b], found.y[a:b])
        for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)
    ]


def ap_constraints(X, relevant) -> list[tuple[np.ndarray, float]]:
    rel = [i for i in range(len(X)) if relevant[i]]
    non = [i for i in range(len(X)) if not relevant[i]]
    if not rel or not non:
        return []
    held = []
    for order in permutations(range(len(X))):
        place = {d: p for p, d in enumerate(order)}
        slope = sum(2 * (X[i] - X[j]) for i in rel for j in non if place[i] > place[j])
        loss = 1 - average_precision([relevant[d] for d in order])
        held.append((slope / (len(rel) * len(non)) + np.zeros(FEATURES), loss))
    return held


def structural_constraints(X, y, kind, depth, slack, own) -> list[tuple[np.ndarray, float]]:
    a, b = gains(y, kind, depth)
    orders = np.array(list(permutations(range(len(y)))))
    deltas = 1 - b[orders] @ a
    normals = own @ X - np.einsum("r,orf->of", a, X[orders])
    counted = (deltas > 1e-12) & (y > 0).any()
    factors = deltas if slack else np.ones(len(deltas))
    return list(zip((factors[:, None] * normals)[counted], deltas[counted], strict=True))


@pytest.mark.parametrize("solver", ["auto", "n-slack"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e4])
def test_rank_svm_is_at_the_optimum(C: float, solver: str) -> None:
    """A slack a pair is the sum of the pairs."""
    found = data()
    pairs = [
        [(X[u] - X[v], 1.0)]
        for X, y in by_query(found)
        for u in range(DOCS)
        for v in range(DOCS)
        if y[u] > y[v]
    ]
    want = optimum(pairs, C, np.full(len(pairs), 1 / QUERIES))
    ranker = fp.RankSVM(C=C, solver=solver).fit(found)
    assert ranker.objective_ == pytest.approx(want, rel=1e-3)
    assert ranker.objective_ >= want * (1 - 1e-6)
    assert (1 - ranker.gap_) * ranker.objective_ <= want * (1 + 1e-6)


@pytest.mark.parametrize("solver", ["auto", "n-slack"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_svm_map_is_at_the_optimum(C: float, solver: str) -> None:
    found = data(1)
    want = optimum([ap_constraints(X, y > 0) for X, y in by_query(found)], C)
    ranker = fp.SVMMAP(C=C, solver=solver).fit(found)
    assert ranker.objective_ == pytest.approx(want, rel=1e-3)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_focused_svm_is_at_the_optimum(C: float, beta: float) -> None:
    """On full orders, k = 3: two cuts of the top, and the pairs of the top with the rest."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(QUERIES * DOCS, FEATURES))
    y = np.concatenate([rng.permutation(DOCS) for _ in range(QUERIES)]).astype(float)
    found = fp.Dataset.from_arrays(X, y, np.repeat(np.arange(QUERIES), DOCS))
    held, weight = [], []
    for X, y in by_query(found):
        order = np.argsort(-y)
        top, rest = order[:3], order[3:]
        for cut in (1, 2):
            held.append(ap_constraints(X[top], np.arange(3) < cut))
            weight.append(beta / 2 / QUERIES)
        for u in top:
            for v in rest:
                held.append([(X[u] - X[v], 1.0)])
                weight.append((1 - beta) / 6 / QUERIES)
    want = optimum(held, C, weight)
    ranker = fp.FocusedSVM(k=3, beta=beta, C=C).fit(found)
    assert ranker.objective_ == pytest.approx(want, rel=1e-3)


@pytest.mark.parametrize("solver", ["auto", "n-slack"])
@pytest.mark.parametrize("delta", ["NDCG", "NDCG@2", "Precision@2"])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("cls", [fp.TopMargin, fp.TopSlack])
def test_structural_rankers_are_at_the_optimum(cls, C: float, delta: str, solver: str) -> None:
    """With the mean of the true rankings as reference."""
    found = data(3)
    kind, _, depth = delta.partition("@")
    held = []
    for X, y in by_query(found):
        a, b = gains(y, kind, int(depth or DOCS))
        ideal = [
            a[list(np.argsort(order))]
            for order in permutations(range(DOCS))
            if abs((a * b[list(order)]).sum() - 1) < 1e-12
        ]
        own = np.mean(ideal, axis=0) if ideal else np.zeros(DOCS)
        held.append(structural_constraints(X, y, kind, int(depth or DOCS), cls is fp.TopSlack, own))
    want = optimum(held, C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        ranker = cls(C=C, delta=delta, reference="mean", solver=solver).fit(found)
    assert ranker.objective_ <= want * 1.001
    assert ranker.objective_ >= want * 0.999
    assert (1 - ranker.gap_) * ranker.objective_ <= want * (1 + 1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_rank_svm_reaches_the_objective_of_linear_svc_on_pair_differences(C: float) -> None:
    found = data(4, docs=20, queries=15)
    better, worse = found.truth.pairs()
    difference = np.asarray(found.X)[better] - np.asarray(found.X)[worse]
    sign = np.where(np.arange(len(better)) % 2 == 0, 1, -1)  # two classes are wanted
    svc = LinearSVC(
        C=C / len(found), loss="hinge", fit_intercept=False, tol=1e-8, max_iter=2_000_000
    ).fit(difference * sign[:, None], sign)
    w = svc.coef_[0]
    loss = np.maximum(0, 1 - difference @ w).sum() / len(found)
    ranker = fp.RankSVM(C=C).fit(found)
    assert C * ranker.objective_ == pytest.approx(w @ w / 2 + C * loss, rel=1e-3)


def test_no_number_of_cuts_and_no_order_of_c_changes_the_end() -> None:
    """Planes of one C start the next: the same optimum, sooner."""
    found = data(5, docs=15, queries=30)
    train, valid = found[:20], found[20:]
    tuned = fp.tune(fp.RankSVM(), train, valid, {"C": [0.1, 1.0, 10.0, 100.0]})
    alone = {C: fp.RankSVM(C=C).fit(train) for C in (0.1, 1.0, 10.0, 100.0)}
    assert sum(t.iterations for t in tuned.trials) < sum(r.n_iter_ for r in alone.values())
    C = tuned.parameters["C"]
    assert tuned.best.objective_ == pytest.approx(alone[C].objective_, rel=1e-3)


@pytest.mark.slow
def test_the_gap_is_certified_on_real_sizes() -> None:
    found = fp.Synthetic(queries=60, docs=60, features=20, grades=4, seed=3).dataset()
    for made in (fp.RankSVM(C=10), fp.SVMMAP(C=10), fp.FocusedSVM(C=100), fp.TopMargin(C=10)):
        rough = clone(made).set_params(solver="cutting plane(tol=0.01)").fit(found)
        fine = clone(made).set_params(solver="cutting plane(tol=0.00001)").fit(found)
        assert fine.gap_ <= 1.1e-5
        if not isinstance(made, fp.TopMargin):  # whose reference differs in the end
            assert rough.objective_ * (1 - rough.gap_) <= fine.objective_ * (1 + 1e-9)
            assert rough.objective_ >= fine.objective_ * (1 - 1e-5)


def test_old_planes_are_let_go_and_any_shares_give_a_bound() -> None:
    rng = np.random.default_rng(0)
    planes = Planes(3)
    for _ in range(300):
        planes.add(rng.normal(size=3), float(rng.normal()))
        params, below = planes.least(0.5)
        value = 0.25 * params @ params + max((planes.slopes @ params + planes.heights).max(), 0.0)
        assert below <= value + 1e-9
        assert below == pytest.approx(value, rel=1e-6, abs=1e-8)
    assert len(planes) < 100


def sparse_binary(seed: int = 0) -> tuple[fp.Dataset, np.ndarray]:
    """15 queries of 40 documents, 4 of them relevant, noisy; and the true direction."""
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


@pytest.mark.slow
@pytest.mark.parametrize("cls", [fp.TopMargin, fp.TopSlack])
@pytest.mark.parametrize("C", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", ["NDCG", "NDCG@10"])
def test_resorted_references_find_the_direction_and_fixed_ones_warn(cls, C, delta) -> None:
    found, w = sparse_binary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker = cls(C=C, delta=delta).fit(found)
    assert ranker.coef_ @ w / np.linalg.norm(ranker.coef_) > 0.9
    with pytest.warns(FirstpageWarning, match="w = 0"):
        cls(C=C, delta=delta, reference="fixed").fit(found)


def test_the_fixed_reference_does_rise_in_every_direction() -> None:
    """That the warning is true: the slope at 0 along many directions is upward."""
    found, w = sparse_binary()
    loss = StructuralHinge(reference="fixed")
    here = loss.value_grad(np.zeros(600), found.truth)[0].mean()
    for way in [w, -w, *np.random.default_rng(1).normal(size=(50, 5))]:
        scores = np.asarray(found.X) @ (1e-4 * way / np.linalg.norm(way))
        assert loss.value_grad(scores, found.truth)[0].mean() > here


def test_log2_discounts() -> None:
    a, _ = gains(np.array([1.0, 0.0]), "NDCG", 2)
    assert a.tolist() == [1.0, 1 / log2(3)]
