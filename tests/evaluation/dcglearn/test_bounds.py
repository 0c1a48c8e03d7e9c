"""Lower bounds, gradients and branch-and-bound proofs of certificates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad

from firstpage.evaluation.dcglearn.certificates.bounds import Box, lower_bound, min_ratio
from firstpage.evaluation.dcglearn.certificates.problem import SumOfRatios
from firstpage.evaluation.dcglearn.certificates.proofs import (
    decide,
    difference_gradient,
    extent,
    find_flip,
    prove_unrestricted,
    prove_within,
)
from tests.narrow import present


def random_problem(rng, groups: int, rows: int, columns: int) -> SumOfRatios:
    denominators = rng.uniform(0.1, 2.0, (groups, rows, columns))
    return SumOfRatios(rng.normal(0.1, 1.0, denominators.shape), denominators)


def random_points(rng, low, high, count: int):
    fraction = rng.choice([0.0, 1.0], (count, len(low)))
    fraction = np.where(rng.random(fraction.shape) < 0.5, fraction, rng.random(fraction.shape))
    return low * (high / low) ** fraction


@pytest.mark.parametrize("shape", [(1, 3), (3, 2), (4, 3)])
def test_lower_bound_holds_for_random_points_of_the_box(shape) -> None:
    rng = np.random.default_rng(sum(shape))
    for _ in range(15):
        problem = random_problem(rng, int(rng.integers(1, 6)), *shape)
        low = rng.uniform(0.3, 1.0, shape[0]) if shape[0] > 1 else np.ones(1)
        rows = low, low * (rng.uniform(1.0, 3.0, shape[0]) if shape[0] > 1 else 1.0)
        low = rng.uniform(0.3, 1.0, shape[1])
        columns = low, low * rng.uniform(1.0, 3.0, shape[1])
        bound = lower_bound(problem, Box(rows, columns))
        values = [
            problem.value(b, a)
            for b, a in zip(
                random_points(rng, *rows, 400), random_points(rng, *columns, 400), strict=True
            )
        ]
        assert min(values) >= bound.value - 1e-12
        assert problem.value(bound.rows, bound.columns) >= bound.value - 1e-12


def test_bound_of_a_single_point_is_its_value() -> None:
    rng = np.random.default_rng(0)
    problem = random_problem(rng, 4, 3, 2)
    b, a = rng.random(3) + 0.5, rng.random(2) + 0.5
    assert lower_bound(problem, Box((b, b), (a, a))).value == pytest.approx(problem.value(b, a))


def test_min_ratio_is_at_a_corner() -> None:
    rng = np.random.default_rng(1)
    numerators, denominators = rng.normal(size=(5, 6)), rng.random((5, 6))
    low, high = np.full(6, 0.5), np.full(6, 3.0)
    bits = (np.arange(64)[:, None] >> np.arange(6)) & 1
    corners = np.where(bits, high, low)
    expected = ((numerators @ corners.T) / (denominators @ corners.T)).min(axis=1)
    assert min_ratio(numerators, denominators, low, high) == pytest.approx(expected)


def test_gradient_matches_finite_differences() -> None:
    rng = np.random.default_rng(2)
    for shape in ((1, 4), (3, 2)):
        problem = random_problem(rng, 3, *shape)
        point = rng.normal(size=sum(shape))

        def value(x: np.ndarray, p: SumOfRatios = problem) -> float:
            return difference_gradient(p, x)[0]

        def gradient(x: np.ndarray, p: SumOfRatios = problem) -> np.ndarray:
            return difference_gradient(p, x)[1]

        error = check_grad(value, gradient, point)
        assert error < 1e-5


def test_branch_and_bound_decides_small_boxes() -> None:
    rng = np.random.default_rng(3)
    states = {"proven": 0, "flips": 0, "undecided": 0}
    for _ in range(30):
        problem = random_problem(rng, 4, 3, 2)
        if problem.value(np.ones(3), np.ones(2)) <= 0.05:
            continue
        state, point = prove_within(problem, 1.3, 300)
        states[state] += 1
        if point is not None:
            assert problem.value(*point) < 0
            assert extent(np.log(np.concatenate(point))) <= 1.3 + 1e-9
        if state == "proven":
            assert find_flip(problem, 1.3) is None
    assert states["proven"] > 3
    assert states["undecided"] < 3


def test_zero_difference_is_undecided() -> None:
    zero = SumOfRatios(np.array([[[1.0, -1.0]]]), None)
    assert decide(zero, 1.0) == ("undecided", None)


@pytest.mark.parametrize("shape", [(1, 3), (3, 2)])
def test_unrestricted_proofs_hold_for_extreme_steps(shape) -> None:
    """Steps over twelve orders of magnitude do not flip a proven verdict."""
    rng = np.random.default_rng(5)
    states = {"proven": 0, "flips": 0, "undecided": 0}
    for _ in range(14):
        problem = random_problem(rng, 4, *shape)
        problem.numerators[problem.numerators < -0.4] *= 0.1
        # a group without this grade
        problem.numerators[0, :, 0] = present(problem.denominators)[0, :, 0] = 0.0
        state, point = prove_unrestricted(problem, 150)
        states[state] += 1
        if point is not None:
            assert problem.value(*point) < 0
        if state == "proven":
            sides = (10.0 ** rng.uniform(-6, 6, (1000, n)) for n in shape)
            assert min(problem.value(b, a) for b, a in zip(*sides, strict=True)) > 0
    assert states["proven"] > 2
    assert states["flips"] > 2


def test_unbounded_ratios_are_undecided() -> None:
    unbounded = SumOfRatios(
        np.array([[[1.0, 1.0]], [[1.0, -0.1]]]), np.array([[[1.0, 0.0]], [[1.0, 1.0]]])
    )
    assert prove_unrestricted(unbounded, 10) == ("undecided", None)
