"""The optimum matches that of Clarabel, and one proved in 60-digit arithmetic."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.core.errors import FirstpageWarning
from firstpage.evaluation.dcglearn import solver
from firstpage.evaluation.dcglearn.pairs import encode
from firstpage.evaluation.dcglearn.solver import solve
from firstpage.evaluation.dcglearn.sums import PairSums
from firstpage.evaluation.dcglearn.weights import weight_cone
from tests.evaluation.dcglearn.reference import (
    clarabel_optimum,
    exact_optimum,
    objective,
    order_constraints,
    random_preferences,
)
from tests.evaluation.dcglearn.test_learn import varied

MARGINS = np.array([1.0, 1.0, 1.5])
COSTS = [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1e3]


def problem(n: int, **options):
    preferences = random_preferences(n, **options)
    return encode(preferences, preferences.n_positions, len(preferences.grades))


@pytest.mark.parametrize("c", COSTS)
@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_optimum_matches_clarabel(c, ties):
    pairs = problem(800, seed=1, ties=ties, strong=0.2)
    costs = np.array([0.5 * c, c, 2 * c])
    optimum = solve(PairSums(pairs, MARGINS), weight_cone(10, 5), costs)
    best, w = clarabel_optimum(pairs, costs, MARGINS, order_constraints(10, 5, False, False))
    assert optimum.objective == pytest.approx(best, rel=1e-8)
    assert optimum.gap <= 1e-10 * optimum.objective
    assert optimum.objective == pytest.approx(
        objective(pairs, optimum.weights, costs, MARGINS), rel=1e-12
    )
    assert np.abs(optimum.weights - w).max() < 1e-5  # the precision of Clarabel


@pytest.mark.parametrize("c", COSTS)
@pytest.mark.parametrize("ties", [0.0, 0.3])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_weights_match_exact_arithmetic(c, ties, noise):
    pairs = problem(300, seed=3, positions=5, levels=4, ties=ties, noise=noise, strong=0.2)
    shape, costs = weight_cone(5, 4), np.array([0.5 * c, c, 2 * c])
    optimum = solve(PairSums(pairs, MARGINS), shape, costs)
    best, proved = exact_optimum(pairs, shape, optimum.steps, costs, MARGINS)
    assert proved
    assert np.abs(optimum.steps - np.array([float(v) for v in best])).max() < 1e-9


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("decreasing", [False, True])
@pytest.mark.parametrize("center_scale", [0.0, 1.0])
def test_every_cone_and_a_center_match_clarabel(nonnegative, decreasing, center_scale):
    pairs = problem(400, seed=5, positions=4, levels=4, ties=0.2)
    costs = np.array([1.0, 3.0, 3.0])
    shape = weight_cone(4, 4, nonnegative, decreasing)
    center = center_scale * shape.weights @ np.random.default_rng(0).random(shape.weights.shape[1])
    optimum = solve(PairSums(pairs, MARGINS), shape, costs, center=center)
    order = order_constraints(4, 4, nonnegative, decreasing)
    if nonnegative and center_scale:  # the worst grade stays at 0, unlike its center
        order = np.vstack([order, -np.kron(np.eye(4), [1, 0, 0, 0])])
    best, _ = clarabel_optimum(pairs, costs, MARGINS, order, center)
    assert optimum.objective == pytest.approx(best, rel=1e-8)
    assert optimum.gap <= 1e-10 * optimum.objective
    assert (order @ optimum.weights >= -1e-9).all()


def test_many_pairs_match_clarabel():
    pairs = problem(20_000, seed=7, ties=0.1)
    costs = np.array([10.0, 10.0, 10.0])
    optimum = solve(PairSums(pairs, MARGINS), weight_cone(10, 5), costs)
    best, w = clarabel_optimum(pairs, costs, MARGINS, order_constraints(10, 5, False, False))
    assert optimum.objective == pytest.approx(best, rel=1e-8)
    assert np.abs(optimum.weights - w).max() < 1e-6


@pytest.mark.parametrize("c", [1e3, 1e4, 1e6])
def test_separable_preferences_match_clarabel(c):
    """Near a hard margin few pairs are active, and Newton alone would exchange them one by one."""
    pairs = problem(640, seed=11, noise=0.0, same=True)
    optimum = solve(PairSums(pairs, np.ones(3)), weight_cone(10, 5), np.full(3, c))
    best, _ = clarabel_optimum(
        pairs, np.full(3, c), np.ones(3), order_constraints(10, 5, False, False)
    )
    assert optimum.objective == pytest.approx(best, rel=1e-6)
    assert optimum.gap <= 1e-9 * optimum.objective
    assert optimum.iterations < solver.MAX_STEPS


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    positions=st.integers(1, 5),
    levels=st.integers(2, 5),
    ties=st.sampled_from([0.0, 0.5]),
    power=st.integers(-6, 6),
    nonnegative=st.booleans(),
    decreasing=st.booleans(),
)
def test_gap_is_closed_for_random_problems(
    seed, n, positions, levels, ties, power, nonnegative, decreasing
):
    pairs = problem(n, seed=seed, positions=positions, levels=levels, ties=ties, strong=0.3)
    shape = weight_cone(positions, levels, nonnegative, decreasing)
    optimum = solve(PairSums(pairs, MARGINS), shape, np.full(3, 10.0**power))
    assert optimum.gap <= 1e-7 * optimum.objective + 1e-12
    assert (optimum.steps >= 0).all()


def test_threads_and_warm_starts_do_not_change_the_optimum():
    pairs = problem(40_000, seed=2, ties=0.2)
    costs = np.array([1.0, 1.0, 1.0])
    one_thread = solve(PairSums(pairs, MARGINS, threads=1), weight_cone(10, 5), costs)
    two_threads = solve(PairSums(pairs, MARGINS, threads=2), weight_cone(10, 5), costs)
    assert np.array_equal(one_thread.weights, two_threads.weights)
    sums = PairSums(pairs, MARGINS)
    first = solve(sums, weight_cone(10, 5), 0.01 * costs)
    warm = solve(sums, weight_cone(10, 5), costs, first.steps)
    assert np.abs(warm.weights - one_thread.weights).max() < 1e-9


def test_weight_equals_copies_of_a_pair():
    preferences = random_preferences(200, seed=4, ties=0.2)
    weights = preferences.weight.astype(int) + 1
    copies = preferences[np.repeat(np.arange(len(preferences)), weights)]
    weighted = encode(preferences, 10, 5).with_weight(weights.astype(float))
    copied = encode(copies, 10, 5)
    copied = copied.with_weight(np.ones(len(copied)))
    costs = np.full(3, 2.0)
    a = solve(PairSums(weighted, MARGINS), weight_cone(10, 5), costs)
    b = solve(PairSums(copied, MARGINS), weight_cone(10, 5), costs)
    assert np.abs(a.weights - b.weights).max() < 1e-10


def test_pairs_are_exchanged_by_the_interior_point_method_where_c_is_large():
    """With so large a C, Newton steps exchange pairs one by one until it takes over."""
    rng = np.random.default_rng(1)
    left, right = (rng.integers(0, 5, (900, 10)) for _ in range(2))
    weights = np.outer(1 / np.log2(np.arange(2, 12)), 2.0 ** np.arange(5) - 1)
    positions = np.arange(10)
    differences = (weights[positions, left] - weights[positions, right]).sum(axis=1)
    learner = fp.dcglearn.DCGLearn(C=1e7).fit(left, right, np.sign(differences))
    assert learner.optimum_.iterations > solver.MAX_FIRST_STEPS
    assert learner.gap_ <= solver.GAP_TOLERANCE * learner.objective_


def test_loose_gap_gives_a_warning(monkeypatch):
    monkeypatch.setattr(solver, "MAX_FIRST_STEPS", 2)
    monkeypatch.setattr(solver, "MAX_STEPS", 2)
    monkeypatch.setattr(solver, "interior", lambda *args: None)
    pairs = problem(800, seed=1)
    with pytest.warns(match="stopped after 2 steps"):
        solve(PairSums(pairs, MARGINS), weight_cone(10, 5), np.full(3, 100.0))


def test_uncertified_optimum_gives_a_warning():
    preferences = varied(200, noise=3.0)
    rng = np.random.default_rng(1)
    wild = fp.dcglearn.Preferences.from_grades(
        preferences.left,
        preferences.right,
        preferences.outcome,
        weight=10.0 ** rng.uniform(-8, 8, 200),
        grades=range(5),
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FirstpageWarning)
        learner = fp.dcglearn.DCGLearn(10, C=1.0).fit(wild)
    warned = any("certified gap" in str(w.message) for w in caught)
    assert warned == (learner.gap_ > 1e-8 * learner.objective_)
