"""RankBoost, AdaRank and FocusedBoost against explicit pair matrices, and their limits."""

from __future__ import annotations

import itertools
import json
from math import exp, log, log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageError, FirstpageWarning
from firstpage.learning.losses.pairwise import PairwiseExponential
from firstpage.learning.rankers.fit.progress import Step
from firstpage.learning.scorers.stumps import StumpsScoring
from firstpage.learning.solvers.boosting.boosting import InMemoryBoostingState
from firstpage.learning.solvers.boosting.pools import QueryMeasure, StumpPool, WeakRankerPool
from firstpage.learning.solvers.boosting.statistics import ListTerm, PairTerm
from firstpage.learning.solvers.boosting.weak_rankers import (
    Features,
    Stumps,
    midpoints,
    thresholds_of,
)
from tests.narrow import dense, instance, present

pytestmark = pytest.mark.filterwarnings("ignore:nothing was learned")  # in degenerate cases

RECIPE = fp.Synthetic(queries=50, docs="uniform(1, 25)", features=15, grades=3, noise=1.0, seed=2)
DATA = RECIPE.dataset()
DATA = DATA.with_features(np.ascontiguousarray(DATA.X, np.float64))
TRAIN, TEST = DATA[:35], DATA[35:]
SMALL = fp.Synthetic(queries=7, docs="uniform(4, 9)", features=3, grades=3, seed=5).dataset()
SMALL = SMALL.with_features(np.round(np.asarray(SMALL.X, np.float64), 1))
TOP = SMALL.with_labels(SMALL.truth.top_k(3))
UNFITTED = [fp.RankBoost(rounds=40), fp.AdaRank(rounds=40), fp.FocusedBoost(4, rounds=40)]


# --- the algorithm with explicit pairs


def ndcg(scores, labels, k: int) -> float:
    """Return NDCG@k with the mean gain of each tie."""
    scores, gains = np.asarray(scores), 2.0 ** np.asarray(labels) - 1
    mean = np.array([gains[scores == s].mean() for s in scores])
    order = np.argsort(-scores, kind="stable")
    discount = [1 / log2(rank + 2) for rank in range(len(scores))][:k]
    dcg = sum(d * g for d, g in zip(discount, mean[order], strict=False))
    best = sum(d * g for d, g in zip(discount, np.sort(gains)[::-1], strict=False))
    return dcg / best


def weak_rankers(X: np.ndarray, kind: str) -> list[np.ndarray]:
    """Return the values of all weak rankers on all documents, then their negatives."""
    result = []
    for column in X.T:
        values = np.unique(column)
        if kind == "features":
            result.append((column - values[0]) / (values[-1] - values[0]))
        else:
            result += [(column > (a + b) / 2) * 1.0 for a, b in itertools.pairwise(values)]
    return result + [-h for h in result]


class ExplicitBoosting:
    """The algorithm with explicit pairs, on a top-k truth."""

    def __init__(self, data, k: int, beta: float, kind: str, edge: str = "printed") -> None:
        self.y, self.k, self.beta = data.y, k, beta
        queries = [range(a, b) for a, b in itertools.pairwise(data.offsets.tolist())]
        self.tops = [[d for d in q if self.y[d] > 0] for q in queries]
        rests = [[d for d in q if self.y[d] == 0] for q in queries]
        self.pairs: list[tuple[int, int]] = []
        D: list[float] = []
        for top, rest in zip(self.tops, rests, strict=True):
            self.pairs += itertools.product(top, rest)
            D += [1 / (len(top) * len(rest))] * (len(top) * len(rest))
        self.start = self.D = np.array(D) / sum(D)
        self.P = np.full(len(queries), 1 / len(queries))
        self.hs = weak_rankers(np.asarray(data.X), kind)
        self.differences = np.array([[h[u] - h[v] for u, v in self.pairs] for h in self.hs])
        self.E = np.array([[ndcg(h[t], self.y[t], k) for t in self.tops] for h in self.hs])
        self.F = np.zeros(len(self.y))
        self.chosen: list[tuple[int, float]] = []
        self.floor = self.measured(self.F) * (edge == "adjusted")

    def measured(self, F) -> np.ndarray:
        return np.array([ndcg(F[t], self.y[t], self.k) for t in self.tops])

    def weights(self, F) -> np.ndarray:
        return self.start * [exp(F[v] - F[u]) for u, v in self.pairs]

    def loss(self, F) -> float:
        lists = (1 - self.measured(F)).mean() / (1 - self.floor).mean()
        return self.beta * lists + (1 - self.beta) * self.weights(F).sum()

    def edges(self) -> np.ndarray:
        lists = (self.E - self.floor) @ self.P / ((1 - self.floor) @ self.P)
        return self.beta * lists + (1 - self.beta) * self.differences @ self.D

    def take(self, h: int, step: float) -> None:
        self.chosen.append((h, step))
        self.F = self.F + step * self.hs[h]
        self.P = np.exp(-self.measured(self.F))
        self.P /= self.P.sum()
        # Pair by pair from the last round's weights, as the papers write it.
        self.D = self.D * [exp(-step * (self.hs[h][u] - self.hs[h][v])) for u, v in self.pairs]
        self.D /= self.D.sum()

    def papers(self, rounds: int) -> None:
        for _ in range(rounds):
            r = self.edges()
            best = int(np.argmax(r >= r.max() - 1e-9))
            self.take(best, 0.5 * log((1 + r[best]) / (1 - r[best])))

    def ours(self, rounds: int, halvings: int) -> None:
        """Halve steps without effect, then set them aside until all others were tried."""
        count = len(self.hs) // 2
        aside: set[int] = set()
        while len(self.chosen) < rounds:
            r, before = self.edges(), self.loss(self.F)
            free = [h for h in range(len(self.hs)) if h % count not in aside and r[h] > 0]
            if not free:
                aside = set()
                if not any(self._helps(h, r[h], before, halvings) for h in range(len(self.hs))):
                    return
                continue
            largest = max(r[h] for h in free)
            best = next(h for h in free if r[h] >= largest - 1e-9)
            step = self._helps(best, r[best], before, halvings)
            if step:
                self.take(best, step)
            else:
                aside.add(best % count)

    def _helps(self, h: int, r: float, before: float, halvings: int) -> float:
        if r <= 0:
            return 0.0
        step = 0.5 * log((1 + r) / (1 - r))
        for _ in range(halvings + 1):
            if self.loss(self.F + step * self.hs[h]) < before - 1e-12:
                return step
            step /= 2
        return 0.0


@pytest.mark.parametrize("halvings", [None, 0, 2])
@pytest.mark.parametrize("kind", ["stumps", "features"])
@pytest.mark.parametrize(
    ("beta", "edge"),
    [(0.0, "printed"), (0.4, "printed"), (1.0, "printed"), (0.4, "adjusted"), (1.0, "adjusted")],
)
def test_rounds_equal_those_of_the_explicit_algorithm(
    kind, beta: float, edge: Any, halvings
) -> None:
    rounds = 8
    expected = ExplicitBoosting(TOP, 3, beta, kind, edge)
    expected.papers(rounds) if halvings is None else expected.ours(rounds, halvings)
    ranker = fp.FocusedBoost(
        3, beta, weak=kind, edge=edge, rounds=rounds, halvings=halvings, stall=None
    )
    losses: list = []
    ranker.fit(TOP, progress=lambda step: losses.append(step.loss))
    assert ranker.n_iter_ == len(expected.chosen) > 1
    again = ExplicitBoosting(TOP, 3, beta, kind, edge)
    steps = []
    for step in expected.chosen:
        again.take(*step)
        steps.append((again.loss(again.F), again.F))
    assert losses == pytest.approx([loss for loss, _ in steps], rel=1e-6)
    # Without validation data the round of least loss is kept; scores may differ by a constant.
    best_scores, scores = steps[int(np.argmin(losses))][1], ranker.predict(TOP)
    assert scores - scores[0] == pytest.approx(best_scores - best_scores[0], rel=1e-6, abs=1e-6)


def test_edges_with_query_weights_are_derivatives_of_the_loss() -> None:
    """In a round of RankBoost, alpha minimizes the bound, and the edge is the derivative."""
    weights = np.arange(1, len(SMALL) + 1)
    ranker = fp.RankBoost(rounds=1).fit(SMALL, sample_weight=weights)
    values, grad = PairwiseExponential(average=True).value_grad(np.zeros(SMALL.n_docs), SMALL.truth)
    each = np.repeat(weights, SMALL.lengths)
    edges = [
        -(each * grad) @ h / (weights @ values) for h in weak_rankers(dense(SMALL.X), "stumps")
    ]
    edge = max(edges)
    step = 0.5 * log((1 + edge) / (1 - edge))
    assert abs(instance(StumpsScoring, ranker.model_).step).tolist() == pytest.approx([step])


def test_weights_of_correctly_ordered_pairs_decrease() -> None:
    truth = fp.Truth.from_labels([1, 0, 1, 0], [1, 1, 2, 2])
    term = PairTerm(PairwiseExponential(average=True), truth, None, np.ones(2))
    term.update(np.zeros(4))
    assert term.potential.tolist() == [0.5, -0.5, 0.5, -0.5]
    assert term.loss == 1
    term.update(np.array([1.0, 0.0, 0.0, 1.0]))  # the first pair is correct, the second wrong
    correct = exp(-1) / (exp(-1) + exp(1))
    assert term.potential == pytest.approx([correct, -correct, 1 - correct, correct - 1])
    assert term.loss == pytest.approx((exp(-1) + exp(1)) / 2)


# --- limits of FocusedBoost


@pytest.mark.parametrize("weak", ["stumps", "stumps(bins=8, signs=plus)", "features"])
@pytest.mark.parametrize("ties", ["share", "random"])
@pytest.mark.parametrize("k", [1, 4, 100])
@pytest.mark.parametrize("valid", [None, TEST])
def test_focused_boost_with_beta_0_or_1_is_rankboost_or_adarank(weak, ties, k, valid) -> None:
    common = {"weak": weak, "ties": ties, "rounds": 12}
    ends = []
    for beta, single in [
        (0, fp.RankBoost(k, pairs="cross", **common)),
        (1, fp.AdaRank(k, on="top", **common)),
    ]:
        mixed = fp.FocusedBoost(k, beta, **common).fit(TRAIN, valid=valid)
        assert mixed.model_.to_dict() == single.fit(TRAIN, valid=valid).model_.to_dict()
        assert mixed.n_iter_ == single.n_iter_
        assert [s.loss for s in mixed.history_] == [s.loss for s in single.history_]
        ends.append(mixed.model_.to_dict())
    if k == 4:
        middle = fp.FocusedBoost(k, 0.5, **common).fit(TRAIN, valid=valid)
        assert middle.model_.to_dict() not in ends


def top_term(adjusted: bool, X) -> tuple[ListTerm, WeakRankerPool]:
    """Return the list term of the tops of SMALL, with features as weak rankers."""
    query_measure = QueryMeasure(fp.measure("NDCG@3"), TOP.truth, np.flatnonzero(TOP.y > 0))
    pool = Features().pool(X, np.ones(len(X)))
    return ListTerm(query_measure, pool, np.ones(len(TOP)), adjusted), pool


def test_adjusted_edge_is_0_for_a_weak_ranker_that_does_not_order_the_top() -> None:
    """It separates the top from the rest, which counts for pairs and not for lists."""
    X = np.column_stack([TOP.y > 0, TOP.y, dense(TOP.X[:, 0])]).astype(np.float64)
    for adjusted in (False, True):
        term, pool = top_term(adjusted, X)
        term.update(np.zeros(TOP.n_docs))
        (separating, best, _), (upside_down, worst, _) = term.edges(pool)
        assert best == pytest.approx(1)
        assert separating == upside_down
        if adjusted:
            assert separating == pytest.approx(0, abs=1e-7)
            assert worst < 0
        else:
            assert separating > 0.6
            assert worst > 0


def test_both_losses_range_from_1_to_0_with_the_adjusted_edge() -> None:
    term, _ = top_term(True, TOP.X)
    term.update(np.zeros(TOP.n_docs))
    assert term.loss == pytest.approx(1)
    term.update(TOP.y.astype(np.float64))
    assert term.loss == pytest.approx(0)
    printed, _ = top_term(False, TOP.X)
    printed.update(np.zeros(TOP.n_docs))
    assert printed.loss < 0.5
    for each in (term, printed):  # the weights depend on the measure, adjusted or not
        each.update(np.asarray(TOP.X[:, 0], np.float64))
    assert term._weights.tolist() == printed._weights.tolist()


def test_adjusted_steps_follow_from_the_adjusted_edge() -> None:
    """The printed edge includes the NDCG of a random order; the adjusted one does not."""
    steps = {}
    for edge in ("printed", "adjusted"):
        ranker = fp.FocusedBoost(3, 0.5, edge=edge, weak="features", rounds=1, halvings=None)
        steps[edge] = np.abs(ranker.fit(TOP).coef_).max()
    assert steps["adjusted"] < 0.75 * steps["printed"]
    same = [
        fp.FocusedBoost(3, 0, edge=edge, rounds=9).fit(TOP).model_.to_dict()
        for edge in ("printed", "adjusted")
    ]
    assert same[0] == same[1]  # beta = 0 has no list term


def test_the_edge_parameter_is_stored_and_parsed(tmp_path) -> None:
    ranker = fp.ranker("FocusedBoost(k=3, edge=adjusted, rounds=5)").fit(TOP)
    ranker.save(tmp_path / "m.json")
    again = fp.load(tmp_path / "m.json")
    assert again.edge == "adjusted"
    assert again.predict(TOP).tolist() == ranker.predict(TOP).tolist()
    assert fp.FocusedBoost().edge == "printed"
    with pytest.raises(DataError, match="edge must be 'printed' or 'adjusted'; got 'centered'"):
        fp.FocusedBoost(3, edge="centered").fit(TOP)  # type: ignore[arg-type]


def test_a_top_of_one_document_has_no_list_loss() -> None:
    """With k = 1 the edges of the list term are 0, and it has no loss."""
    assert fp.AdaRank(1, on="top").fit(TRAIN).n_iter_ == 0
    half = fp.FocusedBoost(1, 0.5, rounds=1, weak="features").fit(TRAIN)
    full = fp.RankBoost(1, pairs="cross", rounds=1, weak="features").fit(TRAIN)
    assert half.objective_ < 0.5
    assert np.count_nonzero(half.coef_) == 1
    assert np.flatnonzero(half.coef_) == np.flatnonzero(full.coef_)
    assert 0 < abs(half.coef_.sum()) < abs(full.coef_.sum())  # half the edge, a shorter step


# --- values of single weak rankers


@pytest.mark.parametrize("measure", ["NDCG@3", "NDCG", "NDCG(gain=linear)@5", "AP", "P@4", "ERR"])
@pytest.mark.parametrize("kind", [Stumps(bins=6), Features()])
@pytest.mark.parametrize("on", ["list", "top"])
def test_values_of_weak_rankers_equal_those_of_the_measures(measure, kind, on) -> None:
    rows = np.flatnonzero(SMALL.y > 0) if on == "top" else np.arange(SMALL.n_docs)
    query_measure = QueryMeasure(fp.measure(measure), SMALL.truth, rows if on == "top" else None)
    pool = kind.pool(SMALL.X, np.ones(SMALL.n_docs))
    table = pool.measure_values(query_measure)
    subset = fp.Dataset.from_arrays(SMALL.X[rows], SMALL.y[rows], SMALL.qid[rows])
    measured = np.isin(
        SMALL.queries.to_array(), subset.queries.to_array()
    )  # some have no document in the top
    assert measured.sum() == len(subset)
    assert table.shape == (2, pool.count, len(SMALL))
    for s, number in itertools.product((0, 1), range(pool.count)):
        scores = (1, -1)[s] * pool.values(number, subset.X)
        expected = fp.evaluate(scores, subset, measures=measure).per_query(measure)
        assert table[s, number, measured] == pytest.approx(expected, abs=1e-6)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=14),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 12),
)
def test_partial_sorting_measures_as_full_sorting(lists, cutoff: int) -> None:
    scores = np.array([s for documents in lists for s, _ in documents], float)
    labels = np.array([y for documents in lists for _, y in documents], float)
    qid = np.repeat(np.arange(len(lists)), [len(documents) for documents in lists])
    query_measure = QueryMeasure(fp.measure(f"NDCG@{cutoff}"), fp.Truth.from_labels(labels, qid))
    data = fp.Dataset.from_arrays(np.zeros((len(labels), 1)), labels, qid)
    expected = fp.evaluate(scores, data, measures=f"NDCG@{cutoff}").per_query(f"NDCG@{cutoff}")
    assert query_measure(scores) == pytest.approx(expected, abs=1e-12)


def test_queries_with_equal_labels_are_dropped() -> None:
    y = np.array([2, 1, 0, 0, 1, 1, 2, 1, 3])
    truth = fp.Truth.from_labels(y, [1, 1, 2, 2, 3, 3, 4, 4, 5])
    assert QueryMeasure(fp.measure("NDCG@10"), truth).informative.tolist() == [
        True,
        False,
        False,
        True,
        False,
    ]
    assert not QueryMeasure(fp.measure("AP"), truth).informative.any()


# --- thresholds


def test_thresholds_are_midpoints_of_values_or_quantiles() -> None:
    rng = np.random.default_rng(0)
    few = rng.integers(0, 9, 500) / 4
    many = rng.normal(size=500)
    flat = np.ones(500)
    zeros = np.where(rng.random(500) < 0.8, 0.0, rng.random(500))
    X = np.column_stack([few, many, flat, zeros])
    cuts = thresholds_of(X, np.ones(500), 10)
    values = np.unique(few)
    assert cuts[0].tolist() == ((values[1:] + values[:-1]) / 2).tolist()
    assert len(cuts[1]) == 9
    assert np.bincount(np.searchsorted(cuts[1], many)).tolist() == [50] * 10
    assert len(cuts[2]) == 0
    # The zeros fill one bin; the other values fill the other nine.
    sizes = np.bincount(np.searchsorted(cuts[3], zeros))
    assert len(sizes) == 10
    assert sizes[0] == (zeros == 0).sum()
    assert sizes[1:].max() - sizes[1:].min() <= 2
    sparse = thresholds_of(csr_array(X), np.ones(500), 10)
    assert [c.tolist() for c in sparse] == [c.tolist() for c in cuts]


def test_weights_act_as_copies_in_quantiles() -> None:
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(300, 2)), rng.integers(0, 4, 300)
    by_weight = thresholds_of(X, weights.astype(float), 16)
    copied = np.repeat(X, weights, axis=0)
    expected = thresholds_of(copied, np.ones(len(copied)), 16)
    assert [c.tolist() for c in by_weight] == [c.tolist() for c in expected]


def test_thresholds_lie_between_adjacent_values() -> None:
    for a, b in [(1.0, np.nextafter(1.0, 2)), (0.0, 5e-324), (-1e308, 1e308), (-5e-324, 0.0)]:
        (t,) = midpoints(np.array([a]), np.array([b]))
        assert a <= t < b
    X = np.array([[1.0], [np.nextafter(np.float32(1), np.float32(2))]], np.float32)
    ranker = fp.RankBoost(rounds=1).fit(X, [0, 1], qid=[1, 1])
    assert np.ptp(ranker.predict(X)) > 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [2, 7, 256])
def test_documents_are_on_the_same_side_in_training_and_prediction(dtype, bins: int) -> None:
    X = np.ascontiguousarray(DATA.X, dtype)
    pool = Stumps(bins=bins).pool(X, np.ones(len(X)))
    assert np.diff(instance(StumpPool, pool).firsts).max() <= bins - 1
    rng = np.random.default_rng(0)
    for number in rng.integers(0, pool.count, 20).tolist():
        scores = np.zeros(len(X))
        pool.add(number, 0.5, scores)
        model = pool.scoring([(number, 0.5)], None)
        assert model.predict(X).tolist() == scores.tolist()
        assert model.predict(csr_array(X)).tolist() == scores.tolist()
        assert (0.5 * pool.values(number, X)).tolist() == scores.tolist()
        expected = sum(scores / 0.5 * np.arange(len(X)))
        assert pool.edges(np.arange(len(X), dtype=float))[number] == pytest.approx(expected)


def test_threads_do_not_change_a_bit(monkeypatch) -> None:
    monkeypatch.setattr("firstpage.learning.solvers.boosting.pools.SINGLE_THREAD_BINS", 0)
    models = [fp.RankBoost(rounds=20, threads=t).fit(TRAIN).model_.to_dict() for t in (1, 2, 3, 40)]
    assert all(model == models[0] for model in models)


# --- stopping


def test_training_loss_decreases_every_round_with_halvings() -> None:
    for unfitted in UNFITTED:
        losses = [1.0, *(s.loss for s in clone(unfitted).fit(TRAIN).history_)]
        assert len(losses) > 6, unfitted
        assert (np.diff(losses) < 0).all(), unfitted
    papers = fp.AdaRank(rounds=40, halvings=None, stall=None).fit(TRAIN)
    halved = fp.AdaRank(rounds=40).fit(TRAIN)
    assert papers.n_iter_ == 40
    assert not (np.diff([s.loss for s in papers.history_]) < 0).all()
    assert halved.objective_ < papers.objective_ == min(s.loss for s in papers.history_)


def test_rejected_steps_leave_the_state_unchanged() -> None:
    pool = Features().pool(TRAIN.X, np.ones(TRAIN.n_docs))
    query_measure = QueryMeasure(fp.measure("NDCG@10"), TRAIN.truth)
    state = InMemoryBoostingState(
        pool, [(1.0, ListTerm(query_measure, pool, np.ones(len(TRAIN))))], np.zeros(TRAIN.n_docs)
    )
    best = int(np.argmax(state.edges()[0]))
    assert state.try_step(best, 0.5, halvings=0) > 0
    scores, loss, edges = state.scores.copy(), state.loss, state.edges()
    refused = [h for h in range(pool.count) if state.try_step(h, -0.99, halvings=1) == 0]
    assert best in refused  # the best feature, reversed
    fresh = InMemoryBoostingState(
        pool, [(1.0, ListTerm(query_measure, pool, np.ones(len(TRAIN))))], scores.copy()
    )
    again = InMemoryBoostingState(pool, state.terms, scores.copy())
    again.edges()
    assert again.try_step(best, -0.99, halvings=1) == 0
    assert (again.scores.tolist(), again.loss) == (scores.tolist(), loss)
    assert again.edges().tolist() == edges.tolist() == fresh.edges().tolist()


def test_setting_weak_rankers_aside_avoids_repeating_one() -> None:
    """The first feature is the best one, and AdaRank would choose it every round."""
    rng = np.random.default_rng(0)
    X = rng.random((600, 3))
    y = np.round(3 * (0.6 * X[:, 0] + 0.4 * X[:, 1]) + 0.2 * rng.normal(size=600))
    qid = np.repeat(np.arange(30), 20)
    stuck = fp.AdaRank(halvings=None, rounds=30).fit(X, y, qid=qid)
    freed = fp.AdaRank(rounds=30).fit(X, y, qid=qid)
    assert np.count_nonzero(stuck.coef_) == 1
    assert freed.coef_[1] > 0
    assert freed.score(X, y, qid=qid) > stuck.score(X, y, qid=qid) + 0.02
    assert freed.n_iter_ < 30  # no further improvement


def test_tol_stops_rankboost() -> None:
    full = fp.RankBoost(rounds=60).fit(TRAIN)
    losses = np.array([1.0, *(s.loss for s in full.history_)])
    falls = -np.diff(losses) / losses[:-1]
    for tol in (0.05, 0.02):
        some = fp.RankBoost(rounds=60, tol=tol).fit(TRAIN)
        assert some.n_iter_ == int(np.argmax(falls < tol)) + 1 < 60
    assert fp.RankBoost(rounds=60, tol=1.0).fit(TRAIN).n_iter_ == 1


def test_stall_stops_boosting_without_improvement() -> None:
    X, y, qid = np.array([[0.0], [1.0], [1.0], [0.0]]), [0, 1, 0, 1], [1, 1, 2, 2]
    assert fp.RankBoost().fit(X, y, qid=qid).n_iter_ == 0  # as often correct as wrong
    patient, hasty = (fp.AdaRank(rounds=300, stall=s).fit(TRAIN) for s in (None, 1))
    assert hasty.n_iter_ < patient.n_iter_ < 300
    assert hasty.objective_ > patient.objective_


def test_a_perfect_weak_ranker_ends_boosting() -> None:
    X, y, qid = np.arange(8.0).reshape(8, 1), [0, 0, 1, 1, 0, 0, 1, 1], np.repeat([1, 2], 4)
    X[4:] -= 4
    for unfitted in (fp.RankBoost(), fp.AdaRank(), fp.AdaRank(weak="stumps")):
        ranker = clone(unfitted).fit(X, y, qid=qid)
        assert ranker.n_iter_ == 1
        assert ranker.score(X, y, qid=qid) == 1
    # With two alternating stumps the loss would decrease without end; boosting stops anyway.
    y = [0, 0, 1, 1, 0, 0, 0, 1]
    ranker = fp.RankBoost(rounds=1000).fit(X, y, qid=qid)
    assert 1 < ranker.n_iter_ < 200
    assert ranker.score(X, y, qid=qid) == 1


# --- properties of all rankers


def test_document_weights_act_as_copies() -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, TRAIN.n_docs)
    rows = np.repeat(np.arange(TRAIN.n_docs), weights)
    for unfitted in UNFITTED:
        by_weight = clone(unfitted).fit(TRAIN, sample_weight=weights)
        copied = clone(unfitted).fit(TRAIN.X[rows], TRAIN.y[rows], qid=TRAIN.qid[rows])
        assert by_weight.predict(TEST) == pytest.approx(copied.predict(TEST), abs=1e-9)
    halves = fp.RankBoost(rounds=10).fit(TRAIN, sample_weight=weights / 2)
    assert np.isfinite(halves.predict(TEST)).all()
    for unfitted in UNFITTED[1:]:
        with pytest.raises(DataError, match=r"must be integers, and one is 0\.5"):
            clone(unfitted).fit(TRAIN, sample_weight=weights / 2)


@pytest.mark.parametrize("unfitted", UNFITTED, ids=str)
def test_a_query_of_weight_2_equals_two_queries(unfitted) -> None:
    weights = np.random.default_rng(0).integers(0, 3, len(TRAIN))
    twice = TRAIN[np.repeat(np.arange(len(TRAIN)), weights)]
    qid = np.repeat(np.arange(len(twice)), twice.lengths)
    expected = clone(unfitted).fit(twice.X, twice.y, qid=qid).predict(TEST)
    assert clone(unfitted).fit(TRAIN, sample_weight=weights).predict(TEST) == pytest.approx(
        expected
    )
    assert not np.allclose(clone(unfitted).fit(TRAIN).predict(TEST), expected)


@pytest.mark.parametrize(
    "unfitted", [*UNFITTED, fp.AdaRank(weak="stumps(bins=9)", rounds=20)], ids=str
)
def test_sparse_and_dense_features_give_the_same_model(unfitted) -> None:
    X = TRAIN.X * (np.random.default_rng(0).random(TRAIN.X.shape) < 0.5)
    dense = clone(unfitted).fit(X, TRAIN.y, qid=TRAIN.qid)
    sparse = clone(unfitted).fit(csr_array(X), TRAIN.y, qid=TRAIN.qid)
    valid = (csr_array(TEST.X), TEST.y, TEST.qid)
    assert sparse.predict(csr_array(TEST.X)) == pytest.approx(dense.predict(TEST.X))
    watched = clone(unfitted).fit(csr_array(X), TRAIN.y, qid=TRAIN.qid, valid=valid)
    assert watched.best_score_ == pytest.approx(watched.score(*valid[:2], qid=valid[2]))


@pytest.mark.parametrize("unfitted", UNFITTED, ids=str)
def test_validation_and_interrupts_keep_the_best_round(unfitted) -> None:
    seen: list[Step] = []
    ranker = clone(unfitted).set_params(patience=4).fit(TRAIN, valid=TEST, progress=seen.append)
    values = [present(step.measure) for step in seen]
    assert ranker.best_score_ == max(values) == pytest.approx(ranker.score(TEST))
    assert len(seen) <= ranker.best_iteration_ + 4

    def stop(step) -> None:
        if step.iteration == 3:
            raise KeyboardInterrupt

    with pytest.warns(FirstpageWarning, match="interrupted"):
        some = clone(unfitted).fit(TRAIN, valid=TEST, progress=stop)
    assert some.interrupted_
    assert some.score(TEST) == pytest.approx(max(values[:3]))
    assert clone(unfitted).fit(TRAIN, progress=lambda step: step.iteration == 2).n_iter_ == 2


@pytest.mark.parametrize("unfitted", UNFITTED, ids=str)
def test_warm_start_continues(unfitted, tmp_path) -> None:
    full = clone(unfitted).set_params(rounds=8).fit(TRAIN)
    first = clone(unfitted).set_params(rounds=4, warm_start=True, stall=None).fit(TRAIN)
    first.save(tmp_path / "m.json")
    for ranker in (first, fp.load(tmp_path / "m.json")):
        ranker.fit(TRAIN)
        assert ranker.objective_ < full.history_[3].loss
        if not isinstance(unfitted, fp.AdaRank):  # it starts with no weak ranker set aside
            assert ranker.predict(TEST) == pytest.approx(full.predict(TEST))
    with pytest.raises(DataError, match="warm_start"):
        first.set_params(weak="features" if unfitted.weak == "stumps" else "stumps").fit(TRAIN)


def test_degenerate_data_give_a_finite_model() -> None:
    X = np.random.default_rng(0).normal(size=(12, 3))
    y, q = np.array([2, 1, 0, 0, 1, 0, 2, 0, 0, 1, 0, 1]), np.repeat([1, 2, 3], 4)
    boosters: list[type[fp.Ranker]] = [fp.RankBoost, fp.AdaRank, fp.FocusedBoost]
    for cls, weak in itertools.product(boosters, ("stumps", "features")):
        cases: list[tuple[Any, Any, Any]] = [
            (X, np.ones(12), q),
            (X, np.zeros(12), q),
            (X, -y, q),
            (X, y, np.zeros(12)),
            (X, y, np.arange(12)),
            (X[:1], y[:1], [1]),
            (np.ones((12, 3)), y, q),
            (X * 1e300, y, q),
            (X * 1e-300, y, q),
            (X * 1e-320, y, q),
            (X, y * 1e6, q),
        ]
        for x, labels, qid in cases:
            for k in (1, 3, 100):
                ranker = cls(k=k, weak=weak, rounds=30).fit(x, labels, qid=qid)
                assert np.isfinite(ranker.predict(x)).all(), (cls, weak, k)
                assert np.isfinite(ranker.objective_)


def test_units_of_features_do_not_matter() -> None:
    factors = np.tile([1e-6, 1.0, 1e4, 32.0, 7e8], 3)
    for unfitted in UNFITTED:
        expected = clone(unfitted).fit(TRAIN).predict(TEST)
        scaled = clone(unfitted).fit(TRAIN.X * factors + 5, TRAIN.y, qid=TRAIN.qid)
        dcg = scaled.predict(TEST.X * factors + 5)
        assert dcg - dcg[0] == pytest.approx(expected - expected[0], rel=1e-4, abs=1e-4)


def test_names_of_boosting_rankers() -> None:
    for text in ("AdaRank.MAP", "adarank-map", "ada_rank.map"):
        assert str(fp.ranker(text)) == "AdaRank(maximize='AP')"
    assert fp.ranker("AdaRank.NDCG(k=5)").maximize == "NDCG@10"
    assert str(fp.ranker("top-k rank-boost")) == "RankBoost(k=10)"
    assert fp.ranker("topk adarank.map", k=3).k == 3
    assert fp.ranker("FocusedBoost(beta=0.2, weak=stumps(bins=9))").weak == "stumps(bins=9)"


@pytest.mark.parametrize(
    ("unfitted", "message"),
    [
        (fp.RankBoost(weak="trees"), "no weak ranker 'trees'"),
        (fp.RankBoost(weak="stumps(bins=1)"), "bins of Stumps must be an integer of at least 2"),
        (fp.RankBoost(weak="stumps(bins=257)"), "at most 256"),
        (fp.RankBoost(weak="stumps(x=1)"), "no parameter 'x'"),
        (fp.RankBoost(weak="features(signs=minus)"), "signs must be 'both' or 'plus'"),
        (fp.RankBoost(weak=5), "weak must be a string"),  # type: ignore[arg-type]
        (fp.RankBoost(rounds=0), "rounds of RankBoost must be an integer of at least 1"),
        (fp.RankBoost(tol=-1), "tol of RankBoost must be a number of at least 0"),
        (fp.RankBoost(pairs="some"), "pairs must be 'all' or 'cross'"),  # type: ignore[arg-type]
        (fp.AdaRank(stall=0), "stall of AdaRank must be"),
        (fp.AdaRank(halvings=-1), "halvings of AdaRank must be"),
        (fp.AdaRank(on="pairs"), "on must be 'list' or 'top'"),  # type: ignore[arg-type]
        (fp.AdaRank(on="top"), "on='top' needs k"),
        (fp.AdaRank(maximize="NDGC"), "no measure 'NDGC'"),
        (fp.AdaRank(maximize="DCG"), "a measure from 0 to 1"),
        (fp.AdaRank(maximize="WKT"), "a measure from 0 to 1"),
        (fp.FocusedBoost(beta=1.5), "beta must be from 0 to 1"),
        (fp.FocusedBoost(beta=-1), "beta of FocusedBoost must be"),
        (fp.FocusedBoost(k=None), "FocusedBoost needs k"),
    ],
)
def test_invalid_arguments_cause_one_line_errors(unfitted, message: str) -> None:
    with pytest.raises(FirstpageError, match=message) as caught:
        unfitted.fit(TRAIN)
    assert "\n" not in str(caught.value)


# --- models


def test_explanations_of_stumps(tmp_path) -> None:
    from firstpage.interop.report.rankers import explanation_page, explanation_text

    ranker = fp.RankBoost(rounds=30).fit(TRAIN)
    ranker.save(tmp_path / "m.json")
    result = fp.explain(tmp_path / "m.json")
    assert result.values.tolist() == ranker.model_.explain().values.tolist()
    name, value = result.ordered()[0]
    thresholds, levels = result.steps[name]
    assert len(levels) == len(thresholds) + 1
    assert value == pytest.approx(levels.max() - levels.min())
    x = np.zeros((1, 15))
    x[0, int(name) - 1] = thresholds[0] + 1e-9
    y = x.copy()
    y[0, int(name) - 1] = thresholds[0] - 1e-9
    assert (ranker.predict(x) - ranker.predict(y))[0] == pytest.approx(levels[1] - levels[0])
    assert "range of steps" in explanation_text(result, 3)
    assert "Feature effects" in explanation_page(result, 3)
    assert json.loads(json.dumps(result.to_dict()))["features"][0]["levels"] == levels.tolist()


SYNTHETIC = fp.Synthetic(queries=30, docs=12, features=6, grades=3).dataset()


TRAINING, VALID = SYNTHETIC[:20], SYNTHETIC[20:]


def test_boosting_without_effect_causes_a_warning() -> None:
    with pytest.warns(FirstpageWarning, match="nothing was learned"):
        fp.RankBoost().fit(np.ones((20, 3)), np.arange(20) % 3, qid=np.ones(20))
    ranker = fp.AdaRank(warm_start=True).fit(TRAINING)
    before = ranker.objective_
    ranker.fit(TRAINING)
    assert ranker.objective_ <= before


def test_too_large_tables_are_rejected() -> None:
    import firstpage.learning.solvers.boosting.pools as pools

    largest, pools.MAX_TABLE_BYTES = pools.MAX_TABLE_BYTES, 1000
    try:
        with pytest.raises(DataError, match="use fewer stumps"):
            fp.FocusedBoost(k=3).fit(TRAINING)
    finally:
        pools.MAX_TABLE_BYTES = largest
