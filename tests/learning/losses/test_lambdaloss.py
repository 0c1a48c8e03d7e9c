"""Pairwise losses weighted by the change of a measure, against all orders of tied documents."""

from __future__ import annotations

from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.truth import Truth
from firstpage.evaluation.measures.registry import measure as parse_measure
from firstpage.learning.losses.lambdaloss import LambdaLoss
from tests.learning.losses.test_plrank import (
    LABELS,
    MEASURES,
    learned_measures,
    measured,
    sample,
    truth_of,
)

SCORES = {
    "no ties": np.array([0.4, -0.3, 0.9, -0.8, 0.1, 0.0]),
    "some ties": np.array([0.5, 0.5, -1.0, 0.5, -1.0, 2.0]),
    "two blocks": np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0]),
    "all tied": np.zeros(6),
}


def tied_orders(scores: np.ndarray) -> np.ndarray:
    """Return all orders of the documents by descending score."""
    blocks = [np.flatnonzero(scores == s) for s in sorted(set(scores), reverse=True)]
    orders = product(*(permutations(block) for block in blocks))
    return np.array([np.concatenate(order) for order in orders])


def exchanged(orders: np.ndarray, u: int, v: int) -> np.ndarray:
    out = orders.copy()
    out[orders == u], out[orders == v] = v, u
    return out


def reference(
    scores: np.ndarray, labels: np.ndarray, weight
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return value, gradient and curvature of the loss with the mean weight over all orders."""
    orders = tied_orders(scores)
    value, grad, curvature = 0.0, np.zeros(len(scores)), np.zeros(len(scores))
    for u, v in combinations(range(len(scores)), 2):
        if labels[u] == labels[v]:
            continue
        better, worse = (u, v) if labels[u] > labels[v] else (v, u)
        w = float(np.mean(weight(orders, u, v)))
        p = 1 / (1 + np.exp(scores[better] - scores[worse]))
        value += w * np.log1p(np.exp(scores[worse] - scores[better]))
        grad[better] -= w * p
        grad[worse] += w * p
        curvature[[u, v]] += w * p * (1 - p)
    return value, grad, curvature


def check(loss: LambdaLoss, scores: np.ndarray, labels: np.ndarray, weight) -> None:
    value, grad, curvature = reference(scores, labels, weight)
    got, gradient = loss.value_grad(scores, truth_of(labels))
    assert got[0] == pytest.approx(value, rel=1e-10, abs=1e-12)
    assert gradient == pytest.approx(grad, rel=1e-9, abs=1e-12)
    assert loss.curvature(scores, truth_of(labels)) == pytest.approx(curvature, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("ties", SCORES)
@pytest.mark.parametrize("measure", [*MEASURES, *learned_measures()], ids=str)
def test_weights_are_mean_changes_of_the_measure_over_all_orders(measure, ties: str) -> None:
    parsed = parse_measure(measure)

    def change(orders: np.ndarray, u: int, v: int) -> np.ndarray:
        return measured(parsed, LABELS, orders) - measured(parsed, LABELS, exchanged(orders, u, v))

    def weight(orders: np.ndarray, u: int, v: int) -> np.ndarray:
        above = np.argmax(orders == u, axis=1) < np.argmax(orders == v, axis=1)
        signed = np.where(above, 1, -1) * change(orders, u, v)
        if len(set(np.sign(signed)) - {0.0}) == 2:  # a table that is not monotone
            return np.abs(np.mean(signed))
        return np.abs(signed)

    check(LambdaLoss(measure), SCORES[ties], LABELS, weight)


@pytest.mark.parametrize("ties", SCORES)
@pytest.mark.parametrize("cutoff", [2, 4, 6])
@pytest.mark.parametrize("variant", ["loss2", "loss2++"])
def test_variants_weight_differences_of_ranks(variant: Any, cutoff: int, ties: str) -> None:
    discount = 1 / np.log2(np.arange(2, 20))
    gains = 2.0**LABELS - 1
    ideal = np.sort(gains)[::-1][:cutoff] @ discount[:cutoff]

    def weight(orders: np.ndarray, u: int, v: int) -> np.ndarray:
        i, j = np.argmax(orders == u, axis=1), np.argmax(orders == v, axis=1)
        away = np.abs(i - j)
        near = np.where(np.minimum(i, j) < cutoff, discount[away - 1] - discount[away], 0.0)
        cut = np.where(np.arange(18) < cutoff, discount, 0.0)
        swap = np.abs(cut[i] - cut[j])
        total = near if variant == "loss2" else swap + 3.0 * near
        return np.abs(gains[u] - gains[v]) * total / ideal

    check(LambdaLoss(f"NDCG@{cutoff}", variant=variant, mu=3.0), SCORES[ties], LABELS, weight)


def test_pairs_below_the_cutoff_have_no_gradient() -> None:
    labels, scores = np.array([0.0, 1, 1, 0, 2]), -np.arange(5.0)
    _, grad = LambdaLoss("P@1").value_grad(scores, truth_of(labels))
    assert grad[3] == 0.0
    assert (grad[[1, 2, 4]] < 0).all()
    by_k = LambdaLoss("DCG@5", k=2).value_grad(scores, truth_of(labels))
    by_cutoff = LambdaLoss("DCG@2").value_grad(scores, truth_of(labels))
    assert by_k[1].tolist() == by_cutoff[1].tolist()


@pytest.mark.parametrize("measure", ["NDCG@10", "ERR", "AP", "RR"])
def test_slices_rows_and_shifts(measure: str) -> None:
    truth, scores = sample()
    scores = np.round(scores)  # with ties
    loss = LambdaLoss(measure)
    values, grad = loss.value_grad(scores, truth)
    target = loss.target(truth)
    for lo, hi in [(0, 2), (2, 5), (5, 6)]:
        a, b = int(truth.offsets[lo]), int(truth.offsets[hi])
        v, g = np.empty(hi - lo), np.empty(b - a)
        target.bind_slice(lo, hi, scores[a:b].copy(), v, g)()
        assert v.tolist() == values[lo:hi].tolist()
        assert g.tolist() == grad[a:b].tolist()
    assert loss.value_grad(scores + 8.0, truth)[1] == pytest.approx(grad)
    order = np.arange(len(scores))
    order[: truth.offsets[1]] = order[: truth.offsets[1]][::-1]
    mixed = Truth(truth.labels[order], truth.offsets, truth.queries)
    assert loss.value_grad(scores[order], mixed)[1] == pytest.approx(grad[order])
    sums = [grad[a:b].sum() for a, b in zip(truth.offsets[:-1], truth.offsets[1:], strict=True)]
    assert sums == pytest.approx([0.0] * len(sums), abs=1e-12)
    for extreme in (
        np.sign(scores) * 1e4,
        np.linspace(-1e6, 1e6, len(scores)),
        scores * 0,
        np.sign(scores) * 1e300,
        np.linspace(-1e300, 1e300, len(scores)),
    ):
        assert all(np.isfinite(part).all() for part in loss.value_grad(extreme, truth))
        assert np.isfinite(loss.curvature(extreme, truth)).all()


def test_queries_without_a_preference_have_no_loss_and_no_gradient() -> None:
    truth = Truth.from_labels([1, 1, 1, 1, 5], [1, 1, 1, 1, 2])
    for variant in ("lambdarank", "loss2", "loss2++"):
        values, grad = LambdaLoss(variant=variant).value_grad(np.arange(5.0), truth)
        assert values.tolist() == [0, 0]
        assert grad.tolist() == [0] * 5


def test_invalid_options_are_refused() -> None:
    with pytest.raises(fp.DataError, match="LambdaLoss cannot maximize Tau; choose"):
        LambdaLoss("Tau")
    with pytest.raises(fp.DataError, match="variant must be"):
        LambdaLoss(variant="loss3")  # type: ignore[arg-type]
    with pytest.raises(fp.DataError, match="needs a measure of gains and discounts"):
        LambdaLoss("ERR", variant="loss2").value_grad(np.zeros(6), truth_of(LABELS))
    with pytest.raises(fp.DataError, match="takes no weights of documents"):
        LambdaLoss().value_grad(np.zeros(6), truth_of(LABELS), np.arange(6.0))
