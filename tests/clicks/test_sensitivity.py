"""How many sessions an experiment needs: its formulas, and who needs fewer."""

from __future__ import annotations

import json

import numpy as np
import pytest

import firstpage as fp
from firstpage.clicks import sensitivity

GRADES = {f"q{q}": {f"d{d}": d % 5 for d in range(12)} for q in range(5)}
FIRST = {q: {d: float(-n) for n, d in enumerate(row)} for q, row in GRADES.items()}
SECOND = {q: {d: FIRST[q][d] + 2.0 * g for d, g in row.items()} for q, row in GRADES.items()}


@pytest.fixture(scope="module")
def log() -> fp.Sessions:
    return fp.clicks.simulate(FIRST, GRADES, n_sessions=3000, noise=4.0, depth=12)


def plan(log: fp.Sessions, first: dict, second: dict) -> fp.clicks.ExperimentPlan:
    runs = fp.Run.from_dict(first), fp.Run.from_dict(second)
    return fp.clicks.plan_experiment(log, *runs, n_sessions=3000)


def test_interleaving_needs_fewer_sessions_and_finds_the_better_ranking(log) -> None:
    result = plan(log, FIRST, SECOND)
    interleaved, ab = result.designs
    assert result.click_rates[1] > result.click_rates[0]
    assert interleaved["wins"] > interleaved["losses"]
    assert interleaved["one_look"] < ab["one_look"]
    assert interleaved["one_look"] < interleaved["all_looks"] < ab["all_looks"]
    back = plan(log, SECOND, FIRST).designs[0]
    assert back["losses"] == pytest.approx(interleaved["wins"], abs=0.04)
    assert "sessions, all looks" in str(result)
    json.dumps(result.to_dict())


def test_no_difference_needs_no_number(log) -> None:
    result = plan(log, FIRST, FIRST)
    assert result.designs[0]["one_look"] is None
    assert "no difference in 3,000 simulated sessions" in str(result)


def test_planned_sessions_decide_with_the_power() -> None:
    """Simulated experiments of the planned size reject as often as promised."""
    rng = np.random.default_rng(2)
    one, every = sensitivity._needed(0.20, 0.14, 100_000, 0.05, 0.8, rng)
    assert one is not None
    assert every is not None
    wins, losses, _ = rng.multinomial(one, [0.20, 0.14, 0.66], 4000).T
    z = (wins - losses) / np.sqrt(wins + losses)
    assert float((np.abs(z) > 1.96).mean()) == pytest.approx(0.8, abs=0.03)
    assert one < every < 6 * one
    size = sensitivity._two_rates(0.30, 0.34, 0.05, 0.8) // 2
    a, b = rng.binomial(size, 0.30, 4000) / size, rng.binomial(size, 0.34, 4000) / size
    mean = (a + b) / 2
    z = (b - a) / np.sqrt(2 * mean * (1 - mean) / size)
    assert float((np.abs(z) > 1.96).mean()) == pytest.approx(0.8, abs=0.03)


def test_rankings_of_other_queries_are_refused(log) -> None:
    with pytest.raises(fp.DataError, match="no query of the log is in both rankings"):
        plan(log, {"x": {"a": 1.0}}, {"x": {"a": 1.0}})
    unknown = {q: {f"new{n}": float(-n) for n in range(10)} for q in GRADES}
    with pytest.warns(fp.FirstpageWarning, match="only 0% of the first 10 documents"):
        plan(log, unknown, unknown)
