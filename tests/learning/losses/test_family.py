"""Properties of all losses: reference values, gradients, curvature, extremes, invariances."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.data.truth import Truth
from firstpage.learning.losses.base import Loss, Traits
from firstpage.learning.losses.focused import Focused, Scaled, TopList, focused_net
from firstpage.learning.losses.levels import level_arrays
from firstpage.learning.losses.listwise import (
    Cosine,
    PlackettLuce,
    SoftmaxCrossEntropy,
    SquaredError,
)
from firstpage.learning.losses.pairwise import PairwiseExponential, PairwiseHinge, PairwiseLogistic
from firstpage.learning.losses.permutation import PermutationCrossEntropy
from firstpage.learning.losses.structural import AveragePrecisionHinge, StructuralHinge
from tests.learning.losses import reference as plain

Reference = Callable[..., float]


def _exponential(t: float) -> float:
    return exp(-t)


def _logistic(**options) -> Reference:
    return lambda s, y, w: plain.pairwise(s, y, w, plain.logistic, **options)


def _exp(**options) -> Reference:
    return lambda s, y, w: plain.pairwise(s, y, w, _exponential, **options)


def _hinge(**options) -> Reference:
    return lambda s, y, w: plain.pairwise(s, y, w, lambda t: max(0.0, 1 - t), **options)


def _with(function, **options) -> Reference:
    return lambda s, y, w: function(s, y, w, **options)


FAMILY: list[tuple[Loss, Reference]] = [
    (PairwiseLogistic(), _logistic()),
    (PairwiseLogistic(average=True), _logistic(average=True)),
    (PairwiseLogistic(k=3), _logistic(k=3)),
    (PairwiseLogistic(k=3, pairs="cross"), _logistic(k=3, which="cross")),
    (PairwiseLogistic(pairs="cross", average=True), _logistic(which="cross", average=True)),
    (PairwiseHinge(), _hinge()),
    (PairwiseHinge(average=True), _hinge(average=True)),
    (PairwiseHinge(k=3), _hinge(k=3)),
    (PairwiseHinge(k=3, pairs="cross"), _hinge(k=3, which="cross")),
    (PairwiseHinge(label_margin=True), _hinge(label_margin=True)),
    (
        PairwiseHinge(k=3, average=True, label_margin=True),
        _hinge(k=3, average=True, label_margin=True),
    ),
    (
        PairwiseHinge(k=3, pairs="cross", label_margin=True),
        _hinge(k=3, which="cross", label_margin=True),
    ),
    (PairwiseHinge(pairs="cross", label_margin=True), _hinge(which="cross", label_margin=True)),
    (PairwiseExponential(label_margin=True), _exp(label_margin=True)),
    (
        PairwiseExponential(k=3, pairs="cross", average=True, label_margin=True),
        _exp(k=3, which="cross", average=True, label_margin=True),
    ),
    (PairwiseExponential(), _exp()),
    (PairwiseExponential(k=2, average=True), _exp(k=2, average=True)),
    (PairwiseExponential(k=2, pairs="cross"), _exp(k=2, which="cross")),
    (PlackettLuce(), _with(plain.plackett_luce)),
    (PlackettLuce(average=True), _with(plain.plackett_luce, average=True)),
    (PlackettLuce(k=3), _with(plain.plackett_luce, k=3)),
    (PlackettLuce(k=1), _with(plain.plackett_luce, k=1)),
    (SoftmaxCrossEntropy(), _with(plain.cross_entropy)),
    (SoftmaxCrossEntropy(temperature=3.0), _with(plain.cross_entropy, temperature=3.0)),
    (SoftmaxCrossEntropy(k=3), _with(plain.cross_entropy, k=3)),
    (Cosine(), _with(plain.cosine)),
    (Cosine(k=3), _with(plain.cosine, k=3)),
    (SquaredError(), _with(plain.squared)),
    (SquaredError(k=2, average=False), _with(plain.squared, k=2, average=False)),
]
PERMUTATIONS: list[tuple[Loss, Reference]] = [
    (PermutationCrossEntropy(), _with(plain.permutations)),
    (
        PermutationCrossEntropy(k=2, temperature=2.0),
        _with(plain.permutations, k=2, temperature=2.0),
    ),
]
COMBINED: list[Loss] = [
    TopList(3),
    TopList(6),
    focused_net(3, 0.4),
    Scaled(PlackettLuce(), 0.5),
    AveragePrecisionHinge(),  # against brute force: test_structural
    AveragePrecisionHinge(k=3, cuts=True),
    StructuralHinge(),
    StructuralHinge("Precision@2", "slack"),
]
UNWEIGHTED = (PermutationCrossEntropy, AveragePrecisionHinge, StructuralHinge)
LENGTHS = [6, 1, 0, 5, 2, 6]
NAMES = [str(loss) for loss, _ in FAMILY + PERMUTATIONS]
EVERY = [loss for loss, _ in FAMILY + PERMUTATIONS] + COMBINED


def sample(kind: str, seed: int = 0) -> tuple[Truth, np.ndarray]:
    """Graded, top-k and full-order labels of the same short lists; and scores."""
    rng = np.random.default_rng(seed)
    rows = sum(LENGTHS)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)
    from firstpage.data.ids import Ids

    truth = Truth(
        rng.integers(0, 3, rows).astype(float),
        offsets,
        Ids.from_values([str(q) for q in range(len(LENGTHS))]),
    )
    if kind == "top-k":
        truth = truth.top_k(3)
    if kind == "full order":
        truth = truth.full_order()
    return truth, rng.normal(size=rows) * 2


KINDS = ["graded", "top-k", "full order"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("loss", "reference"), FAMILY + PERMUTATIONS, ids=NAMES)
def test_values_match_the_reference(loss, reference, kind, weighted) -> None:
    truth, scores = sample(kind)
    weights = np.random.default_rng(1).integers(0, 4, len(scores)).astype(float)
    if weighted and isinstance(loss, PermutationCrossEntropy):
        pytest.skip("permutations have no weights")
    values, _ = loss.value_grad(scores, truth, weights if weighted else None)
    w = weights if weighted else np.ones(len(scores))
    for q, (lo, hi) in enumerate(zip(truth.offsets[:-1], truth.offsets[1:], strict=True)):
        expected = reference(scores[lo:hi], truth.labels[lo:hi], w[lo:hi]) if hi > lo else 0.0
        assert values[q] == pytest.approx(expected, rel=1e-9, abs=1e-12), q


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_focused_net_matches_the_reference_on_strict_truths(beta: float) -> None:
    for kind in ("top-k", "full order"):
        truth, scores = sample(kind)
        values, _ = focused_net(3, beta).value_grad(scores, truth)
        for q, (lo, hi) in enumerate(zip(truth.offsets[:-1], truth.offsets[1:], strict=True)):
            expected = 0.0
            if hi > lo:
                expected = plain.focused_net(scores[lo:hi], truth.labels[lo:hi], None, 3, beta)
            assert values[q] == pytest.approx(expected, abs=1e-10), (kind, q)


@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", EVERY, ids=lambda x: str(x)[:60])
def test_gradient_and_curvature_match_finite_differences(
    loss: Loss, kind: str, scale: float
) -> None:
    truth, scores = sample(kind, seed=3)
    scores *= scale
    weights = None
    if not isinstance(loss, UNWEIGHTED):
        weights = np.random.default_rng(5).random(len(scores)) * 2
    _, grad = loss.value_grad(scores, truth, weights)
    curvature = loss.curvature(scores, truth, weights)
    step = 1e-5 * max(scale, 0.1)
    for i in range(len(scores)):
        up, down = scores.copy(), scores.copy()
        up[i] += step
        down[i] -= step
        (high, right), (low, left) = (loss.value_grad(s, truth, weights) for s in (up, down))
        difference = (high - low).sum() / (2 * step)
        assert grad[i] == pytest.approx(
            difference, rel=1e-5, abs=1e-6 * max(1.0, abs(high).max())
        ), i
        second = (right[i] - left[i]) / (2 * step)
        if loss.traits.convex:
            assert curvature[i] == pytest.approx(
                second, rel=1e-4, abs=1e-5 * max(1.0, abs(high).max())
            )
        else:
            assert curvature[i] >= 0


BOUNDED = [
    loss
    for loss in EVERY
    if loss.traits.smooth and loss.traits.convex and not isinstance(loss, PairwiseExponential)
]


@pytest.mark.parametrize("scale", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", BOUNDED, ids=str)
def test_the_hessian_scale_bounds_the_norm_of_the_hessian(loss, kind, scale) -> None:
    truth, scores = sample(kind, seed=4)
    scores *= scale
    weights = None
    if not isinstance(loss, UNWEIGHTED):
        weights = np.random.default_rng(6).random(len(scores)) * 2
    step = 1e-5
    hessian = np.empty((len(scores), len(scores)))
    for i, moved in enumerate(np.eye(len(scores)) * step):
        right, left = (loss.value_grad(scores + d, truth, weights)[1] for d in (moved, -moved))
        hessian[i] = (right - left) / (2 * step)
    bounds = loss.target(truth, weights).hessian_scale()
    for query, (lo, hi) in enumerate(zip(truth.offsets[:-1], truth.offsets[1:], strict=True)):
        if hi > lo:
            norm = np.linalg.norm(hessian[lo:hi, lo:hi], 2)
            assert norm <= bounds[query] * (1 + 1e-6) + 1e-8


@pytest.mark.parametrize("loss", EVERY, ids=lambda x: str(x)[:60])
def test_huge_scores_have_finite_values_and_gradients(loss: Loss) -> None:
    truth, scores = sample("graded")
    for extreme in (np.sign(scores) * 1e4, np.linspace(-1e4, 1e4, len(scores)), scores * 0):
        values, grad = loss.value_grad(extreme, truth)
        assert np.isfinite(values).all()
        assert np.isfinite(grad).all()
        assert np.isfinite(loss.curvature(extreme, truth)).all()


def test_huge_scores_have_the_values_of_the_limit() -> None:
    truth = Truth.from_labels([2, 1, 0], [1, 1, 1])
    wrong = np.array([-1e4, 0.0, 1e4])
    assert PlackettLuce().value_grad(wrong, truth)[0][0] == pytest.approx(2e4 + 1e4)
    assert PairwiseLogistic().value_grad(wrong, truth)[0][0] == pytest.approx(2e4 + 1e4 + 1e4)
    assert PlackettLuce().value_grad(-wrong, truth)[0][0] == pytest.approx(0.0, abs=1e-12)
    exact = PermutationCrossEntropy().value_grad(wrong, truth)[0][0]
    expected = 0.0
    for order in permutations(
        range(3)
    ):  # of scores far apart, each rank costs the difference to the best remaining
        z = wrong[list(order)]
        cost = sum(z[i:].max() - z[i] for i in range(3))
        expected += np.exp(plain.luce(truth.labels, order)) * cost
    assert exact == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loss", EVERY, ids=lambda x: str(x)[:60])
def test_a_constant_added_to_all_scores_changes_nothing(loss: Loss) -> None:
    truth, scores = sample("graded")
    values, grad = loss.value_grad(scores, truth)
    moved, _ = loss.value_grad(scores + 17.0, truth)
    if not isinstance(loss, (Cosine, SquaredError)):
        assert moved == pytest.approx(values, rel=1e-9, abs=1e-9)
        sums = [grad[a:b].sum() for a, b in zip(truth.offsets[:-1], truth.offsets[1:], strict=True)]
        assert sums == pytest.approx([0.0] * len(sums), abs=1e-9)
    else:
        assert not np.allclose(moved, values)


@pytest.mark.parametrize("loss", EVERY, ids=lambda x: str(x)[:60])
def test_queries_without_a_preference_have_no_loss_and_no_gradient(loss: Loss) -> None:
    numbers = (Cosine, SquaredError, SoftmaxCrossEntropy, PermutationCrossEntropy)
    if isinstance(loss, numbers):
        pytest.skip("compares numbers, not orders: the target of equal labels is equal scores")
    truth = Truth.from_labels([1, 1, 1, 1, 5], [1, 1, 1, 1, 2])
    values, grad = loss.value_grad(np.array([3.0, -1.0, 0.5, 2.0, 9.0]), truth)
    assert values.tolist() == [0, 0]
    assert grad.tolist() == [0] * 5


@given(data=st.data())
def test_the_order_of_the_rows_does_not_matter(data) -> None:
    truth, scores = sample("graded", seed=7)
    lo, hi = int(truth.offsets[0]), int(truth.offsets[1])
    order = np.arange(len(scores))
    order[lo:hi] = data.draw(st.permutations(list(range(lo, hi))))
    mixed = Truth(truth.labels[order], truth.offsets, truth.queries)
    for loss in EVERY:
        values, grad = loss.value_grad(scores, truth)
        others, gradient = loss.value_grad(scores[order], mixed)
        assert others == pytest.approx(values, rel=1e-9, abs=1e-12)
        assert gradient == pytest.approx(grad[order], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "loss",
    [x for x in EVERY if not isinstance(x, UNWEIGHTED)],
    ids=lambda x: str(x)[:60],
)
def test_a_weight_counts_as_a_number_of_copies(loss: Loss) -> None:
    """On graded labels, where copies are ties."""
    y = np.array([2.0, 2, 1, 0, 0])
    weights = np.array([1, 2, 0, 3, 1])
    scores = np.array([0.3, -1.0, 5.0, 0.7, 0.1])
    value, grad = loss.value_grad(scores, Truth.from_labels(y, [1] * 5), weights.astype(float))
    rows = np.repeat(np.arange(5), weights)
    copied, gradient = loss.value_grad(scores[rows], Truth.from_labels(y[rows], [1] * len(rows)))
    assert value == pytest.approx(copied)
    assert [gradient[rows == i].sum() for i in range(5)] == pytest.approx(grad.tolist())


def test_slices_of_queries_are_evaluated_as_in_the_full_data() -> None:
    truth, scores = sample("graded")
    for loss in EVERY:
        values, grad = loss.value_grad(scores, truth)
        target = loss.target(truth)
        for lo, hi in [(0, 2), (2, 5), (5, 6)]:
            a, b = int(truth.offsets[lo]), int(truth.offsets[hi])
            v, g = np.empty(hi - lo), np.empty(b - a)
            target.bind_slice(lo, hi, scores[a:b].copy(), v, g)()
            assert v.tolist() == values[lo:hi].tolist()
            assert g.tolist() == grad[a:b].tolist()


def test_a_sum_has_the_traits_that_all_its_losses_have() -> None:
    smooth, hinge, cosine = PlackettLuce(3), PairwiseHinge(), Cosine()
    assert Focused(smooth, smooth).traits == Traits()
    assert Focused(smooth, Scaled(hinge, 0.5)).traits == Traits(smooth=False)
    assert Focused(cosine, smooth).traits == Traits(convex=False)
    assert Scaled(SquaredError(), 2.0).traits == SquaredError().traits == Traits(quadratic=True)


def test_focused_is_the_weighted_sum_of_two_losses() -> None:
    truth, scores = sample("graded")
    listwise, pairwise = PlackettLuce(3), PairwiseExponential()
    mixed, gradient = Focused(listwise, pairwise, 0.25).value_grad(scores, truth)
    (a, da), (b, db) = listwise.value_grad(scores, truth), pairwise.value_grad(scores, truth)
    assert mixed == pytest.approx(0.25 * a + 0.75 * b)
    assert gradient == pytest.approx(0.25 * da + 0.75 * db)


def test_interpreted_kernels_match_the_compiled_ones(interpreted) -> None:
    """`bind` always compiles; the compiled kernel agrees with its Python function."""
    from firstpage.core.kernels.losses import listwise

    truth, scores = sample("graded")
    target: Any = PlackettLuce(3).target(truth)
    v, g = np.empty(len(truth)), np.empty(len(scores))
    kernel: Any = listwise.plackett_luce
    kernel.python(
        scores=scores,
        placed=target.upper,
        mass=target.mass,
        values=v,
        grad=g,
        **level_arrays(target.levels, 0, len(truth)),
        **target._workspace(0, len(truth)),
    )
    expected = PlackettLuce(3).value_grad(scores, truth)
    assert v == pytest.approx(expected[0])
    assert g == pytest.approx(expected[1])
