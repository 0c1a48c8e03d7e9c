"""Verdicts: by hand, and against scipy's paired t test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from firstpage.papers.study import claims

LOW = np.array([0.1, 0.2, 0.3, 0.4])
SHAKE = np.array([0.1, -0.1, 0.1, -0.1])
HIGH = LOW + np.array([0.5, 0.6, 0.55, 0.5])


def test_greater_goes_by_a_paired_test() -> None:
    assert claims.greater("x", HIGH, LOW).verdict == "holds"
    assert claims.greater("x", LOW, HIGH).verdict == "does not hold"
    assert claims.greater("x", LOW, LOW + SHAKE).verdict == "cannot be tested"
    assert claims.greater("x", HIGH, LOW, by=0.7).verdict == "does not hold"


def test_chance_is_that_of_the_t_test() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.2, 1, 12), rng.normal(0, 1, 12)
    wanted = ttest_rel(a, b, alternative="greater").pvalue
    assert claims._chance(a - b) == pytest.approx(wanted)


def test_constant_values_need_no_test() -> None:
    same = np.full(3, 0.5)
    assert claims.greater("x", same + 0.1, same).verdict == "holds"
    assert claims.greater("x", same, same + 0.1).verdict == "does not hold"
    assert claims.greater("x", same, same).verdict == "cannot be tested"


def test_one_run_cannot_tell() -> None:
    found = claims.greater("x", np.array([0.9]), np.array([0.1]))
    assert found.verdict == "cannot be tested"
    assert "one run cannot tell" in found.why


def test_runs_that_only_one_has_are_left_out() -> None:
    found = claims.greater("x", HIGH, LOW[:2])
    assert found.why.startswith("0.7000 against 0.1500")


def test_bars() -> None:
    assert claims.at_least("x", HIGH, 0.5).verdict == "holds"
    assert claims.at_least("x", HIGH, 2.0).verdict == "does not hold"
    assert claims.below("x", HIGH, 2.0).verdict == "holds"
    assert claims.within("x", HIGH, 0.7, 0.9).verdict == "holds"
    assert claims.within("x", HIGH, 0.0, 0.1).verdict == "does not hold"
    assert claims.no_greater("x", LOW, LOW, 0.1).verdict == "holds"
    assert claims.no_greater("x", HIGH, LOW, 0.1).verdict == "does not hold"


def test_every_needs_all() -> None:
    yes, no = claims.greater("a", HIGH, LOW), claims.greater("b", LOW, HIGH)
    open_ = claims.greater("c", LOW, LOW)
    assert claims.every("x", [yes, yes]).verdict == "holds"
    assert claims.every("x", [yes, open_]).verdict == "cannot be tested"
    assert claims.every("x", [yes, open_, no], whose="ours").to_dict()["verdict"] == "does not hold"
    assert "b: " in claims.every("x", [yes, no]).why
    assert "against" in claims.every("x", [yes, no]).why
