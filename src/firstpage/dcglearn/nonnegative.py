"""Quadratic functions minimized over nonnegative variables, to rounding error."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from firstpage.errors import DataError
from firstpage.types import Bools, Floats

ROUNDING_EPS = 1e-14  # of the terms of a sum: a gradient below it is rounding error
RIDGES = (0.0, 1e-15, 1e-13, 1e-11)  # added to a unit diagonal until the factorization exists
ITERATIONS_PER_VARIABLE = 10


def minimize_nonnegative(
    hessian: Floats, linear: Floats, start: Floats | None = None
) -> Floats:  # fmt: skip
    """Return the x >= 0 that minimizes x' hessian x - 2 linear' x; `hessian` is positive definite.

    The active-set method of Lawson and Hanson (1974), on the normal equations.  Variables are
    scaled to a unit diagonal, and a variable enters only where its gradient exceeds the rounding
    error of its own sum: `scipy.optimize.nnls` compares all gradients with one tolerance that
    depends on the matrix alone, and stops early where `linear` is small.

    `start` suggests which variables are positive; without it all are, until they turn negative.
    """
    scale = 1.0 / np.sqrt(_positive(np.diagonal(hessian)))
    matrix, target = hessian * np.outer(scale, scale), linear * scale
    size = len(target)
    x = np.zeros(size) if start is None else start / scale
    passive: Bools = x > 0.0 if x.any() else np.ones(size, bool)
    blocked: Bools = np.zeros(size, bool)
    entering = -1
    for _ in range(ITERATIONS_PER_VARIABLE * size + 10):
        z = _solve(matrix, target, passive)
        negative = passive & (z <= 0.0)
        if negative.any():
            away = x - z
            ratio = np.where(negative, x / np.where(away > 0.0, away, 1.0), np.inf)
            step = float(ratio.min())
            if entering >= 0 and step == 0.0 and ratio[entering] == 0.0:
                blocked[entering] = True  # only rounding error wanted it
            passive &= ratio > step
            x = np.where(passive, x + step * (z - x), 0.0)
            entering = -1
            continue
        if entering >= 0:
            blocked[:] = False  # the point has moved
        x = z
        gradient = target - matrix @ x
        gradient[passive | blocked] = 0.0
        gradient[gradient <= ROUNDING_EPS * (np.abs(target) + np.abs(matrix) @ x)] = 0.0
        entering = int(gradient.argmax())
        if gradient[entering] == 0.0:
            break
        passive[entering] = True
    return np.maximum(x, 0.0) * scale


def _solve(matrix: Floats, target: Floats, passive: Bools) -> Floats:
    """The solution with all other variables at 0, refined once."""
    solution = np.zeros(len(target))
    square, right = matrix[np.ix_(passive, passive)], target[passive]
    if len(right):
        factor = _factor(square)
        z = cho_solve(factor, right, check_finite=False)
        solution[passive] = z + cho_solve(factor, right - square @ z, check_finite=False)
    return solution


def _factor(square: Floats) -> tuple[Floats, bool]:
    for ridge in RIDGES:
        try:
            factor, lower = cho_factor(square + ridge * np.eye(len(square)), check_finite=False)
        except LinAlgError:
            continue
        return np.asarray(factor), bool(lower)
    raise _ill_conditioned()


def _positive(diagonal: Floats) -> Floats:
    if not (np.isfinite(diagonal).all() and (diagonal > 0.0).all()):
        raise _ill_conditioned()
    return diagonal


def _ill_conditioned() -> DataError:
    return DataError(
        "the weights of the pairs, or C, are too large or too unequal for double precision; "
        "bring them closer together."
    )
