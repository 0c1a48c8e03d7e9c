"""Structural hinges against all rankings of over a thousand short lists each."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from math import log2
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.data.truth import Truth
from firstpage.learning.losses.base import Loss
from firstpage.learning.losses.pairwise import PairwiseHinge
from firstpage.learning.losses.structural import AveragePrecisionHinge, StructuralHinge
from tests.narrow import present

LISTS = 1500  # of which at least 1,000 are informative


def lists(seed: int, longest: int = 6, labels=lambda rng, n: rng.integers(0, 3, n)):
    """Yield random short lists with scores of several magnitudes, some of them tied."""
    rng = np.random.default_rng(seed)
    for number in range(LISTS):
        n = int(rng.integers(3, longest + 1)) if number > 50 else number % 3 + 1
        scores = rng.normal(size=n) * rng.choice([0.1, 1.0, 5.0, 50.0])
        if rng.random() < 0.2:
            scores = np.round(scores)
        yield labels(rng, n).astype(float), scores


def values(loss: Loss, cases) -> np.ndarray:
    """Return the loss of each (labels, scores), in one call."""
    of_query = np.repeat(np.arange(len(cases)), [len(y) for y, _ in cases])
    labels, scores = (np.concatenate([case[side] for case in cases]) for side in (0, 1))
    return loss.value_grad(scores, Truth.from_labels(labels, of_query))[0]


def by_depth(cases) -> dict[int, list]:
    """Group the lists by cutoff: from 1 to one less than the length, in turn."""
    groups: dict[int, list] = {}
    for number, (y, s) in enumerate(cases):
        groups.setdefault(number % max(len(y) - 1, 1) + 1, []).append((y, s))
    return groups


@cache
def orders(n: int) -> np.ndarray:
    """Return all rankings of n documents, one row per ranking."""
    return np.array(list(permutations(range(n))))


def average_precision(relevant) -> np.ndarray:
    """Return the average precision of rankings along the last axis."""
    relevant = np.asarray(relevant)
    precision = np.cumsum(relevant, axis=-1) / np.arange(1, relevant.shape[-1] + 1)
    return (relevant * precision).sum(axis=-1) / relevant.sum(axis=-1)


def ap_hinge(relevant, s) -> float:
    """Return the hinge by its definition, over all rankings."""
    rel, non = np.flatnonzero(relevant), np.flatnonzero(~np.asarray(relevant))
    if not len(rel) or not len(non):
        return 0.0
    every = orders(len(s))
    rank = np.argsort(every, axis=1)
    above = np.where(rank[:, rel, None] < rank[:, None, non], 1.0, -1.0)
    margins = s[rel][:, None] - s[non]
    psi = (above * margins).mean(axis=(1, 2))
    delta = 1 - average_precision(np.asarray(relevant)[every])
    return float((delta + psi - margins.mean()).max())


def test_average_precision_hinge_is_the_maximum_over_all_rankings() -> None:
    cases = list(lists(0))
    expected = [ap_hinge(y > 0, s) for y, s in cases]
    assert values(AveragePrecisionHinge(), cases) == pytest.approx(expected, abs=1e-9)


def test_cuts_are_the_mean_over_the_boundaries_of_the_top() -> None:
    for y, s in lists(1, labels=lambda rng, n: rng.permutation(n)):
        k = min(4, len(y))
        value, grad = AveragePrecisionHinge(k=4, cuts=True).value_grad(s, Truth.from_labels(y))
        top = np.argsort(-y)[:k]
        expected = [ap_hinge(np.arange(k) < c, s[top]) for c in range(1, k)]
        if len(y) > 4:
            assert (grad[y < len(y) - 4] == 0).all()
        assert value[0] == pytest.approx(np.mean(expected) if expected else 0.0, abs=1e-9)


def gains(y, kind: str, depth: int):
    terms = [1 / log2(p + 2) if kind == "NDCG" else 1 / depth for p in range(len(y))]
    a = np.array([x if p < depth else 0.0 for p, x in enumerate(terms)])
    g = 2.0**y - 1 if kind == "NDCG" else (y > 0).astype(float)
    ideal = (a * np.sort(g)[::-1]).sum()
    return a, g / ideal if ideal else g


def rankings(y, s, kind, depth):
    """Return Delta and score of every ranking with a loss, and the greatest score of one without."""
    a, b = gains(y, kind, depth)
    every = orders(len(y))
    delta, score = 1 - b[every] @ a, s[every] @ a
    loss = delta > 1e-12
    return delta[loss], score[loss], float(score[~loss].max(initial=-np.inf))


@pytest.mark.parametrize("kind", ["NDCG", "Precision"])
def test_margin_rescaling_is_the_maximum_over_all_rankings_with_a_loss(kind: str) -> None:
    transposed, with_loss = 0, 0
    for depth, cases in by_depth(lists(2)).items():
        for (y, s), value in zip(
            cases, values(StructuralHinge(f"{kind}@{depth}"), cases), strict=True
        ):
            delta, score, true_score = rankings(y, s, kind, depth)
            if not (y > 0).any() or not len(delta):
                assert value == 0.0
                continue
            with_loss += 1
            highest = float((delta + score).max())
            transposed += highest < true_score
            assert value == pytest.approx(max(0.0, highest - true_score), abs=1e-9)
    assert with_loss > 1000
    # The highest ranking had no loss, and the most violated one is a transposition away.
    assert transposed > 100


@pytest.mark.parametrize("kind", ["NDCG", "Precision"])
def test_slack_rescaling_is_exact_and_bounded(kind) -> None:
    with_loss = 0
    for depth, cases in by_depth(lists(3)).items():
        loss = StructuralHinge(f"{kind}@{depth}", "slack")
        of_query = np.repeat(np.arange(len(cases)), [len(y) for y, _ in cases])
        labels, scores = (np.concatenate([case[side] for case in cases]) for side in (0, 1))
        target = loss.target(Truth.from_labels(labels, of_query))
        computed, grad = np.empty(len(cases)), np.empty(len(scores))
        target.bind_slice(0, len(cases), scores, computed, grad)()
        for (y, s), value, bound in zip(cases, computed, present(target.upper_bounds), strict=True):
            delta, score, true_score = rankings(y, s, kind, depth)
            if not (y > 0).any() or not len(delta):
                assert value == 0.0
                continue
            with_loss += 1
            exact = max(0.0, float((delta * (1 + score - true_score)).max()))
            assert exact * (1 - 2e-6) - 1e-9 <= value <= exact + 1e-9
            assert (value > 0) == (exact > 1e-12)
            assert exact - 1e-9 <= bound <= exact * (1 + 2e-6) + 1e-9
    assert with_loss > 1000


def test_slack_rescaling_is_exact_at_trained_weights() -> None:
    """Small problems whose weights make rankings similar that no weight of the loss finds."""
    for seed in range(4):
        data = fp.Synthetic(20, 6, features=5, grades=3, noise=0.5, seed=seed).dataset()
        scores = fp.TopSlack(C=1e4, delta="NDCG").fit(data).predict(data)
        values, _ = StructuralHinge("NDCG", "slack").value_grad(scores, data.truth)
        for q in range(len(data)):
            rows = slice(data.offsets[q], data.offsets[q + 1])
            delta, score, true_score = rankings(data.y[rows], scores[rows], "NDCG", 6)
            exact = float((delta * (1 + score - true_score)).max(initial=0.0))
            if (data.y[rows] > 0).any():
                assert values[q] == pytest.approx(exact, rel=2e-6, abs=1e-9)


def test_the_reference_chooses_the_true_ranking_of_ties() -> None:
    y, s = np.array([1.0, 1, 0, 0]), np.array([0.0, 2.0, 1.0, 0.5])
    a = 1 / np.log2(np.arange(2, 6))
    true_scores: dict[Any, float] = {
        "resort": a[0] * 2 + a[1] * 0 + a[2] * 1 + a[3] * 0.5,
        "fixed": a[0] * 0 + a[1] * 2 + a[2] * 1 + a[3] * 0.5,
        "mean": (a[0] + a[1]) / 2 * 2 + (a[2] + a[3]) / 2 * 1.5,
    }
    delta, score, _ = rankings(y, s, "NDCG", 4)
    for reference, true_score in true_scores.items():
        value, _ = StructuralHinge(reference=reference).value_grad(s, Truth.from_labels(y))
        assert value[0] == pytest.approx(float((delta + score).max()) - true_score)


def test_a_frozen_true_ranking_does_not_change() -> None:
    y, s = np.array([1.0, 1, 0]), np.array([0.0, 2.0, 1.0])
    target = StructuralHinge().target(Truth.from_labels(y))
    value, grad, scores = np.empty(1), np.empty(3), s.copy()
    run = target.bind_slice(0, 1, scores, value, grad)
    target.freeze(s)
    run()
    first = value[0]
    scores[:] = [2.0, 0.0, 1.0]
    run()
    fixed = StructuralHinge().value_grad(scores, Truth.from_labels(y))[0][0]
    assert value[0] > fixed  # the frozen ranking has the second document first
    target.freeze(scores)
    run()
    assert value[0] == pytest.approx(fixed) == pytest.approx(first)


SUBGRADIENTS: list[Loss] = [
    PairwiseHinge(),
    PairwiseHinge(k=3, average=True),
    AveragePrecisionHinge(),
    AveragePrecisionHinge(k=4),
    AveragePrecisionHinge(k=4, cuts=True),
    StructuralHinge(reference="mean"),
    StructuralHinge("Precision@2", reference="fixed"),
    StructuralHinge("NDCG@3", "slack", reference="mean"),
    StructuralHinge("Precision@2", "slack", reference="fixed"),
    StructuralHinge(k=4, within=True, reference="mean"),
]


@pytest.mark.parametrize("loss", SUBGRADIENTS, ids=str)
def test_gradients_are_subgradients(loss: Loss) -> None:
    """The loss lies above each of its tangents everywhere, which cutting planes rely on.

    The value computed by slack rescaling may be too small, so its upper bound is compared.
    """
    rng = np.random.default_rng(5)
    for _ in range(200):
        y = rng.integers(0, 3, 8).astype(float)
        first, second = rng.normal(size=8) * 2, rng.normal(size=8) * 2
        value, gradient = loss.value_grad(first, Truth.from_labels(y))
        target = loss.target(Truth.from_labels(y))
        other, ignored = np.empty(1), np.empty(8)
        target.bind_slice(0, 1, second, other, ignored)()
        above = other if target.upper_bounds is None else target.upper_bounds
        assert above[0] >= value[0] + gradient @ (second - first) - 1e-9


@pytest.mark.parametrize("n", [300, 1000])
@pytest.mark.parametrize("kind", ["full", "graded", "top"])
def test_long_lists_are_sorted_with_the_same_result(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    y = rng.permutation(n).astype(float)
    y = {"full": y, "graded": y % 4, "top": np.maximum(y - n + 151, 0)}[kind]
    s = rng.normal(size=n) * 3 + 1e3
    s[::7] = np.round(s[::7])
    weights = rng.integers(0, 3, n).astype(float)
    for document_weights in (None, weights):
        w = np.ones(n) if document_weights is None else document_weights
        value, grad = PairwiseHinge().value_grad(s, Truth.from_labels(y), document_weights)
        t = 1 - s[:, None] + s[None, :]
        pair_weight = w[:, None] * w[None, :] * (y[:, None] > y[None, :])
        assert value[0] == pytest.approx((pair_weight * np.maximum(t, 0)).sum(), rel=1e-11)
        active = pair_weight * (t > 0)
        assert grad == pytest.approx(active.sum(0) - active.sum(1), abs=1e-9)


def test_document_weights_and_wrong_parameters_are_refused() -> None:
    truth = Truth.from_labels([1, 0, 0])
    for loss in (AveragePrecisionHinge(), StructuralHinge()):
        with pytest.raises(DataError, match="weights of documents"):
            loss.target(truth, np.array([1.0, 2.0, 1.0]))
        loss.target(truth, np.ones(3))
    for wrong in (
        {"delta": "ERR"},
        {"delta": "NDCG@0"},
        {"scaling": "both"},
        {"reference": "best"},
        {"within": True},
    ):
        with pytest.raises(DataError, match=r"must be|needs k"):
            StructuralHinge(**wrong)
    with pytest.raises(DataError, match="k is missing"):
        AveragePrecisionHinge(cuts=True)
