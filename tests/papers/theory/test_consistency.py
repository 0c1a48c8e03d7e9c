"""Least risks with certificates, and whether they put the right objects on top."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.papers.theory.consistency import agreement, by_planes, least, looks_convex
from firstpage.papers.theory.spaces import OfFunction, Space, surrogate
from firstpage.papers.xia2009 import theorems
from tests.papers.theory.test_sensitivity import full, hinge, squared, top_one

THREE = Space.of({(0, 1, 2): 0.40, (1, 0, 2): 0.35, (2, 1, 0): 0.25})


def test_top_1_listmle_is_least_at_the_logs_of_chances() -> None:
    (best, *_) = least(surrogate("ListMLE(k=1)", 3), THREE, np.random.default_rng(0))
    np.testing.assert_allclose(np.diff(best.scores), np.diff(np.log([0.40, 0.35, 0.25])), atol=1e-9)
    assert best.slope < 1e-12


def test_cosine_is_least_along_the_mean_of_its_targets() -> None:
    (best, *_) = least(surrogate("RankCosine(k=1)", 3), THREE, np.random.default_rng(0))
    np.testing.assert_allclose(best.scores / best.scores.sum(), [0.40, 0.35, 0.25], atol=1e-9)


@pytest.mark.parametrize("phi", [surrogate("RankSVM(k=1)", 3), OfFunction(hinge(1.0), 3)])
def test_the_hinge_ties_the_first_two(phi) -> None:
    """At (1, 1, 0) the risk is .40 + .35 + 4 * .25 = 1.75, at (1, 0, 0) 3 * .6 = 1.8."""
    found = by_planes(phi, THREE)
    assert found.risk == pytest.approx(1.75, abs=1e-5)
    np.testing.assert_allclose(found.scores - found.scores[2], [1, 1, 0], atol=1e-5)
    assert found.gap < 1e-5
    assert float(THREE.chances @ phi.values(np.array([1.0, 0, 0]))) == pytest.approx(1.8)


def test_a_tie_that_costs_is_told_from_one_that_does_not() -> None:
    clear = Space.of({(0, 1, 2): 0.8, (1, 0, 2): 0.1, (2, 1, 0): 0.1})
    phi = surrogate("RankSVM(k=1)", 3)
    assert by_planes(phi, clear, (0, 1)).risk > by_planes(phi, clear).risk + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", ["ListMLE", "RankCosine", "RankNet", "Regression"])
def test_top_k_forms_agree_and_full_forms_do_not(name: str, k: int) -> None:
    cut = agreement(f"{name}(k={k})", 4, k, 10)
    assert (cut.agree, cut.unsure, cut.example) == (10, 0, "")
    assert cut.slope < 1e-9
    whole = agreement(name, 4, k, 10)
    assert whole.wrong > 0
    assert "the likeliest top is" in whole.example


@pytest.mark.slow
def test_a_top_1_loss_serves_deeper_tops_and_not_the_other_way_round() -> None:
    assert agreement("ListMLE(k=1)", 4, 3, 10).holds
    assert not agreement("ListMLE(k=3)", 4, 1, 10).holds


@pytest.mark.slow
@pytest.mark.parametrize("phi", [hinge(1.0), squared, full])
def test_functions_that_miss_the_top_are_caught(phi) -> None:
    found = fp.papers.consistency(phi, n=3, k=1, samples=10, spaces=10)
    assert not found
    assert found.verdict.startswith("not consistent with the top-1 true loss")


@pytest.mark.slow
def test_a_function_that_is_fine_is_said_to_be() -> None:
    found = fp.papers.consistency(top_one, n=3, k=1, samples=10, spaces=6)
    assert found
    assert found.verdict == "consistent with the top-1 true loss, as far as enumeration can tell"
    assert found.to_dict()["agreement"]["agree"] == 6


def test_what_has_no_least_risk_is_not_called_consistent() -> None:
    found = fp.papers.consistency(lambda g, y: -float(g[y[0]]), n=3, k=1, samples=5, spaces=4)
    assert not found
    assert (found.agreement.unsure, found.agreement.wrong) == (4, 0)
    assert "no counter-example in 0 spaces" in found.verdict


def test_convexity_is_seen() -> None:
    rng = np.random.default_rng(0)
    assert looks_convex(surrogate("RankSVM", 3), rng)
    assert not looks_convex(OfFunction(lambda g, y: float(np.sin(g[0])), 3), rng)


def test_proposition_10() -> None:
    for p1, first in ((0.40, 1), (0.55, 0)):
        assert theorems.least_at(fp.loss("PlackettLuce"), p1).top(1) == (first,)
        assert theorems.least_at(fp.loss("PlackettLuce(k=1)"), p1).top(1) == (0,)
    found = theorems.centered(theorems.least_at(fp.loss("PlackettLuce"), 0.40))
    np.testing.assert_allclose(found, [0.210, 0.560, -0.770], atol=1e-3)
    assert theorems.threshold(fp.loss("PlackettLuce")) == pytest.approx(0.5261, abs=1e-4)
    # By hand: 2 p1 + p2 > p1 + 3 p2 just when p1 > 2 p2.
    assert theorems.threshold(fp.loss("Cosine")) == pytest.approx(0.5, abs=1e-5)
