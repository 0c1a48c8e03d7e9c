"""The losses of votes on pairs, against plain sums, finite differences and the losses of labels."""

from __future__ import annotations

from math import exp, log1p
from typing import Any

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.data.ids import Ids
from firstpage.data.preferences.pairs import PairTruth, RowPairs
from firstpage.data.truth import Truth
from firstpage.learning.losses.pairs import VotedHinge, VotedLogistic
from firstpage.learning.losses.pairwise import PairwiseHinge, PairwiseLogistic

LENGTHS = [6, 1, 0, 5, 2, 6]
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)
LOSSES = [VotedLogistic(), VotedLogistic(average=True), VotedHinge(), VotedHinge(average=True)]


def truth_of(labels: np.ndarray, votes: list[tuple[int, int, float, bool]]) -> PairTruth:
    rows, others, weight, tied = (np.array(column) for column in zip(*votes, strict=True))
    pairs = RowPairs.from_votes(OFFSETS, rows, others, weight.astype(float), tied.astype(bool))
    names = Ids.from_values([str(q) for q in range(len(LENGTHS))])
    return PairTruth(labels, OFFSETS, names, pairs)


def sample(seed: int = 0) -> tuple[list[tuple[int, int, float, bool]], PairTruth, np.ndarray]:
    """Votes that are incomplete, repeated, contradictory and tied; and scores."""
    rng = np.random.default_rng(seed)
    votes = []
    for lo, length in zip(OFFSETS[:-1].tolist(), LENGTHS, strict=True):
        for _ in range(3 * length if length > 1 else 0):
            u, v = rng.choice(length, 2, replace=False) + lo
            weight = float(rng.choice([0.0, 0.5, 1.0, 3.0]))
            votes.append((int(u), int(v), weight, bool(rng.random() < 0.2)))
    return votes, truth_of(np.zeros(int(OFFSETS[-1])), votes), rng.normal(size=int(OFFSETS[-1]))


def plain(loss: Any, votes: list, scores: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The sum over votes, one at a time."""
    values, totals = np.zeros(len(LENGTHS)), np.zeros(len(LENGTHS))
    for u, v, weight, tied in votes:
        query = int(np.searchsorted(OFFSETS, u, side="right")) - 1
        w = weight if weights is None else weight * weights[u] * weights[v]
        for better, worse, part in ((u, v, 0.5), (v, u, 0.5)) if tied else ((u, v, 1.0),):
            t = scores[better] - scores[worse]
            of_vote = log1p(exp(-t)) if isinstance(loss, VotedLogistic) else max(0.0, 1 - t)
            values[query] += part * w * of_vote
        totals[query] += w
    return values / np.where(totals > 0, totals, 1) if loss.average else values


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_values_match_a_plain_sum_over_votes(loss, weighted) -> None:
    votes, truth, scores = sample()
    counts = np.random.default_rng(1).integers(0, 3, len(scores)).astype(float)
    weights = counts if weighted else None
    values, _ = loss.value_grad(scores, truth, weights)
    assert np.allclose(values, plain(loss, votes, scores, weights), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_gradients_and_curvature_match_finite_differences(loss) -> None:
    _, truth, scores = sample(2)
    _, grad = loss.value_grad(scores, truth)
    step = 1e-5
    for i in range(len(scores)):
        shift = np.eye(len(scores))[i] * step
        up, down = (loss.value_grad(scores + sign * shift, truth) for sign in (1, -1))
        assert (up[0].sum() - down[0].sum()) / (2 * step) == pytest.approx(grad[i], abs=1e-6)
        if loss.traits.smooth:
            second = (up[1][i] - down[1][i]) / (2 * step)
            assert second == pytest.approx(loss.curvature(scores, truth)[i], abs=1e-6)


@pytest.mark.parametrize(
    ("voted", "labeled"),
    [
        (VotedLogistic(), PairwiseLogistic()),
        (VotedLogistic(average=True), PairwiseLogistic(average=True)),
        (VotedHinge(), PairwiseHinge()),
        (VotedHinge(average=True), PairwiseHinge(average=True)),
    ],
    ids=str,
)
def test_all_pairs_of_labels_are_the_loss_of_the_labels(voted, labeled) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 4, int(OFFSETS[-1])).astype(float)
    names = Ids.from_values([str(q) for q in range(len(LENGTHS))])
    truth = Truth(labels, OFFSETS, names)
    better, worse = truth.pairs()
    votes = [(int(u), int(v), 1.0, False) for u, v in zip(better, worse, strict=True)]
    scores = rng.normal(size=len(labels))
    for actual, expected in zip(
        voted.value_grad(scores, truth_of(labels, votes)),
        labeled.value_grad(scores, truth),
        strict=True,
    ):
        assert np.allclose(actual, expected, rtol=1e-12, atol=1e-12)
    assert np.allclose(
        voted.target(truth_of(labels, votes)).hessian_scale(), labeled.target(truth).hessian_scale()
    )


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_slices_of_queries_are_independent(loss) -> None:
    _, truth, scores = sample(4)
    values, grad = loss.value_grad(scores, truth)
    lo, hi = 3, 6
    rows = slice(int(OFFSETS[lo]), int(OFFSETS[hi]))
    part, part_grad = np.empty(hi - lo), np.empty(rows.stop - rows.start)
    loss.target(truth).bind_slice(lo, hi, scores[rows].copy(), part, part_grad)()
    assert (part == values[lo:hi]).all()
    assert (part_grad == grad[rows]).all()


def test_huge_scores_have_finite_losses() -> None:
    _, truth, scores = sample(5)
    for loss in LOSSES:
        for part in loss.value_grad(scores * 1e150, truth):
            assert np.isfinite(part).all()


def test_labels_alone_are_refused() -> None:
    with pytest.raises(DataError, match="reads votes on pairs"):
        VotedLogistic().target(Truth.from_labels([1, 0]))
