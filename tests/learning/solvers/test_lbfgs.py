"""L-BFGS on functions whose minimum is known, against SciPy's, and where values are rounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from firstpage.core.types import Floats
from firstpage.learning.solvers.lbfgs import LBFGS

ValueGradient = Callable[[Floats], tuple[float, Floats]]


@dataclass
class Plain:
    """A function of parameters as an objective."""

    function: ValueGradient
    relative_error: float = 0.0
    T: Floats | None = None
    calls: list[Floats] = field(default_factory=list)

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        self.calls.append(params)
        return self.function(params)

    def preconditioner(self) -> Floats | None:
        return self.T


def solve(objective: Plain, start: Floats, **options: Any):
    return LBFGS(**options).minimize(objective, start)  # type: ignore[arg-type]


def quadratic(size: int, condition: float, seed: int = 0) -> tuple[ValueGradient, Floats]:
    """Return a quadratic function whose least value is 3, and where that is."""
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(size, size)))
    matrix = rotation @ np.diag(np.geomspace(1.0, condition, size)) @ rotation.T
    center = rng.normal(size=size)

    def function(x: Floats) -> tuple[float, Floats]:
        away = x - center
        return 3.0 + 0.5 * float(away @ matrix @ away), matrix @ away

    return function, center


def logistic(size: int, seed: int) -> ValueGradient:
    """Return a regularized logistic loss of random pairs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, size)) * rng.lognormal(sigma=1.5, size=size)

    def function(w: Floats) -> tuple[float, Floats]:
        margins = X @ w
        value = float(np.logaddexp(0.0, -margins).mean() + 0.005 * w @ w)
        return value, -X.T @ (1.0 / (1.0 + np.exp(margins))) / len(X) + 0.01 * w

    return function


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("size", [1, 5, 60])
def test_quadratic_functions(size: int, condition: float) -> None:
    function, center = quadratic(size, condition)
    result = solve(Plain(function), np.zeros(size), max_iter=2000)
    assert result.converged
    # It stops at a step that gains 1e-12 of the start; what is left depends on rounding, and was up
    # to 100 times that (condition 10,000).
    assert result.value - 3.0 <= 1e-9 * function(np.zeros(size))[0]
    assert result.params == pytest.approx(center, abs=0.01)


@pytest.mark.parametrize("seed", range(10))
def test_values_and_number_of_calls_are_those_of_scipy(seed: int) -> None:
    function = logistic(8, seed)
    objective = Plain(function)
    ours = solve(objective, np.zeros(8))
    options: Any = {"maxcor": 20, "ftol": 1e-12, "gtol": 1e-9}
    theirs = minimize(function, np.zeros(8), jac=True, method="L-BFGS-B", options=options)
    assert ours.converged
    assert ours.value == pytest.approx(theirs.fun, rel=1e-9)
    assert len(objective.calls) <= 1.5 * theirs.nfev + 5


def test_a_curved_valley_that_is_not_convex() -> None:
    start = np.array([-1.2, 1.0, -0.5, 2.0])
    result = solve(Plain(lambda x: (float(rosen(x)), rosen_der(x))), start, max_iter=500)
    assert result.params == pytest.approx(np.ones(4), abs=1e-4)


def test_coordinates_do_not_change_the_minimum() -> None:
    function, center = quadratic(6, 100.0)
    rng = np.random.default_rng(1)
    for T in (np.geomspace(0.1, 10.0, 6), rng.normal(size=(6, 6)) + 3 * np.eye(6)):
        for start in (np.zeros(6), rng.normal(size=6)):
            result = solve(Plain(function, T=T), start, max_iter=2000)
            assert result.value - 3.0 <= 1e-10 * function(start)[0]
            assert result.params == pytest.approx(center, abs=0.01)


@pytest.mark.parametrize("digits", [7, 10, 13])
def test_rounded_values_end_near_the_minimum(digits: int) -> None:
    """The gradient is exact, as in sums whose terms cancel in the value alone."""
    function, center = quadratic(5, 100.0)

    def rounded(x: Floats) -> tuple[float, Floats]:
        value, gradient = function(x)
        return round(value, digits), gradient

    result = solve(Plain(rounded, relative_error=10.0**-digits), np.zeros(5))
    assert result.converged
    assert np.abs(result.params - center).max() < 10 * 10.0 ** (-digits / 2)


def test_rounding_that_is_not_announced_does_no_harm() -> None:
    function, center = quadratic(5, 100.0)
    result = solve(
        Plain(lambda x: (float(np.float32(function(x)[0])), function(x)[1])), np.zeros(5)
    )
    assert np.abs(result.params - center).max() < 0.01


def test_infinite_values_shorten_the_step() -> None:
    """-log(1 - |x|^2) is infinite outside the unit ball; its gradient is not a number there."""

    def barrier(x: Floats) -> tuple[float, Floats]:
        rest = 1.0 - float(x @ x)
        if rest <= 0.0:
            return np.inf, np.full(len(x), np.nan)
        return -float(np.log(rest)) - 5.0 * x[0], 2.0 * x / rest - 5.0 * np.eye(len(x))[0]

    result = solve(Plain(barrier), np.zeros(3))
    assert result.converged
    assert result.params == pytest.approx([(np.sqrt(26.0) - 1.0) / 5.0, 0, 0], abs=1e-5)


def test_the_start_may_be_the_minimum() -> None:
    function, center = quadratic(4, 10.0)
    at_center = solve(Plain(lambda x: (1.0, np.zeros(4))), np.zeros(4))
    assert (at_center.iterations, at_center.converged) == (0, True)
    again = solve(Plain(function), center + 1e-9)
    assert again.converged
    assert again.value == pytest.approx(3.0)


def test_values_that_are_not_finite_at_the_start_are_returned_as_such() -> None:
    for value, gradient in ((np.inf, np.ones(2)), (1.0, np.array([np.nan, 1.0]))):
        pair = (value, gradient)
        result = solve(Plain(partial(lambda pair, x: pair, pair)), np.zeros(2))
        assert np.isnan(result.value)
        assert not result.converged


def test_a_gradient_that_points_uphill_is_no_minimum() -> None:
    function, _ = quadratic(4, 10.0)
    wrong = solve(Plain(lambda x: (function(x)[0], -function(x)[1])), np.zeros(4))
    assert not wrong.converged
    assert wrong.reason == "no step lowers the objective"


def test_iterations_are_limited_and_can_be_stopped() -> None:
    function, _ = quadratic(20, 1e4)
    limited = solve(Plain(function), np.zeros(20), max_iter=3)
    assert (limited.iterations, limited.converged, limited.exhausted) == (3, False, True)
    seen: list[float] = []

    def stop(iteration: int, value: float, params: Floats) -> bool:
        assert function(params)[0] == pytest.approx(value)
        seen.append(value)
        return iteration == 5

    stopped = LBFGS().minimize(Plain(function), np.zeros(20), stop)  # type: ignore[arg-type]
    assert (stopped.iterations, stopped.converged, stopped.exhausted) == (5, False, False)
    assert stopped.reason == "stopped early"
    assert seen == sorted(seen, reverse=True)
