"""`gap_` bounds how far the objective is above its minimum, for every ranker, solver and option.

The objective is written down over all rankings of short lists, and minimized by Clarabel.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.errors import FirstpageWarning
from firstpage.losses.structural import Structural
from tests.losses.test_structural import gains
from tests.solvers.test_cutting_plane import (
    FEATURES,
    ap_constraints,
    by_query,
    optimum,
    structural_constraints,
)

DOCS, QUERIES = 5, 6
Slacks = list[list[tuple[np.ndarray, float]]]


def data(seed: int, kind: str = "usual") -> fp.Dataset:
    """Queries that all have something to rank; features that say much, little or nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(QUERIES * DOCS, FEATURES)) * (100.0 if kind == "large" else 1.0)
    y = np.concatenate([rng.permutation([0, 0, 1, 2, rng.integers(3)]) for _ in range(QUERIES)])
    if kind in ("usual", "large"):
        X[:, 0] += y
    if kind == "tied":
        X = np.round(X)
        X[: 2 * DOCS] = X[0]
    return fp.Dataset.from_arrays(X, y.astype(float), np.repeat(np.arange(QUERIES), DOCS))


@dataclass(frozen=True, eq=False)
class Problem:
    """mean over queries of the slacks' sum, each at least 0 and its height - slope @ w."""

    slacks: Slacks
    weights: np.ndarray
    C: float

    def value(self, w: np.ndarray) -> float:
        losses = [max([0.0, *(h - v @ w for v, h in planes)]) for planes in self.slacks]
        return float(w @ w / (2 * self.C) + self.weights @ losses)

    def minimum(self) -> float:
        return optimum(self.slacks, self.C, self.weights)


def pairs(found: fp.Dataset, average: bool) -> tuple[Slacks, list[float]]:
    slacks, weights = [], []
    for X, y in by_query(found):
        mine = [[(X[u] - X[v], 1.0)] for u in range(DOCS) for v in range(DOCS) if y[u] > y[v]]
        slacks += mine
        weights += [1 / len(mine) / QUERIES if average else 1 / QUERIES] * len(mine)
    return slacks, weights


def resorted(a: np.ndarray, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Discounts of the documents in the true ranking that scores best."""
    own = np.zeros(len(y))
    own[np.lexsort((np.arange(len(y)), -scores, -y))] = a
    return own


def structural(
    found: fp.Dataset, ranker: fp.TopMargin, frozen: np.ndarray | None
) -> tuple[Slacks, list[float]]:
    kind, _, depth = ranker.delta.partition("@")
    slacks = []
    for number, (X, y) in enumerate(by_query(found)):
        a, _ = gains(y, kind, int(depth or DOCS))
        seen = (y > 0).astype(float) if kind == "Precision" else y
        if ranker.reference == "mean":
            own = np.zeros(DOCS)
            for label in np.unique(seen):
                ranks = np.argsort(np.argsort(-seen, kind="stable"), kind="stable")
                own[seen == label] = a[ranks[seen == label]].mean()
        else:
            here = slice(number * DOCS, number * DOCS + DOCS)
            own = resorted(a, seen, np.zeros(DOCS) if frozen is None else frozen[here])
        slack = isinstance(ranker, fp.TopSlack)
        slacks.append(structural_constraints(X, y, kind, int(depth or DOCS), slack, own))
    return slacks, [1 / QUERIES] * QUERIES


def problem(ranker: fp.RankSVM, found: fp.Dataset, frozen: np.ndarray | None) -> Problem:
    if isinstance(ranker, fp.TopMargin):
        slacks, weights = structural(found, ranker, frozen)
    elif isinstance(ranker, fp.SVMMAP):
        slacks = [ap_constraints(X, y > 0) for X, y in by_query(found)]
        weights = [1 / QUERIES] * QUERIES
    else:
        slacks, weights = pairs(found, ranker.average)
    return Problem(slacks, np.array(weights), ranker.C)


def fitted(make: Callable[[], fp.RankSVM], found: fp.Dataset, monkeypatch, **more):
    """A fitted ranker, and the scores by which it froze its true rankings last."""
    last: list[np.ndarray] = []
    freeze = Structural.freeze

    def recording(self: Structural, scores: np.ndarray) -> None:
        last.append(np.array(scores))
        freeze(self, scores)

    monkeypatch.setattr(Structural, "freeze", recording)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        ranker = make().fit(found, **more)
    return ranker, (last[-1] if last else None)


def check(make: Callable[[], fp.RankSVM], found: fp.Dataset, monkeypatch, **more) -> fp.RankSVM:
    ranker, frozen = fitted(make, found, monkeypatch, **more)
    truth = problem(ranker, found, frozen)
    value, least = truth.value(ranker.params_), truth.minimum()
    small = 1e-6 * max(value, least)
    assert 0.0 <= ranker.gap_ <= 1.0
    assert value - least <= ranker.gap_ * value + small
    assert ranker.objective_ <= value + small  # what a search misses makes it too small
    assert ranker.objective_ * (1 - ranker.gap_) <= least + small
    return ranker


SOLVERS = ["cutting plane", "n-slack", "cutting plane(tol=0.1)", "n-slack(tol=0.1)",
           "cutting plane(max_iter=2)", "n-slack(max_iter=2)"]  # fmt: skip
RANKERS = [
    *[(fp.RankSVM, {"average": average}) for average in (False, True)],
    (fp.SVMMAP, {}),
    *[
        (fp.TopMargin, {"delta": delta, "reference": reference})
        for delta in ("NDCG", "Precision@2")
        for reference in ("resort", "mean", "fixed")
    ],
    *[
        (fp.TopSlack, {"delta": delta, "reference": reference, "search": search})
        for delta in ("NDCG", "NDCG@2", "Precision@2")
        for reference in ("resort", "mean", "fixed")
        for search in ("chords", "golden")
    ],
]


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("cls", "options"), RANKERS, ids=str)
def test_the_gap_bounds_the_excess(cls, options, solver, monkeypatch) -> None:
    for seed, (kind, C) in enumerate([("usual", 1.0), ("usual", 100.0), ("tied", 10.0),
                                      ("noise", 100.0), ("large", 0.01)]):  # fmt: skip
        check(lambda C=C: cls(C=C, solver=solver, **options), data(seed, kind), monkeypatch)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_the_gap_of_focused_svm(beta: float, solver: str) -> None:
    """On full orders, k = 3: two cuts of the top, and the pairs of the top with the rest."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(QUERIES * DOCS, FEATURES))
    y = np.concatenate([rng.permutation(DOCS) for _ in range(QUERIES)]).astype(float)
    found = fp.Dataset.from_arrays(X, y, np.repeat(np.arange(QUERIES), DOCS))
    slacks, weights = [], []
    for X, y in by_query(found):
        order = np.argsort(-y)
        slacks += [ap_constraints(X[order[:3]], np.arange(3) < cut) for cut in (1, 2)]
        slacks += [[(X[u] - X[v], 1.0)] for u in order[:3] for v in order[3:]]
        weights += [beta / 2 / QUERIES] * 2 + [(1 - beta) / 6 / QUERIES] * 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        ranker = fp.FocusedSVM(k=3, beta=beta, C=10.0, solver=solver).fit(found)
    truth = Problem(slacks, np.array(weights), 10.0)
    value = truth.value(ranker.params_)
    assert value - truth.minimum() <= ranker.gap_ * value + 1e-6 * value
    assert ranker.objective_ == pytest.approx(value)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["cutting plane", "n-slack"])
@pytest.mark.parametrize("search", ["chords", "golden"])
def test_a_search_that_misses_rankings_still_bounds(search, solver, monkeypatch) -> None:
    """Problems in which the golden section ends at weights that are not optimal."""
    for seed in range(12):
        ranker = check(
            lambda: fp.TopSlack(C=1e4, reference="mean", search=search, solver=solver),
            data(seed, "noise" if seed % 2 else "usual"), monkeypatch,
        )  # fmt: skip
        if search == "chords":
            assert ranker.gap_ <= 1.1e-3


@pytest.mark.parametrize("cls", [fp.RankSVM, fp.TopMargin, fp.TopSlack])
def test_the_gap_is_that_of_the_iteration_that_validation_chose(cls, monkeypatch) -> None:
    found = data(0)
    ranker = check(lambda: cls(C=100.0, patience=1), found, monkeypatch, valid=data(7, "noise"))
    assert ranker.best_iteration_ is not None


@pytest.mark.slow
def test_the_gap_over_shards(tmp_path: Path, monkeypatch) -> None:
    found = data(1)
    fp.write_shards(found, tmp_path / "shards", rows=2 * DOCS)
    for search in ("chords", "golden"):
        make = lambda s=search: fp.TopSlack(C=100.0, reference="mean", search=s)  # noqa: E731
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FirstpageWarning)
            far = make().fit(fp.read_shards(tmp_path / "shards"))
        truth = problem(far, found, None)
        value = truth.value(far.params_)
        assert value - truth.minimum() <= far.gap_ * value + 1e-6 * value
        assert far.gap_ == pytest.approx(check(make, found, monkeypatch).gap_, abs=2e-3)


def test_where_the_optimum_is_0_the_gap_is_that_of_the_weights_that_are_kept(monkeypatch) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(QUERIES * DOCS, FEATURES))
    y = np.tile([1.0, 0, 0, 0, 0], QUERIES)
    found = fp.Dataset.from_arrays(X, y, np.repeat(np.arange(QUERIES), DOCS))
    make = lambda: fp.TopMargin(C=1.0, reference="fixed")  # noqa: E731
    with pytest.warns(FirstpageWarning, match="w = 0"):
        make().fit(found)
    check(make, found, monkeypatch)


@pytest.mark.parametrize(
    "ranker",
    [fp.ListNet(), fp.Regression(), fp.RankSVM(solver="sgd"), fp.RankBoost(rounds=3),
     fp.TopRank(depth=3, voters=["Regression"])],
    ids=str,
)  # fmt: skip
def test_without_a_bound_the_gap_is_nan_and_a_line_says_why(ranker) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        ranker.fit(data(0))
    assert np.isnan(ranker.gap_)
    assert "\n" not in ranker.gap_note_
    assert fp.RankSVM().fit(data(0)).gap_note_ is None
