"""Minimum risks with certificates, and whether they have the correct objects on top."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.papers.theory.consistency import (
    bayes_agreement,
    looks_convex,
    minimize_by_planes,
    minimize_risk,
)
from firstpage.papers.theory.spaces import FunctionSurrogate, ProbabilitySpace, make_surrogate
from firstpage.papers.xia2009 import theorems
from tests.narrow import present
from tests.papers.theory.test_sensitivity import full, hinge, squared, top_one

THREE = ProbabilitySpace.from_orders({(0, 1, 2): 0.40, (1, 0, 2): 0.35, (2, 1, 0): 0.25})


def test_top_1_listmle_is_minimal_at_log_probabilities() -> None:
    (best, *_) = minimize_risk(make_surrogate("ListMLE(k=1)", 3), THREE, np.random.default_rng(0))
    np.testing.assert_allclose(np.diff(best.scores), np.diff(np.log([0.40, 0.35, 0.25])), atol=1e-9)
    assert best.gradient_norm < 1e-12


def test_cosine_is_minimal_along_the_mean_target() -> None:
    (best, *_) = minimize_risk(
        make_surrogate("RankCosine(k=1)", 3), THREE, np.random.default_rng(0)
    )
    np.testing.assert_allclose(best.scores / best.scores.sum(), [0.40, 0.35, 0.25], atol=1e-9)


@pytest.mark.parametrize(
    "phi", [make_surrogate("RankSVM(k=1)", 3), FunctionSurrogate(hinge(1.0), 3)]
)
def test_hinge_ties_the_first_two(phi) -> None:
    """At (1, 1, 0) the risk is .40 + .35 + 4 * .25 = 1.75, at (1, 0, 0) 3 * .6 = 1.8."""
    result = minimize_by_planes(phi, THREE)
    assert result.risk == pytest.approx(1.75, abs=1e-5)
    np.testing.assert_allclose(result.scores - result.scores[2], [1, 1, 0], atol=1e-5)
    assert present(result.gap) < 1e-5
    assert float(THREE.probabilities @ phi.values(np.array([1.0, 0, 0]))) == pytest.approx(1.8)


def test_constrained_minimum_has_a_higher_risk_in_a_clear_space() -> None:
    clear = ProbabilitySpace.from_orders({(0, 1, 2): 0.8, (1, 0, 2): 0.1, (2, 1, 0): 0.1})
    phi = make_surrogate("RankSVM(k=1)", 3)
    assert minimize_by_planes(phi, clear, (0, 1)).risk > minimize_by_planes(phi, clear).risk + 0.1


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", ["ListMLE", "RankCosine", "RankNet", "Regression"])
def test_top_k_forms_agree_and_full_forms_do_not(name: str, k: int) -> None:
    top_k = bayes_agreement(f"{name}(k={k})", 4, k, 6)
    assert (top_k.agree, top_k.uncertified, top_k.example) == (6, 0, "")
    assert top_k.certificate < 1e-9
    full_order = bayes_agreement(name, 4, k, 6)
    assert full_order.wrong > 0
    assert "the most probable top is" in full_order.example


def test_top_1_loss_is_consistent_for_deeper_tops_but_not_conversely() -> None:
    assert bayes_agreement("ListMLE(k=1)", 4, 3, 10).holds
    assert not bayes_agreement("ListMLE(k=3)", 4, 1, 10).holds


@pytest.mark.parametrize("phi", [hinge(1.0), squared, full])
def test_inconsistent_functions_are_detected(phi) -> None:
    result = fp.papers.consistency(phi, n=3, k=1, samples=10, spaces=4)
    assert not result
    assert result.agreement.wrong > 0
    assert result.verdict.startswith("not consistent with the top-1 true loss")


def test_consistent_function_is_reported_as_consistent() -> None:
    result = fp.papers.consistency(top_one, n=3, k=1, samples=10, spaces=6)
    assert result
    assert result.verdict == "consistent with the top-1 true loss, as far as enumeration can tell"
    assert result.to_dict()["agreement"]["agree"] == 6


def test_unbounded_risk_is_not_consistent() -> None:
    result = fp.papers.consistency(lambda g, y: -float(g[y[0]]), n=3, k=1, samples=5, spaces=4)
    assert not result
    assert (result.agreement.uncertified, result.agreement.wrong) == (4, 0)
    assert "no counterexample in 0 spaces" in result.verdict


def test_convexity_is_detected() -> None:
    rng = np.random.default_rng(0)
    assert looks_convex(make_surrogate("RankSVM", 3), rng)
    assert not looks_convex(FunctionSurrogate(lambda g, y: float(np.sin(g[0])), 3), rng)


def test_proposition_10() -> None:
    for p1, first in ((0.40, 1), (0.55, 0)):
        assert theorems.minimum_at(fp.extend.loss("PlackettLuce"), p1).top(1) == (first,)
        assert theorems.minimum_at(fp.extend.loss("PlackettLuce(k=1)"), p1).top(1) == (0,)
    result = theorems.centered(theorems.minimum_at(fp.extend.loss("PlackettLuce"), 0.40))
    np.testing.assert_allclose(result, [0.210, 0.560, -0.770], atol=1e-3)
    assert theorems.threshold(fp.extend.loss("PlackettLuce")) == pytest.approx(0.5261, abs=1e-4)
    # By hand: 2 p1 + p2 > p1 + 3 p2 just when p1 > 2 p2.
    assert theorems.threshold(fp.extend.loss("Cosine")) == pytest.approx(0.5, abs=1e-5)
