"""Terms of the bounds against plain loops; printed inequalities fail, corrected ones hold."""

from __future__ import annotations

from math import exp, log, log2

import numpy as np
import pytest

from firstpage.papers.cheng2014 import theorems
from firstpage.papers.lan2013.theorems import (
    CHECKS,
    LN2,
    all_bound_terms,
    at_most,
    bound_terms,
    scores,
)


def terms_by_loops(z: list[float], k: int) -> dict[str, float]:
    """Return all terms by loops; ties are broken against the truth."""
    n = len(z)
    gain = [2.0 ** (n - 1 - j) - 1 for j in range(n)]
    order = sorted(range(n), key=lambda j: (-z[j], -j))
    rank = {j: position for position, j in enumerate(order, 1)}
    alpha = [gain[j] / log2(2 + j) for j in range(k)]
    pairs = [(j, m) for j in range(k) for m in range(j + 1, n)]
    best = sum(alpha)
    return {
        "ndcg": sum(gain[j] / log2(1 + rank[j]) for j in range(n) if rank[j] <= k) / best,
        "ndcg_printed": sum(gain[j] / log2(1 + rank[j]) for j in range(k)) / best,
        "ndcg_all_ranks": sum(gain[j] / log2(1 + rank[j]) for j in range(n)) / best,
        "wkt": sum(alpha[j] for j, m in pairs if z[j] < z[m]),
        "wkt_weak": sum(alpha[j] for j, m in pairs if z[j] <= z[m]),
        "any_inversion": sum(alpha[j] for j in range(k) if any(z[j] < x for x in z[j + 1 :])),
        "hinge": sum(max(0.0, 1 - z[j] + z[m]) for j, m in pairs),
        "exponential": sum(exp(z[m] - z[j]) for j, m in pairs),
        "logistic": sum(log(1 + exp(z[m] - z[j])) for j, m in pairs),
        "listmle": sum(log(sum(map(exp, z[j:]))) - z[j] for j in range(k)),
    }


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 1), (4, 2), (5, 5), (8, 3)])
def test_terms_match_plain_loops(n: int, k: int) -> None:
    z = scores(np.random.default_rng(0), n, k, 10)
    terms = bound_terms(z, k)
    losses = dict(terms.top)
    for row in range(len(z)):
        for name, value in terms_by_loops(z[row].tolist(), k).items():
            value_ours = losses[name] if name in losses else getattr(terms, name)
            assert value_ours[row] == pytest.approx(value, rel=1e-9, abs=1e-9), name


def test_theorem_1_fails_with_ties_and_holds_without() -> None:
    rng = np.random.default_rng(0)
    claim = lambda x: 1 - x.ndcg, lambda x: x.wkt / x.N
    with_ties = at_most(*claim)(rng, 400)
    assert not with_ties.holds
    assert "scores in true order" in with_ties.example
    without = at_most(*claim, distinct=True)(rng, 400)
    assert without.holds
    assert without.numbers["scores"] > 400


def test_constant_scores_have_tau_0_but_lose_ndcg() -> None:
    terms = bound_terms(np.zeros((1, 5)), 3)
    assert terms.wkt[0] == 0
    assert 1 - terms.ndcg[0] == pytest.approx(0.898, abs=5e-4)


def test_equation_18_by_hand() -> None:
    """n = 3, k = 1, scores (0, d, d): 2 > ln 3 / ln 2, until d reaches ln 1.5."""
    for d, falls in ((1e-9, True), (0.4, True), (0.41, False)):
        terms = bound_terms(np.array([[0.0, d, d]]), 1)
        assert bool(terms.wkt[0] > terms.c * terms.top["listmle"][0] / LN2) == falls
    tiny = bound_terms(np.array([[0.0, 1e-9]]), 1)
    assert tiny.wkt[0] / tiny.c == 1
    assert tiny.top["logistic"][0] == pytest.approx(LN2)


@pytest.mark.parametrize("fraction", [0.9, 0.99])
def test_a_slightly_smaller_bound_fails(fraction: float) -> None:
    """The corrected constant is tight, so that a smaller one fails."""
    less = at_most(
        lambda x: x.wkt, lambda x: fraction * x.c * x.top["listmle"] * (x.n - 1) / np.log(x.n)
    )
    assert not less(np.random.default_rng(0), 400).holds


def test_every_length_and_depth_is_tested() -> None:
    seen = {(terms.n, terms.k) for terms in all_bound_terms(np.random.default_rng(0), 40)}
    assert seen == {(n, k) for n in range(2, 9) for k in range(1, n + 1)}
    assert all(not terms.distinct.all() for terms in all_bound_terms(np.random.default_rng(0), 40))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_results_are_as_recorded(check) -> None:
    terms = check.run(np.random.default_rng(1), 500)
    assert terms.holds == check.holds
    assert bool(terms.example) == (not terms.holds)


def test_iterations_are_below_the_bound() -> None:
    rows = theorems.count_iterations(np.random.default_rng(3))
    assert all(count <= bound for _, _, count, bound in rows)
    assert any(count > bound / 1e6 for _, _, count, bound in rows)
    for C in theorems.COSTS:
        counts = [count for cost, _, count, _ in rows if cost == C]
        assert counts == sorted(counts)


def test_plain_loop_ends_at_the_required_gap() -> None:
    data = theorems.random_problem(np.random.default_rng(0))
    assert theorems.iterations(data, 10.0, 2.0) == 1  # nothing is violated by more than 1
    assert theorems.iterations(data, 10.0, 1e-3) > 5
    assert theorems.iterations(data, 10.0, 1e-9, max_iterations=3) == 3
