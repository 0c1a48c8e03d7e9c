"""The learning problem of Zhou et al. (2013), solved to its optimum with a certificate.

    min  |w - center|^2 + sum of cost * shortfall^2     over the weights of a cone

is convex, smooth and piecewise quadratic: the shortfall of a pair is the amount by which it misses
its margin, and on the active pairs, those with a shortfall, the problem is least squares.  A Newton
step solves that least-squares problem over the cone exactly (weights are images of steps >= 0) and
is followed by a line search.  Where no pair becomes active or inactive, the solution is the
optimum.  A step costs one pass over the pairs, plus work for the pairs that changed; the linear
system has as many unknowns as there are positions times grades, whatever the number of pairs.

Rounding can end the steps early, so the solver stops only at a certified gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its modules are loaded when they are first used

from firstpage.core import Bools, DataError, Floats, warn
from firstpage.core.engine import single_threaded_blas
from firstpage.evaluation.dcglearn.sums import PairSums
from firstpage.evaluation.dcglearn.weights import Cone

GRADIENT_ROUNDING_EPS = 1e-14  # of the terms of a sum: a gradient below it is rounding error
RIDGES = (0.0, 1e-15, 1e-13, 1e-11)  # added to a unit diagonal until the factorization exists
ITERATIONS_PER_VARIABLE = 10


def minimize_nonnegative(hessian: Floats, linear: Floats, start: Floats | None = None) -> Floats:
    """Return the x >= 0 that minimizes x' hessian x - 2 linear' x; `hessian` is positive definite.

    This is the active-set method of Lawson and Hanson (1974), on the normal equations.  Variables
    are scaled to a unit diagonal, and a variable enters only where its gradient exceeds the
    rounding error of its own sum: `scipy.optimize.nnls` compares all gradients with one tolerance
    that depends on the matrix alone, and stops early where `linear` is small.

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
            decrease = x - z
            ratio = np.where(negative, x / np.where(decrease > 0.0, decrease, 1.0), np.inf)
            step = float(ratio.min())
            if entering >= 0 and step == 0.0 and ratio[entering] == 0.0:
                blocked[entering] = True  # its gradient was rounding error
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
    """Return the solution with all other variables at 0, after one step of refinement."""
    solution = np.zeros(len(target))
    chosen = np.flatnonzero(passive)
    square, right = matrix.take(chosen, 0).take(chosen, 1), target[chosen]
    if len(right):
        factor = _factor(square)
        z, _ = scipy.linalg.lapack.dpotrs(factor, right)
        correction, _ = scipy.linalg.lapack.dpotrs(factor, right - square @ z)
        solution[chosen] = z + correction
    return solution


def _factor(square: Floats) -> Floats:
    """Return a Cholesky factor, with a small ridge where it does not exist otherwise.

    LAPACK is called directly: most systems are so small that SciPy's checks would take longer.
    """
    for ridge in RIDGES:
        factor, failed = scipy.linalg.lapack.dpotrf(
            square + ridge * np.eye(len(square)) if ridge else square, clean=False
        )
        if not failed:
            return np.asarray(factor)
    raise _ill_conditioned()


def _positive(diagonal: Floats) -> Floats:
    if not (np.isfinite(diagonal).all() and (diagonal > 0.0).all()):
        raise _ill_conditioned()
    return diagonal


def _ill_conditioned() -> DataError:
    return DataError(
        "the weights of the pairs, or C, are too large or too unequal for double precision; "
        "reduce their range."
    )


MAX_INTERIOR_PAIRS = 50_000
MAX_INTERIOR_ROUNDS = 20  # of adding pairs that were left out
INITIAL_SLACK = 2.0  # margins: pairs beyond it are left out at first


def interior(sums: PairSums, cone: Cone, center: Floats) -> Floats | None:
    """Return steps near the optimum by an interior-point method, or None if too many pairs matter.

    The search starts with the pairs near their margin at the current point.
    """
    chosen = sums.near_margin(INITIAL_SLACK)
    for _ in range(MAX_INTERIOR_ROUNDS):
        if chosen.sum() > MAX_INTERIOR_PAIRS:
            return None
        steps = _solve_interior(sums, cone, center, chosen)
        if steps is None:
            return None
        sums.move_to(cone.table @ steps)
        missed = sums.near_margin(0.0) & ~chosen
        if not missed.any():
            return steps
        chosen |= missed
    return None


def _solve_interior(sums: PairSums, cone: Cone, center: Floats, chosen: Bools) -> Floats | None:
    """Return the optimal steps for the chosen pairs, or None where the solver fails."""
    import piqp
    from scipy.sparse import block_diag, csc_matrix, diags_array, hstack

    pairs = sums.pairs[chosen]
    x = pairs.sparse() @ cone.table
    tied = pairs.kind == 0
    target = np.where(tied, -1.0, 1.0) * sums.margins[pairs.kind]
    cost = sums.costs[pairs.kind] * pairs.weight
    # a tie has two sides
    x, target = np.concatenate([x, -x[tied]]), np.concatenate([target, target[tied]])
    slack = 1.0 / np.sqrt(np.maximum(np.concatenate([cost, cost[tied]]), 1e-300))
    size, count = x.shape[1], len(x)
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.setup(
        P=csc_matrix(block_diag([2.0 * cone.metric, diags_array(np.full(count, 2.0))])),
        c=np.concatenate([-2.0 * cone.weights.T @ center, np.zeros(count)]),
        G=csc_matrix(hstack([csc_matrix(x), diags_array(slack)])),
        h_l=target,
        x_l=np.concatenate([np.zeros(size), np.full(count, -np.inf)]),
    )
    solver.solve()
    steps = np.asarray(solver.result.x)[:size]
    return np.maximum(steps, 0.0) if np.isfinite(steps).all() else None


MAX_STEPS = 200
MAX_FIRST_STEPS = 30  # Newton steps before the interior-point method finds the pairs that matter
LINE_SEARCH_STEPS = 40
GAP_TOLERANCE = 1e-10  # of the objective: the solver continues until the certified gap is smaller
LOOSE_GAP = 1e-8  # of the objective: a gap that the user is warned of
ROUNDING_EPS = 1e-16  # of the objective: a predicted decrease below it is rounding error
DERIVATIVE_TOLERANCE = 1e-9  # of the derivative where the line search starts
FLOAT_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Optimum:
    """The solution of a learning problem with its certificate.

    Attributes
    ----------
    steps : ndarray
        Nonnegative variables of the problem.
    weights : ndarray
        Weights as they are penalized.
    table : ndarray
        Weights relative to the worst grade at each position.
    objective : float
        Value of the objective.
    gap : float
        Certified gap: the optimum is at least `objective - gap`.
    iterations : int
        Newton steps.
    """

    steps: Floats
    weights: Floats
    table: Floats
    objective: float
    gap: float
    iterations: int


def solve(
    sums: PairSums,
    cone: Cone,
    costs: Floats,
    start: Floats | None = None,
    center: Floats | None = None,
) -> Optimum:
    """Return the optimum for these costs, starting from the steps of a similar problem if given."""
    middle = np.zeros(len(cone.weights)) if center is None else center
    d = np.zeros(cone.table.shape[1]) if start is None else start
    with single_threaded_blas():
        return _NewtonSolver(sums, cone, costs, middle).solve(d)


def center_rounding(cone: Cone, center: Floats) -> float:
    """Return what rounding alone adds to a gap; it dominates where the optimum is the center.

    Gradients are sums of as many terms as there are weights, each rounded twice, of the size of
    the center; the gap is their square over the smallest eigenvalue of the metric.
    """
    return (2.0 * FLOAT_EPS) ** 2 * len(center) * cone.condition * float(center @ center)


class _NewtonSolver:
    """Newton steps for one learning problem."""

    def __init__(self, sums: PairSums, cone: Cone, costs: Floats, center: Floats) -> None:
        self.sums, self.cone, self.center = sums, cone, center
        sums.costs[:] = costs
        self.metric, self.center_gradient = cone.metric, cone.weights.T @ center
        self.rounding = center_rounding(cone, center)

    def solve(self, d: Floats) -> Optimum:
        """Return the optimum, starting from the steps `d`."""
        best = self._newton(d, MAX_FIRST_STEPS, 0)
        if best.gap > self._tolerance(best, GAP_TOLERANCE):
            start = interior(self.sums, self.cone, self.center)
            polished = self._newton(
                best.steps if start is None else start, MAX_STEPS, best.iterations
            )
            best = min(best, polished, key=lambda optimum: optimum.gap)
            if best is not polished:
                self._move_to(best.steps)
        if best.gap > self._tolerance(best, LOOSE_GAP):
            warn(
                f"DCGLearn stopped after {best.iterations} steps with a certified gap of "
                f"{best.gap / best.objective:.1g} of the objective: the weights of the pairs, or "
                "C, are too unequal; reduce their range."
            )
        return best

    def _tolerance(self, optimum: Optimum, fraction: float) -> float:
        return fraction * optimum.objective + self.rounding

    def _newton(self, d: Floats, limit: int, iterations: int) -> Optimum:
        """Take Newton steps from `d` until none improves, or `limit` in all."""
        self._move_to(d)
        while iterations < limit:
            iterations += 1
            target = self._least_squares(d)
            t = self._line_search(d, target)
            if t == 0.0:
                break
            d = target if t == 1.0 else np.maximum(d + t * (target - d), 0.0)  # below 0 by rounding
            changed = self._move_to(d)
            if changed == 0 and t == 1.0:
                break
        return self._certified(d, iterations)

    def _move_to(self, d: Floats) -> int:
        self.sums.move_to(self.cone.table @ d)
        return self.sums.update_active()

    def _least_squares(self, d: Floats) -> Floats:
        """Return the optimal steps >= 0 of the problem with the active pairs only."""
        square, targets = self.sums.normal_equations()
        table = self.cone.table
        hessian = self.metric + table.T @ square @ table
        return minimize_nonnegative(hessian, self.center_gradient + table.T @ targets, d)

    def _line_search(self, d: Floats, target: Floats) -> float:
        """Return the best step size toward the target (at 1); 0 for a gain by rounding."""
        direction = target - d
        self.sums.set_direction(self.cone.table @ direction)
        first = float(direction @ (self.metric @ d - self.center_gradient))
        second = float(direction @ self.metric @ direction)
        start_derivative, _, cost = self.sums.line_derivatives(0.0)
        initial = first + start_derivative
        if -initial <= ROUNDING_EPS * (cost + float(d @ self.metric @ d)):
            return 0.0
        decreasing = direction < 0.0
        boundary = float((d[decreasing] / -direction[decreasing]).min(initial=np.inf))
        low, high, t = 0.0, max(boundary, 1.0), 1.0
        for _ in range(LINE_SEARCH_STEPS):  # piecewise linear derivative: Newton converges soon
            a, b, _ = self.sums.line_derivatives(t)
            derivative, curvature = first + t * second + a, second + b
            if abs(derivative) <= DERIVATIVE_TOLERANCE * -initial or (
                derivative < 0.0 and t == high
            ):
                break
            low, high = (t, high) if derivative < 0.0 else (low, t)
            newton = min(t - derivative / curvature, high)
            t = newton if low < newton else 0.5 * (low + high)
        return t

    def _certified(self, d: Floats, iterations: int) -> Optimum:
        """Return the solution with its certified gap.

        The forces of the pairs (cost times shortfall) are a dual solution.  Its value is the
        minimum of q(x) = |W x - center|^2 - 2 force' x over x >= 0, plus terms that cancel against
        the cost, so the gap is q(d) - min q.  It is computed as a distance from the minimum,
        without cancellation.  The residual of the optimality conditions that rounding leaves is
        bounded by the curvature of q, and added.
        """
        cost, _ = self.sums.cost()
        weights, table = self.cone.weights @ d, self.cone.table @ d
        offset = weights - self.center
        linear = self.center_gradient + self.cone.table.T @ self.sums.negative_half_gradient()
        x = minimize_nonnegative(self.metric, linear, d)
        gradient = self.metric @ x - linear  # half the gradient of q, at x
        decrease = np.minimum(
            gradient / self.cone.smallest_eigenvalue, x
        )  # bound of the error of x
        inexact = decrease @ (2.0 * gradient - self.cone.smallest_eigenvalue * decrease)
        distance = d - x
        gap = float(distance @ self.metric @ distance + 2.0 * gradient @ distance + inexact)
        return Optimum(d, weights, table, float(offset @ offset) + cost, max(gap, 0.0), iterations)
