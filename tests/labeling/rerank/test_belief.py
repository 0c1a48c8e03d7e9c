"""The belief from choices: its mode, its evidence, the order effect, and calibration."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from firstpage.labeling.rerank.belief import ChoiceBelief, ListChoice


def log_posterior(belief: ChoiceBelief, at: np.ndarray, slope: float, sd: float) -> float:
    """The definition, choice by choice."""
    center = np.append(slope * belief._normal_scores, 0.0)
    scale = np.append(np.full(len(at) - 1, sd), 1.0)
    value = float(np.sum(scipy.stats.norm.logpdf(at, center, scale)))
    for choice in belief.choices:
        shown = list(choice.shown)
        logit = {
            d: at[d] + at[-1] * (0.5 - place / (len(shown) - 1)) for place, d in enumerate(shown)
        }
        for best in choice.ranking[: len(shown) - 1]:
            value += logit[best] - scipy.special.logsumexp([logit[d] for d in shown])
            shown.remove(best)
    return value


@pytest.fixture
def belief() -> ChoiceBelief:
    belief = ChoiceBelief([3.0, 2.0, 1.0, 0.5])
    for choice in (
        ListChoice((0, 3), (3,)),
        ListChoice((2, 1, 0), (1,)),
        ListChoice((1, 3, 0, 2), (3, 1, 0, 2)),
    ):
        belief.add(choice)
    return belief


def test_the_mode_is_that_of_the_posterior(belief: ChoiceBelief) -> None:
    slope, sd = belief._prior

    def loss(at: np.ndarray) -> float:
        return -log_posterior(belief, at, slope, sd)

    best = scipy.optimize.minimize(loss, np.zeros(5), tol=1e-10)
    assert np.allclose(belief._mode, best.x, atol=2e-3)
    step = 1e-4
    for row in range(5):  # curvature by differences
        e = np.eye(5)[row] * step
        values = [log_posterior(belief, belief._mode + s * e, slope, sd) for s in (-1, 0, 1)]
        curvature = -(values[0] - 2 * values[1] + values[2]) / step**2
        assert belief._hessian[row, row] == pytest.approx(curvature, rel=1e-3)


def test_the_evidence_is_that_of_laplace(belief: ChoiceBelief) -> None:
    difference = belief._fit((1.0, 3.0)) - belief._fit((0.5, 1.5))
    expected = 0.0
    for sign, prior in ((1, (1.0, 3.0)), (-1, (0.5, 1.5))):
        belief._fit(prior)
        logdet = np.linalg.slogdet(belief._hessian)[1]
        expected += sign * (log_posterior(belief, belief._mode, *prior) - logdet / 2)
    assert difference == pytest.approx(expected, abs=1e-3)


def test_an_assessor_who_prefers_the_first_is_recognized() -> None:
    belief = ChoiceBelief(np.zeros(6))
    for a in range(6):
        for b in range(6):
            if a != b:
                belief.add(ListChoice((a, b), (a,)))
    assert belief.position_bias > 1.0
    assert np.abs(belief.utilities().mean).max() < 0.1


def test_scores_decide_before_any_answer() -> None:
    mean = ChoiceBelief([0.1, 9.0, 5.0]).utilities().mean
    assert list(np.argsort(-mean)) == [1, 2, 0]
    same = ChoiceBelief([0.1, 9000.0, 5.0]).utilities().mean
    assert np.allclose(mean, same)
