"""The expected measure under a Plackett-Luce model, against the enumeration of all rankings."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.ids import Ids
from firstpage.data.truth import Truth
from firstpage.evaluation.measures.base import Convention, rank_lists
from firstpage.evaluation.measures.registry import measure as parse_measure
from firstpage.learning.losses.measure_forms import measure_form
from firstpage.learning.losses.plrank import ExpectedMeasure

LABELS = np.array([2.0, 0.0, 1.0, 3.0, 0.0, 1.0])
SCORES = np.array([0.4, -0.3, 0.9, -0.8, 0.1, 0.0])
DEFAULT = Convention()
MEASURES = [
    "NDCG@3", "NDCG", "NDCG(gain=linear, discount=letor)@4", "DCG@2", "P@3", "Recall@2",
    "RBP(p=0.6)@4", "RBP", "ERR", "ERR(max=5)@3", "RR", "RR(rel=2)@2", "Success@2", "AP", "AP@3",
]  # fmt: skip


def learned_measures():
    utility = fp.dcglearn.Utility.from_gains(gains=[0, 1, 3, 4], discounts=[1.0, 0.7, 0.2])
    weights = np.array([[0.0, 0.5, 2.0, 3.0], [-0.5, 0.2, 1.5, 1.0], [0.0, 0.3, 0.1, 0.4]])
    table = fp.dcglearn.Utility((0, 1, 2, 3), weights, np.arange(4) / 3, np.ones(3), "weights")
    return [
        fp.measure("NDCG@2", of=utility),
        fp.measure("DCG", of=utility),
        fp.measure("NDCG@3", of=table),
        fp.measure("DCG@2", of=table),
    ]


def truth_of(labels: np.ndarray) -> Truth:
    return Truth.from_labels(labels, [1] * len(labels))


def measured(measure, labels: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Return the value of each order, by the measure itself."""
    count, n = orders.shape
    scores = np.empty((count, n))
    np.put_along_axis(scores, orders, -np.arange(n, dtype=float)[None, :], axis=1)
    offsets = np.arange(count + 1) * n
    queries = Ids.from_values([str(q) for q in range(count)])
    lists = rank_lists(scores.ravel(), Truth(np.tile(labels, count), offsets, queries), DEFAULT)
    return measure.values(lists, DEFAULT)


class Enumeration:
    """All rankings of a short list: their values, and their probabilities at any scores."""

    def __init__(self, measure, labels: np.ndarray = LABELS) -> None:
        self.orders = np.array(list(permutations(range(len(labels)))))
        self.values = measured(measure, labels, self.orders)
        self.best = measured(measure, labels, np.argsort(-labels, kind="stable")[None, :])[0]

    def probabilities(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the probability of each ranking, and the gradient of its logarithm."""
        e = np.exp(scores)[self.orders]
        sums = np.cumsum(e[:, ::-1], axis=1)[:, ::-1]
        gradient = np.ones_like(e) - e * np.cumsum(1 / sums, axis=1)
        by_document = np.empty_like(gradient)
        np.put_along_axis(by_document, self.orders, gradient, axis=1)
        return np.prod(e / sums, axis=1), by_document

    def loss(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        probability, gradient = self.probabilities(scores)
        weighted = probability * self.values
        return self.best - weighted.sum(), -(weighted[:, None] * gradient).sum(axis=0)


def estimates(loss: ExpectedMeasure, calls: int, scores=SCORES, labels=LABELS):
    """Return the value and the gradient of several evaluations, each of other rankings."""
    scores = np.array(scores, float)
    values, grad = np.empty(1), np.empty(len(scores))
    run = loss.target(truth_of(labels)).bind_slice(0, 1, scores, values, grad)
    out = []
    for _ in range(calls):
        run()
        out.append(np.concatenate([values, grad]))
    return np.array(out)


@pytest.mark.parametrize("measure", [*MEASURES, *learned_measures()], ids=str)
def test_estimates_have_no_bias(measure) -> None:
    """Value and gradient are means of independent estimates: within 4.5 standard errors."""
    exact = Enumeration(parse_measure(measure))
    value, gradient = exact.loss(SCORES)
    drawn = estimates(ExpectedMeasure(measure, samples=500), 60)
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - [value, *gradient]) <= 4.5 * error + 1e-12).all()
    assert error.max() < 0.02 * max(exact.best, 1.0)


def test_the_reference_gradient_matches_finite_differences() -> None:
    exact = Enumeration(parse_measure("NDCG@3"))
    _, gradient = exact.loss(SCORES)
    for i in range(len(SCORES)):
        step = np.eye(len(SCORES))[i] * 1e-5
        difference = exact.loss(SCORES + step)[0] - exact.loss(SCORES - step)[0]
        assert gradient[i] == pytest.approx(difference / 2e-5, abs=1e-8)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_curvature_bounds_the_second_derivative(measure: str) -> None:
    exact = Enumeration(parse_measure(measure))
    for scores in (SCORES, 0 * SCORES, 3 * SCORES):
        curvature = ExpectedMeasure(measure, samples=20_000).curvature(scores, truth_of(LABELS))
        for i in range(len(scores)):
            step = np.eye(len(scores))[i] * 1e-4
            right, left = exact.loss(scores + step)[1][i], exact.loss(scores - step)[1][i]
            assert abs(right - left) / 2e-4 <= 1.02 * curvature[i] + 1e-3


@pytest.mark.parametrize("measure", ["NDCG@3", "P@2", "RBP", "ERR", "RR", "AP"])
def test_the_variance_is_below_that_of_the_policy_gradient(measure: str) -> None:
    """Of one ranking: value of the ranking times the gradient of its log-probability (REINFORCE)
    has the same mean; its exact variance is the sum over all rankings."""
    exact = Enumeration(parse_measure(measure))
    probability, gradient = exact.probabilities(SCORES)
    reinforce = exact.values[:, None] * gradient
    second = (probability[:, None] * reinforce**2).sum()
    variance = second - (exact.loss(SCORES)[1] ** 2).sum()
    drawn = estimates(ExpectedMeasure(measure, samples=1), 2000)[:, 1:]
    assert drawn.var(axis=0).sum() < 0.5 * variance


@pytest.mark.parametrize("measure", ["NDCG@3", "ERR"])
def test_the_variance_falls_with_the_number_of_samples(measure: str) -> None:
    variances = [
        estimates(ExpectedMeasure(measure, samples=count), 400)[:, 1:].var(axis=0).sum()
        for count in (1, 4, 16)
    ]
    assert variances[0] / variances[1] == pytest.approx(4, rel=0.3)
    assert variances[1] / variances[2] == pytest.approx(4, rel=0.3)


def test_k_counts_the_first_ranks_only() -> None:
    shallow = estimates(ExpectedMeasure("DCG@5", k=2, samples=200), 5)
    assert shallow.tolist() == estimates(ExpectedMeasure("DCG@2", samples=200), 5).tolist()


def test_every_supported_measure_has_the_value_of_its_true_order() -> None:
    strict = np.array([3.0, 0.0, 1.0, 2.0, 0.0])
    texts = [*MEASURES, *learned_measures(), "kNDCG@3", "kERR@2"]
    for measure in map(parse_measure, texts):
        truth = truth_of(strict)
        best = measured(measure, strict, np.argsort(-strict, kind="stable")[None, :])
        assert measure_form(measure, truth).true_values(truth) == pytest.approx(best), measure


def test_other_measures_are_refused_in_one_line() -> None:
    for text in ("Tau", "bpref", "Rprec", "MeanNDCG", "nERR@5", "GMAP", "RBP(gain=exp)"):
        with pytest.raises(fp.DataError, match=r"cannot maximize .*; choose one of NDCG, DCG, E"):
            ExpectedMeasure(text)


def sample(seed: int = 0) -> tuple[Truth, np.ndarray]:
    rng = np.random.default_rng(seed)
    lengths = [6, 1, 0, 5, 2, 30]
    rows = sum(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    queries = Ids.from_values([str(q) for q in range(len(lengths))])
    return Truth(rng.integers(0, 3, rows).astype(float), offsets, queries), rng.normal(size=rows)


@pytest.mark.parametrize("measure", ["NDCG@10", "ERR", "AP"])
def test_slices_draw_the_rankings_of_the_full_data(measure: str) -> None:
    truth, scores = sample()
    loss = ExpectedMeasure(measure, samples=3, seed=5)
    values, grad = np.empty(len(truth)), np.empty(len(scores))
    whole = loss.target(truth).bind_slice(0, len(truth), scores, values, grad)
    slices = []
    for lo, hi in [(0, 2), (2, 5), (5, 6)]:
        a, b = int(truth.offsets[lo]), int(truth.offsets[hi])
        v, g = np.empty(hi - lo), np.empty(b - a)
        slices.append((loss.target(truth).bind_slice(lo, hi, scores[a:b].copy(), v, g), v, g))
    before = None
    for _ in range(3):
        whole()
        for run, _, _ in slices:
            run()
        assert np.concatenate([v for _, v, _ in slices]).tolist() == values.tolist()
        assert np.concatenate([g for _, _, g in slices]).tolist() == grad.tolist()
        assert grad.tolist() != before  # other rankings in every evaluation
        before = grad.tolist()
    assert ExpectedMeasure(measure, samples=3, seed=6).value_grad(scores, truth)[1].tolist() != (
        ExpectedMeasure(measure, samples=3, seed=5).value_grad(scores, truth)[1].tolist()
    )


@pytest.mark.parametrize("measure", ["NDCG@3", "ERR", "AP", learned_measures()[2]], ids=str)
def test_huge_scores_have_finite_values_and_gradients(measure) -> None:
    truth, scores = sample()
    loss = ExpectedMeasure(measure)
    for extreme in (
        np.sign(scores) * 1e4,
        np.linspace(-1e6, 1e6, len(scores)),
        scores * 0,
        np.sign(scores) * 1e300,
        np.linspace(-1e300, 1e300, len(scores)),
    ):
        values, grad = loss.value_grad(extreme, truth)
        curvature = loss.curvature(extreme, truth)
        assert np.isfinite(values).all()
        assert np.isfinite(grad).all()
        assert np.isfinite(curvature).all()
        assert (curvature >= 0).all()
        sums = [grad[a:b].sum() for a, b in zip(truth.offsets[:-1], truth.offsets[1:], strict=True)]
        assert sums == pytest.approx([0.0] * len(sums), abs=1e-9)


def test_queries_without_a_preference_have_no_loss_and_no_gradient() -> None:
    truth = Truth.from_labels([1, 1, 1, 1, 5], [1, 1, 1, 1, 2])
    for measure in ("NDCG@10", "P@2", "ERR", "AP", "RR"):
        values, grad = ExpectedMeasure(measure).value_grad(np.arange(5.0), truth)
        assert values.tolist() == [0, 0]
        assert grad.tolist() == [0] * 5


def test_weights_of_documents_are_refused() -> None:
    with pytest.raises(fp.DataError, match="takes no weights of documents"):
        ExpectedMeasure().value_grad(SCORES, truth_of(LABELS), np.arange(6.0))
