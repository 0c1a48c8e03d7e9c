"""The parts of a proof: bounds lie below all that is seen, gradients are those of differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad

from firstpage.dcglearn.certificates.bounds import Box, least_ratio, lower_bound
from firstpage.dcglearn.certificates.problem import Problem
from firstpage.dcglearn.certificates.proofs import branch, decide, everywhere, extent, slope, turned


def made(rng, groups: int, rows: int, columns: int) -> Problem:
    below = rng.uniform(0.1, 2.0, (groups, rows, columns))
    return Problem(rng.normal(0.1, 1.0, below.shape), below)


def inside(rng, low, high, count: int):
    share = rng.choice([0.0, 1.0], (count, len(low)))
    share = np.where(rng.random(share.shape) < 0.5, share, rng.random(share.shape))
    return low * (high / low) ** share


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 3), (3, 2), (4, 3)])
def test_no_difference_in_a_box_is_below_its_bound(shape) -> None:
    rng = np.random.default_rng(sum(shape))
    for _ in range(15):
        problem = made(rng, int(rng.integers(1, 6)), *shape)
        low = rng.uniform(0.3, 1.0, shape[0]) if shape[0] > 1 else np.ones(1)
        rows = low, low * (rng.uniform(1.0, 3.0, shape[0]) if shape[0] > 1 else 1.0)
        low = rng.uniform(0.3, 1.0, shape[1])
        columns = low, low * rng.uniform(1.0, 3.0, shape[1])
        bound = lower_bound(problem, Box(rows, columns))
        seen = [
            problem.value(b, a)
            for b, a in zip(inside(rng, *rows, 400), inside(rng, *columns, 400), strict=True)
        ]
        assert min(seen) >= bound.value - 1e-12
        assert problem.value(bound.rows, bound.columns) >= bound.value - 1e-12


def test_a_box_that_is_a_point_has_its_value_for_bound() -> None:
    rng = np.random.default_rng(0)
    problem = made(rng, 4, 3, 2)
    b, a = rng.random(3) + 0.5, rng.random(2) + 0.5
    assert lower_bound(problem, Box((b, b), (a, a))).value == pytest.approx(problem.value(b, a))


def test_the_least_ratio_is_at_a_corner() -> None:
    rng = np.random.default_rng(1)
    above, below = rng.normal(size=(5, 6)), rng.random((5, 6))
    low, high = np.full(6, 0.5), np.full(6, 3.0)
    bits = (np.arange(64)[:, None] >> np.arange(6)) & 1
    corners = np.where(bits, high, low)
    want = ((above @ corners.T) / (below @ corners.T)).min(axis=1)
    assert least_ratio(above, below, low, high) == pytest.approx(want)


def test_slopes_are_those_of_the_difference() -> None:
    rng = np.random.default_rng(2)
    for shape in ((1, 4), (3, 2)):
        problem = made(rng, 3, *shape)
        at = rng.normal(size=sum(shape))
        off = check_grad(
            lambda x, p=problem: slope(p, x)[0], lambda x, p=problem: slope(p, x)[1], at
        )
        assert off < 1e-5


@pytest.mark.slow
def test_branching_decides_small_boxes() -> None:
    rng = np.random.default_rng(3)
    states = {"proven": 0, "flips": 0, "undecided": 0}
    for _ in range(30):
        problem = made(rng, 4, 3, 2)
        if problem.value(np.ones(3), np.ones(2)) <= 0.05:
            continue
        state, point = branch(problem, 1.3, 300)
        states[state] += 1
        if point is not None:
            assert problem.value(*point) < 0
            assert extent(np.log(np.concatenate(point))) <= 1.3 + 1e-9
        if state == "proven":
            assert turned(problem, 1.3) is None
    assert states["proven"] > 3
    assert states["undecided"] < 3


def test_a_difference_of_nothing_decides_nothing() -> None:
    flat = Problem(np.array([[[1.0, -1.0]]]), None)
    assert decide(flat, 1.0) == ("undecided", None)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 3), (3, 2)])
def test_a_proof_for_steps_of_any_size(shape) -> None:
    """Steps over twelve orders of magnitude do not turn what is proven for all."""
    rng = np.random.default_rng(5)
    states = {"proven": 0, "flips": 0, "undecided": 0}
    for _ in range(14):
        problem = made(rng, 4, *shape)
        problem.above[problem.above < -0.4] *= 0.1
        problem.below[0, :, 0] = problem.above[0, :, 0] = 0.0  # a group without this grade
        state, point = everywhere(problem, 150)
        states[state] += 1
        if point is not None:
            assert problem.value(*point) < 0
        if state == "proven":
            sides = (10.0 ** rng.uniform(-6, 6, (1000, n)) for n in shape)
            assert min(problem.value(b, a) for b, a in zip(*sides, strict=True)) > 0
    assert states["proven"] > 2
    assert states["flips"] > 2


def test_ratios_without_bounds_are_left_open() -> None:
    odd = Problem(np.array([[[1.0, 1.0]], [[1.0, -0.1]]]), np.array([[[1.0, 0.0]], [[1.0, 1.0]]]))
    assert everywhere(odd, 10) == ("undecided", None)
