"""The solver ends at the optimum: Clarabel's, and one proved in 60 digits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.dcglearn import solver
from firstpage.dcglearn.pairs import encode
from firstpage.dcglearn.solver import solve
from firstpage.dcglearn.sums import Sums
from firstpage.dcglearn.weights import cone
from firstpage.errors import FirstpageWarning
from tests.dcglearn.reference import (
    clarabel_optimum,
    exact_optimum,
    objective,
    order_constraints,
    random_preferences,
)
from tests.dcglearn.test_learn import varied

MARGINS = np.array([1.0, 1.0, 1.5])
COSTS = [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1e3]


def problem(n: int, **options):
    given = random_preferences(n, **options)
    return encode(given, given.n_positions, len(given.grades))


@pytest.mark.parametrize("c", COSTS)
@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_the_optimum_is_clarabels(c, ties):
    pairs = problem(800, seed=1, ties=ties, strong=0.2)
    costs = np.array([0.5 * c, c, 2 * c])
    found = solve(Sums(pairs, MARGINS), cone(10, 5), costs)
    best, w = clarabel_optimum(pairs, costs, MARGINS, order_constraints(10, 5, False, False))
    assert found.objective == pytest.approx(best, rel=1e-8)
    assert found.gap <= 1e-10 * found.objective
    assert found.objective == pytest.approx(
        objective(pairs, found.weights, costs, MARGINS), rel=1e-12
    )
    assert np.abs(found.weights - w).max() < 1e-5  # as far as Clarabel itself goes


@pytest.mark.parametrize("c", COSTS)
@pytest.mark.parametrize("ties", [0.0, 0.3])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_weights_are_those_of_exact_arithmetic(c, ties, noise):
    pairs = problem(300, seed=3, places=5, levels=4, ties=ties, noise=noise, strong=0.2)
    shape, costs = cone(5, 4), np.array([0.5 * c, c, 2 * c])
    found = solve(Sums(pairs, MARGINS), shape, costs)
    best, proved = exact_optimum(pairs, shape, found.steps, costs, MARGINS)
    assert proved
    assert np.abs(found.steps - np.array([float(v) for v in best])).max() < 1e-9


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("decreasing", [False, True])
@pytest.mark.parametrize("drawn", [0.0, 1.0])
def test_every_cone_and_a_center(nonnegative, decreasing, drawn):
    pairs = problem(400, seed=5, places=4, levels=4, ties=0.2)
    costs = np.array([1.0, 3.0, 3.0])
    shape = cone(4, 4, nonnegative, decreasing)
    center = drawn * shape.weights @ np.random.default_rng(0).random(shape.weights.shape[1])
    found = solve(Sums(pairs, MARGINS), shape, costs, center=center)
    order = order_constraints(4, 4, nonnegative, decreasing)
    if nonnegative and drawn:  # the worst grade stays at 0, though it would like to follow
        order = np.vstack([order, -np.kron(np.eye(4), [1, 0, 0, 0])])
    best, _ = clarabel_optimum(pairs, costs, MARGINS, order, center)
    assert found.objective == pytest.approx(best, rel=1e-8)
    assert found.gap <= 1e-10 * found.objective
    assert (order @ found.weights >= -1e-9).all()


@pytest.mark.slow
def test_many_pairs_are_clarabels_too():
    pairs = problem(20_000, seed=7, ties=0.1)
    costs = np.array([10.0, 10.0, 10.0])
    found = solve(Sums(pairs, MARGINS), cone(10, 5), costs)
    best, w = clarabel_optimum(pairs, costs, MARGINS, order_constraints(10, 5, False, False))
    assert found.objective == pytest.approx(best, rel=1e-8)
    assert np.abs(found.weights - w).max() < 1e-6


@pytest.mark.parametrize("c", [1e3, 1e4, 1e6])
def test_preferences_that_can_all_be_met(c):
    """Near a hard margin few pairs carry the optimum, and Newton alone would exchange them one by
    one."""
    pairs = problem(640, seed=11, noise=0.0, same=True)
    found = solve(Sums(pairs, np.ones(3)), cone(10, 5), np.full(3, c))
    best, _ = clarabel_optimum(
        pairs, np.full(3, c), np.ones(3), order_constraints(10, 5, False, False)
    )
    assert found.objective == pytest.approx(best, rel=1e-6)
    assert found.gap <= 1e-9 * found.objective
    assert found.rounds < solver.MAX_STEPS


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 60), places=st.integers(1, 5),
    levels=st.integers(2, 5), ties=st.sampled_from([0.0, 0.5]), power=st.integers(-6, 6),
    nonnegative=st.booleans(), decreasing=st.booleans(),
)  # fmt: skip
def test_the_gap_is_closed_whatever_comes(
    seed, n, places, levels, ties, power, nonnegative, decreasing
):
    pairs = problem(n, seed=seed, places=places, levels=levels, ties=ties, strong=0.3)
    shape = cone(places, levels, nonnegative, decreasing)
    found = solve(Sums(pairs, MARGINS), shape, np.full(3, 10.0**power))
    assert found.gap <= 1e-7 * found.objective + 1e-12
    assert (found.steps >= 0).all()


def test_threads_and_warm_starts_change_nothing():
    pairs = problem(40_000, seed=2, ties=0.2)
    costs = np.array([1.0, 1.0, 1.0])
    one = solve(Sums(pairs, MARGINS, threads=1), cone(10, 5), costs)
    two = solve(Sums(pairs, MARGINS, threads=2), cone(10, 5), costs)
    assert np.array_equal(one.weights, two.weights)
    sums = Sums(pairs, MARGINS)
    first = solve(sums, cone(10, 5), 0.01 * costs)
    warm = solve(sums, cone(10, 5), costs, first.steps)
    assert np.abs(warm.weights - one.weights).max() < 1e-9


def test_a_weight_is_as_many_copies():
    given = random_preferences(200, seed=4, ties=0.2)
    whole = given.weight.astype(int) + 1
    copies = given[np.repeat(np.arange(len(given)), whole)]
    heavy = encode(given, 10, 5).weighed(whole.astype(float))
    many = encode(copies, 10, 5)
    many = many.weighed(np.ones(len(many)))
    costs = np.full(3, 2.0)
    a = solve(Sums(heavy, MARGINS), cone(10, 5), costs)
    b = solve(Sums(many, MARGINS), cone(10, 5), costs)
    assert np.abs(a.weights - b.weights).max() < 1e-10


def test_a_loose_gap_is_reported(monkeypatch):
    monkeypatch.setattr(solver, "PATIENCE", 2)
    monkeypatch.setattr(solver, "MAX_STEPS", 2)
    monkeypatch.setattr(solver, "interior", lambda *given: None)
    pairs = problem(800, seed=1)
    with pytest.warns(match="stopped after 2 steps"):
        solve(Sums(pairs, MARGINS), cone(10, 5), np.full(3, 100.0))


def test_an_optimum_that_is_not_certain_is_told():
    given = varied(200, noise=3.0)
    rng = np.random.default_rng(1)
    wild = fp.Preferences.from_grades(
        given.left,
        given.right,
        given.outcome,
        weight=10.0 ** rng.uniform(-8, 8, 200),
        grades=range(5),
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", FirstpageWarning)
        learner = fp.DCGLearn(10, C=1.0).fit(wild)
    told = any("certified gap" in str(w.message) for w in said)
    assert told == (learner.gap_ > 1e-8 * learner.objective_)
