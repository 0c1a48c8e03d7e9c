"""Trust bias: slopes and offsets where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from tests.clicks.position_bias.test_propensities import simulated

TRUE = fp.clicks.SimulatedUsers.named("trust")
BETA = (TRUE.click[:, 0] * TRUE.examination)[:10]
ALPHA = (TRUE.click[:, -1] * TRUE.examination)[:10] - BETA


def grades(seed: int) -> dict[str, dict[str, int]]:
    """Return the grades of `simulated`."""
    drawn = np.random.default_rng(seed).choice(5, (60, 14), p=[0.4, 0.2, 0.2, 0.1, 0.1])
    drawn[0, 0] = 4
    return {f"q{q}": {f"d{q}-{i}": int(drawn[q, i]) for i in range(14)} for q in range(60)}


def test_grades_give_slope_and_offset() -> None:
    hits = []
    for seed in range(12):
        sessions = simulated(seed=seed, n_sessions=4000, model="trust", noise=2.0)
        bias = fp.clicks.trust_bias(sessions, grades(seed))
        hits += [np.array(bias.alpha_low) <= ALPHA, np.array(bias.alpha_high) >= ALPHA]
        hits += [np.array(bias.beta_low) <= BETA, np.array(bias.beta_high) >= BETA]
        np.testing.assert_allclose(bias.beta, BETA, atol=0.06)
    assert 0.95 < np.mean(hits) < 1.0  # each side of 95 % intervals
    assert "Clicks at ranks 1-10 are not proportional to relevance" in bias.verdict[1]


def test_swaps_give_them_relative_to_a_rank() -> None:
    """Relevance is the probability of a click at rank 1 there: y = a x + b of these."""
    slope = ALPHA / ALPHA[0]
    offset = BETA - BETA[0] * slope
    hits = []
    for seed in range(8):
        sessions = simulated(seed=seed, n_sessions=20_000, model="trust", noise=3.0)
        bias = fp.clicks.trust_bias(sessions)
        assert (bias.alpha[0], bias.beta[0]) == (1.0, 0.0)
        hits.append((np.array(bias.alpha_low) <= slope) & (slope <= np.array(bias.alpha_high)))
        hits.append((np.array(bias.beta_low) <= offset) & (offset <= np.array(bias.beta_high)))
    assert "as with trust bias" in fp.clicks.estimate_propensities(sessions).verdict[-1]
    assert bias.beta[1] == pytest.approx(offset[1], abs=0.15)
    assert np.array(hits)[:, 1:5].mean() > 0.85
    assert "are not proportional to relevance" in bias.verdict[1]


def test_without_trust_bias_offsets_are_zero() -> None:
    sessions = simulated(n_sessions=20_000, noise=3.0)
    bias = fp.clicks.trust_bias(sessions)
    assert "trust bias" not in " ".join(fp.clicks.estimate_propensities(sessions).verdict)
    assert (np.array(bias.beta_low)[1:5] < 0).all()
    assert (np.array(bias.beta_high)[1:5] > 0).all()
    curve = fp.clicks.SimulatedUsers.named("pbm").propensities(10)
    np.testing.assert_allclose(bias.alpha[1:4], curve[1:4], atol=0.2)


def test_equal_relevance_is_refused() -> None:
    run = {f"q{q}": {f"d{q}-{i}": -i for i in range(4)} for q in range(40)}
    qrels = {query: dict.fromkeys(documents, 1) for query, documents in run.items()}
    sessions = fp.clicks.simulate(run, qrels, n_sessions=4000, noise=2.0)
    for given in (qrels, None):
        bias = fp.clicks.trust_bias(sessions, given)
        assert np.isnan(bias.alpha[1:]).all()
        assert "Trust bias is not identified at ranks" in bias.verdict[1]
    with pytest.raises(fp.DataError, match="the judgments: none of the documents of simulation"):
        fp.clicks.trust_bias(sessions, {"q0": {"another": 1}})
    with pytest.raises(fp.DataError, match="relevance has 1 values; the largest grade is 1"):
        fp.clicks.trust_bias(sessions, qrels, relevance=[0.5])
