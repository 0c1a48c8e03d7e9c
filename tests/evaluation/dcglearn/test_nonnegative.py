"""Quadratic minima over nonnegative variables, compared with enumeration of supports."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.evaluation.dcglearn.solver import minimize_nonnegative


def value(x, hessian, linear) -> float:
    return float(x @ hessian @ x - 2.0 * linear @ x)


def by_enumeration(hessian, linear):
    """Return the best nonnegative solution over all 2^n supports."""
    best = np.zeros(len(linear))
    for chosen in product([False, True], repeat=len(linear)):
        support = np.flatnonzero(chosen)
        x = np.zeros(len(linear))
        x[support] = np.linalg.solve(hessian[np.ix_(support, support)], linear[support])
        if (x >= 0).all() and value(x, hessian, linear) < value(best, hessian, linear):
            best = x
    return best


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1.0, 1e6])  # of the linear term
@pytest.mark.parametrize("seed", range(15))
def test_minimum_matches_enumeration_of_supports(seed, size):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    root = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-3, 3, n)
    hessian, linear = root.T @ root + 1e-3 * np.eye(n), size * rng.normal(size=n)
    best = value(by_enumeration(hessian, linear), hessian, linear)
    for start in (None, np.zeros(n), np.abs(rng.normal(size=n)), np.full(n, 1e-16)):
        x = minimize_nonnegative(hessian, linear, start)
        assert (x >= 0).all()
        assert value(x, hessian, linear) <= best + 1e-12 * abs(best)


def test_singular_matrix_has_the_minimal_sum():
    """A singular matrix has many minima, all with the same sum."""
    square = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert minimize_nonnegative(square, np.array([2.0, 2.0])).sum() == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_matrix_beyond_double_precision_raises(bad):
    with pytest.raises(DataError, match="too large or too unequal"):
        minimize_nonnegative(np.diag([1.0, bad]), np.ones(2))
