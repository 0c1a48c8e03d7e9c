"""The learning problem of Zhou et al. (2013), solved to its optimum with a certificate.

    min  |w - center|^2 + sum of cost * shortfall^2     over the weights of a cone

is convex, smooth and piecewise quadratic: the shortfall of a pair is what its margin lacks, and on
the pairs that lack something the problem is least squares.  A Newton step solves that
least-squares problem over the cone exactly (weights are images of steps >= 0) and then searches
the line to its solution.  Where no pair changes sides, that is the optimum.  A step costs one pass
over the pairs, plus work for the pairs that changed sides; the system that is solved has as many
unknowns as there are positions times grades, whatever the number of pairs.

Rounding can end the steps early, so the solver does not trust them: it stops at a certified gap.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from firstpage.dcglearn.sums import AnySums
from firstpage.dcglearn.weights import Cone
from firstpage.engine.threads import single_threaded_blas
from firstpage.errors import DataError, FirstpageWarning
from firstpage.types import Bools, Floats

GRADIENT_ROUNDING_EPS = 1e-14  # of the terms of a sum: a gradient below it is rounding error
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
        gradient[gradient <= GRADIENT_ROUNDING_EPS * (np.abs(target) + np.abs(matrix) @ x)] = 0.0
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


LARGEST = 50_000  # pairs that it is given
ROUNDS = 20  # of adding pairs that were overlooked
NEAR = 2.0  # margins


def interior(sums: AnySums, cone: Cone, center: Floats) -> Floats | None:
    """Steps near the optimum, or None where too many pairs matter; looks around the point."""
    chosen = sums.lacking(NEAR)
    for _ in range(ROUNDS):
        if chosen.sum() > LARGEST:
            return None
        found = _solved(sums, cone, center, chosen)
        if found is None:
            return None
        sums.move_to(cone.table @ found)
        lost = sums.lacking(0.0) & ~chosen
        if not lost.any():
            return found
        chosen |= lost
    return None


def _solved(sums: AnySums, cone: Cone, center: Floats, chosen: Bools) -> Floats | None:
    import piqp
    from scipy.sparse import block_diag, csc_matrix, diags_array, hstack

    pairs = sums.picked(chosen)
    x = pairs.sparse() @ cone.table
    tied = pairs.kind == 0
    aim = np.where(tied, -1.0, 1.0) * sums.margins[pairs.kind]
    cost = sums.costs[pairs.kind] * pairs.weight
    x, aim = np.concatenate([x, -x[tied]]), np.concatenate([aim, aim[tied]])  # a tie has two sides
    slack = 1.0 / np.sqrt(np.maximum(np.concatenate([cost, cost[tied]]), 1e-300))
    size, count = x.shape[1], len(x)
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.setup(
        P=csc_matrix(block_diag([2.0 * cone.metric, diags_array(np.full(count, 2.0))])),
        c=np.concatenate([-2.0 * cone.weights.T @ center, np.zeros(count)]),
        G=csc_matrix(hstack([csc_matrix(x), diags_array(slack)])),
        h_l=aim,
        x_l=np.concatenate([np.zeros(size), np.full(count, -np.inf)]),
    )
    solver.solve()
    found = np.asarray(solver.result.x)[:size]
    return np.maximum(found, 0.0) if np.isfinite(found).all() else None


MAX_STEPS = 200
PATIENCE = 30  # Newton steps before the interior-point method looks for the few pairs that matter
LINE_SEARCH_STEPS = 40
GAP_TOLERANCE = 1e-10  # of the objective: the solver goes on until the gap is certified to be less
LOOSE_GAP = 1e-8  # of the objective: a gap that the user is warned of
ROUNDING_EPS = 1e-16  # of the objective: a predicted decrease below it is rounding error
FLAT = 1e-9  # of the derivative where the line search starts
FLOAT_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Optimum:
    """weights: w as it is penalized; table: the same less the worst grade's, position by position.

    The true optimum is not lower than `objective - gap`.
    """

    steps: Floats
    weights: Floats
    table: Floats
    objective: float
    gap: float
    rounds: int


def solve(
    sums: AnySums, cone: Cone, costs: Floats, start: Floats | None = None,
    center: Floats | None = None,
) -> Optimum:  # fmt: skip
    """Return the optimum for these costs; `start` are steps to begin with, of a similar problem."""
    middle = np.zeros(len(cone.weights)) if center is None else center
    d = np.zeros(cone.table.shape[1]) if start is None else start
    with single_threaded_blas():
        return _Problem(sums, cone, costs, middle).solve(d)


def center_rounding(cone: Cone, center: Floats) -> float:
    """What rounding alone adds to a gap: all there is where the optimum is the center itself.

    Gradients are sums of as many terms as there are weights, each rounded twice, of the size of
    the center; the gap is their square over the smallest eigenvalue of the metric.
    """
    return (2.0 * FLOAT_EPS) ** 2 * len(center) * cone.condition * float(center @ center)


class _Problem:
    def __init__(self, sums: AnySums, cone: Cone, costs: Floats, center: Floats) -> None:
        self.sums, self.cone, self.center = sums, cone, center
        sums.costs[:] = costs
        self.metric, self.pull_to_center = cone.metric, cone.weights.T @ center
        self.rounding = center_rounding(cone, center)

    def solve(self, d: Floats) -> Optimum:
        best = self._newton(d, PATIENCE, 0)
        if best.gap > self._tolerance(best, GAP_TOLERANCE):
            start = interior(self.sums, self.cone, self.center)
            polished = self._newton(best.steps if start is None else start, MAX_STEPS, best.rounds)
            best = min(best, polished, key=lambda optimum: optimum.gap)
            if best is not polished:
                self._move_to(best.steps)
        if best.gap > self._tolerance(best, LOOSE_GAP):
            warnings.warn(
                f"DCGLearn stopped after {best.rounds} steps with a certified gap of "
                f"{best.gap / best.objective:.1g} of the objective: the weights of the pairs, or "
                "C, are too unequal.",
                FirstpageWarning,
                stacklevel=4,
            )
        return best

    def _tolerance(self, optimum: Optimum, fraction: float) -> float:
        return fraction * optimum.objective + self.rounding

    def _newton(self, d: Floats, limit: int, rounds: int) -> Optimum:
        """Newton steps from `d`, until none is left, or `limit` in all."""
        self._move_to(d)
        while rounds < limit:
            rounds += 1
            target = self._least_squares(d)
            t = self._line_search(d, target)
            if t == 0.0:
                break
            d = target if t == 1.0 else np.maximum(d + t * (target - d), 0.0)  # but for rounding
            changed = self._move_to(d)
            if changed == 0 and t == 1.0:
                break
        return self._certified(d, rounds)

    def _move_to(self, d: Floats) -> int:
        self.sums.move_to(self.cone.table @ d)
        return self.sums.regroup()

    def _least_squares(self, d: Floats) -> Floats:
        """The optimal steps >= 0 if the pairs that lack something were all there are."""
        square, aims = self.sums.normal()
        table = self.cone.table
        hessian = self.metric + table.T @ square @ table
        return minimize_nonnegative(hessian, self.pull_to_center + table.T @ aims, d)

    def _line_search(self, d: Floats, target: Floats) -> float:
        """The best step size toward the target, 1 being there; 0 where only rounding is gained."""
        direction = target - d
        self.sums.aim(self.cone.table @ direction)
        first = float(direction @ (self.metric @ d - self.pull_to_center))
        second = float(direction @ self.metric @ direction)
        at_start, _, cost = self.sums.slope_at(0.0)
        begin = first + at_start
        if -begin <= ROUNDING_EPS * (cost + float(d @ self.metric @ d)):
            return 0.0
        falling = direction < 0.0
        boundary = float((d[falling] / -direction[falling]).min(initial=np.inf))
        low, high, t = 0.0, max(boundary, 1.0), 1.0
        for _ in range(LINE_SEARCH_STEPS):  # the derivative is piecewise linear: Newton ends soon
            a, b, _ = self.sums.slope_at(t)
            derivative, curvature = first + t * second + a, second + b
            if abs(derivative) <= FLAT * -begin or (derivative < 0.0 and t == high):
                break
            low, high = (t, high) if derivative < 0.0 else (low, t)
            newton = min(t - derivative / curvature, high)
            t = newton if low < newton else 0.5 * (low + high)
        return t

    def _certified(self, d: Floats, rounds: int) -> Optimum:
        """The solution with its gap: how far it is from the optimum under its own forces.

        The forces that the pairs exert here are a dual solution.  Its value is the minimum of
        q(x) = |W x - center|^2 - 2 force' x over x >= 0 plus what cancels against the cost here, so
        the gap is q(d) - min q: as a distance from the minimum, without cancellation.  What
        rounding leaves of the minimum's conditions is bounded by the curvature of q, and added.
        """
        cost, _ = self.sums.cost()
        weights, table = self.cone.weights @ d, self.cone.table @ d
        off = weights - self.center
        linear = self.pull_to_center + self.cone.table.T @ self.sums.pull()
        x = minimize_nonnegative(self.metric, linear, d)
        gradient = self.metric @ x - linear  # half of it, at the minimum
        decrease = np.minimum(gradient / self.cone.smallest_eigenvalue, x)  # x can still move by
        inexact = decrease @ (2.0 * gradient - self.cone.smallest_eigenvalue * decrease)
        apart = d - x
        gap = float(apart @ self.metric @ apart + 2.0 * gradient @ apart + inexact)
        return Optimum(d, weights, table, float(off @ off) + cost, max(gap, 0.0), rounds)
