"""Verdicts of claims, and p-values against the paired t test of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from firstpage.papers.study import claims

LOW = np.array([0.1, 0.2, 0.3, 0.4])
NOISE = np.array([0.1, -0.1, 0.1, -0.1])
HIGH = LOW + np.array([0.5, 0.6, 0.55, 0.5])


def test_greater_is_a_paired_test() -> None:
    assert claims.greater("x", HIGH, LOW).verdict == "holds"
    assert claims.greater("x", LOW, HIGH).verdict == "does not hold"
    assert claims.greater("x", LOW, LOW + NOISE).verdict == "inconclusive"
    assert claims.greater("x", HIGH, LOW, margin=0.7).verdict == "does not hold"


def test_p_value_matches_the_t_test() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.2, 1, 12), rng.normal(0, 1, 12)
    expected = ttest_rel(a, b, alternative="greater").pvalue
    assert claims._p_value(a - b) == pytest.approx(expected)


def test_constant_values_need_no_test() -> None:
    same = np.full(3, 0.5)
    assert claims.greater("x", same + 0.1, same).verdict == "holds"
    assert claims.greater("x", same, same + 0.1).verdict == "does not hold"
    assert claims.greater("x", same, same).verdict == "inconclusive"


def test_identical_runs_have_no_p_value() -> None:
    same = np.full(3, 0.5)
    for claim in (
        claims.greater("x", same + 0.1, same),
        claims.greater("x", same, same),
        claims.equivalent("x", same, same, 0.1),
        claims.at_least("x", same, 0.4),
        claims.below("x", same, 0.6),
        claims.no_greater("x", same, same, 0.1),
        claims.greater("x", same + np.arange(3.0) + 0.1, same + np.arange(3.0)),
    ):
        assert claim.evidence.endswith("; all differences are equal")


def test_single_run_is_inconclusive() -> None:
    claim = claims.greater("x", np.array([0.9]), np.array([0.1]))
    assert claim.verdict == "inconclusive"
    assert "no test with a single run" in claim.evidence


def test_unpaired_runs_are_dropped() -> None:
    claim = claims.greater("x", HIGH, LOW[:2])
    assert claim.evidence.startswith("0.7000 against 0.1500")


def test_thresholds() -> None:
    assert claims.at_least("x", HIGH, 0.5).verdict == "holds"
    assert claims.at_least("x", HIGH, 2.0).verdict == "does not hold"
    assert claims.below("x", HIGH, 2.0).verdict == "holds"
    assert claims.within("x", HIGH, 0.7, 0.9).verdict == "holds"
    assert claims.within("x", HIGH, 0.0, 0.1).verdict == "does not hold"
    assert claims.no_greater("x", LOW, LOW, 0.1).verdict == "holds"
    assert claims.no_greater("x", HIGH, LOW, 0.1).verdict == "does not hold"


def test_all_hold_needs_every_claim() -> None:
    holding, failing = claims.greater("a", HIGH, LOW), claims.greater("b", LOW, HIGH)
    inconclusive = claims.greater("c", LOW, LOW)
    assert claims.all_hold("x", [holding, holding]).verdict == "holds"
    assert claims.all_hold("x", [holding, inconclusive]).verdict == "inconclusive"
    assert (
        claims.all_hold("x", [holding, inconclusive, failing], source="ours").to_dict()["verdict"]
        == "does not hold"
    )
    assert "b: " in claims.all_hold("x", [holding, failing]).evidence
    assert "against" in claims.all_hold("x", [holding, failing]).evidence
