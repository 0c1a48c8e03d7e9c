"""The loss of YetiRank: neighbors in random rankings."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest

import firstpage as fp
from firstpage.data import Truth
from firstpage.learning.losses.neighbors import SampledNeighbors
from firstpage.learning.rankers.trees.growth import Gradients

LABELS, SCORES = np.array([2.0, 0.0, 1.0, 0.0, 1.0]), np.array([0.3, 1.0, -0.5, 0.2, 0.9])


def truth_of(labels: np.ndarray) -> Truth:
    return Truth.from_labels(labels, [1] * len(labels))


def sample() -> tuple[Truth, np.ndarray]:
    rng = np.random.default_rng(3)
    return Truth.from_labels(rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)), rng.normal(
        size=60
    )


def expected(k: int | None, decay: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Return value, gradient and curvature by enumeration of all rankings."""
    value, gradient, curvature = 0.0, np.zeros(5), np.zeros(5)
    for order in permutations(range(5)):
        e = np.exp(SCORES[list(order)])
        chance = np.prod(e / np.cumsum(e[::-1])[::-1])
        for x, pair in enumerate(pairwise(order)):
            v, u = sorted(pair, key=lambda document: LABELS[document])
            if LABELS[u] == LABELS[v] or (k is not None and x >= k):
                continue
            weight = chance * decay**x * (LABELS[u] - LABELS[v])
            p = 1 / (1 + np.exp(SCORES[u] - SCORES[v]))
            value -= weight * np.log(1 - p)
            gradient[u] -= weight * p
            gradient[v] += weight * p
            curvature[[u, v]] += weight * p * (1 - p)
    return value, gradient, curvature


@pytest.mark.parametrize(("k", "decay"), [(None, 0.85), (2, 0.85), (None, 1.0), (1, 0.3)])
def test_estimates_have_no_bias(k: int | None, decay: float) -> None:
    loss = SampledNeighbors(k=k, decay=decay, samples=100)
    grad, curvature, values = np.empty(5), np.empty(5), np.empty(1)
    run = loss.target(truth_of(LABELS)).bind_derivatives(0, 1, SCORES, values, grad, curvature)
    drawn = []
    for _ in range(400):
        run()
        drawn.append(np.concatenate([values, grad, curvature]))
    value, gradient, second = expected(k, decay)
    error = np.std(drawn, axis=0, ddof=1) / 20
    difference = np.abs(np.mean(drawn, axis=0) - [value, *gradient, *second])
    assert (difference <= 4.5 * error + 1e-12).all()
    assert 0 < error.max() < 0.01


def test_gradient_and_curvature_are_derivatives_for_fixed_rankings() -> None:
    """Two documents are always neighbors, so that their ranking does not matter."""
    loss, truth, step = SampledNeighbors(), truth_of(np.array([0.0, 3.0])), 1e-5
    for gap in (-30.0, -2.0, 0.0, 0.7, 30.0):
        scores = np.array([0.0, gap])
        up, down, middle = (
            loss.value_grad(np.array([0.0, gap + h]), truth) for h in (step, -step, 0.0)
        )
        slope = (up[0] - down[0])[0] / (2 * step)
        assert middle[1].tolist() == [-middle[1][1], middle[1][1]]
        assert middle[1][1] == pytest.approx(slope, rel=1e-5, abs=1e-9)
        second = (up[1] - down[1])[1] / (2 * step)
        assert loss.curvature(scores, truth) == pytest.approx([second] * 2, rel=1e-5, abs=1e-9)


def test_slices_draw_the_rankings_of_the_full_data() -> None:
    truth, scores = sample()
    loss = SampledNeighbors(samples=2, seed=5)
    values, grad = np.empty(6), np.empty(60)
    whole = loss.target(truth).bind_slice(0, 6, scores, values, grad)
    part = np.empty(3), np.empty(30)
    some = loss.target(truth).bind_slice(2, 5, scores[20:50].copy(), *part)
    before = None
    for _ in range(3):
        whole()
        some()
        assert part[0].tolist() == values[2:5].tolist()
        assert part[1].tolist() == grad[20:50].tolist()
        assert grad.tolist() != before  # other rankings in every evaluation
        before = grad.tolist()
    other = SampledNeighbors(samples=2, seed=6).value_grad(scores, truth)[1]
    assert other.tolist() != loss.value_grad(scores, truth)[1].tolist()


def test_equal_labels_have_no_loss_and_huge_scores_a_finite_one() -> None:
    values, grad = SampledNeighbors().value_grad(np.arange(5.0), truth_of(np.ones(5)))
    assert values.tolist() == [0]
    assert grad.tolist() == [0] * 5
    truth, scores = sample()
    values, grad = SampledNeighbors().value_grad(np.sign(scores) * 1e300, truth)
    assert np.isfinite(values).all()
    assert np.abs(grad).max() <= 4


@pytest.mark.parametrize("name", ["SampledNeighbors", "ExpectedMeasure", "LambdaLoss", "ListNet"])
def test_trees_get_the_curvature_of_the_rankings_of_the_gradient(name: str) -> None:
    truth, scores = sample()
    loss = fp.extend.loss("SoftmaxCrossEntropy" if name == "ListNet" else name)
    gradient, curvature = Gradients(loss, truth)(scores)
    assert gradient.tolist() == loss.value_grad(scores, truth)[1].tolist()
    bound = np.maximum(loss.curvature(scores, truth), np.abs(gradient))
    assert curvature.tolist() == bound.tolist()


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(fp.DataError, match="takes no weights of documents"):
        SampledNeighbors().value_grad(SCORES, truth_of(LABELS), np.arange(5.0))
    for text, message in (
        ("SampledNeighbors(samples=0)", "samples of SampledNeighbors must be an integer"),
        ("SampledNeighbors(decay=0)", "decay of SampledNeighbors must be a number above 0"),
        ("SampledNeighbors(decay=1.5)", r"decay must be at most 1; got 1\.5"),
    ):
        with pytest.raises(fp.FirstpageError, match=message):
            fp.extend.loss(text)
    for ranker, message in (
        (fp.YetiRank(decay=2), "decay must be at most 1"),
        (fp.YetiRank(decay=-1), "decay of YetiRank must be a number above 0"),
        (fp.YetiRank(samples=0), "samples of YetiRank must be an integer"),
    ):
        with pytest.raises(fp.FirstpageError, match=message):
            ranker.fit([[1.0], [2.0]], [0, 1], qid=[1, 1])
