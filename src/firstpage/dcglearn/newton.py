"""The learning problem of Zhou et al. (2013) to its optimum, with a certificate.

    min  |w - centre|^2 + sum of cost * (what the margin lacks)^2     over the weights of a cone

is smooth, convex and quadratic in pieces: on the pairs that lack something it is least squares.
A step solves that least-squares problem over the cone exactly (the weights are images of steps
>= 0), then goes along the line to it as far as is best.  When no pair changes sides, it is the
optimum.  The cost of a step is one look at the pairs, and the pairs that changed sides; what is
solved has as many unknowns as there are places times grades, however many pairs.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import lsq_linear, nnls

from firstpage.dcglearn.cone import Cone
from firstpage.dcglearn.interior import interior
from firstpage.dcglearn.sums import AnySums
from firstpage.engine.threads import quiet_blas
from firstpage.errors import DataError, FirstpageWarning
from firstpage.types import Floats

STEPS = 200
PATIENCE = 30  # steps after which the few pairs that matter are found otherwise
LOOKS = 40  # along one line
LOOSE = 1e-5  # a gap, of the objective, that a person should know of
ENOUGH = 1e-16  # of the objective: a step that promises less is rounding
FLAT = 1e-9  # a slope along the line, relative to that at its start, that is level


@dataclass(frozen=True, eq=False)
class Optimum:
    """weights: w as it is penalised; table: the same less the worst grade's, place by place.

    The true optimum is not better than `objective - gap`.
    """

    steps: Floats
    weights: Floats
    table: Floats
    objective: float
    gap: float
    rounds: int


def solve(
    sums: AnySums, cone: Cone, costs: Floats, start: Floats | None = None,
    centre: Floats | None = None,
) -> Optimum:  # fmt: skip
    """The optimum for these costs; `start` are steps to begin with, from a problem alike."""
    middle = np.zeros(len(cone.weights)) if centre is None else centre
    d = np.zeros(cone.table.shape[1]) if start is None else start
    with quiet_blas():
        return _Problem(sums, cone, costs, middle).solve(d)


class _Problem:
    def __init__(self, sums: AnySums, cone: Cone, costs: Floats, centre: Floats) -> None:
        self.sums, self.cone, self.centre = sums, cone, centre
        sums.costs[:] = costs
        self.metric, self.wish = cone.metric, cone.weights.T @ centre

    def solve(self, d: Floats) -> Optimum:
        self.sums.move_to(self.cone.table @ d)
        self.sums.regroup()
        rounds = 0
        while rounds < STEPS:
            if rounds == PATIENCE:
                d = self._rescued(d)
            rounds += 1
            aim = self._least_squares()
            far = self._along(d, aim)
            d = aim if far == 1.0 else np.maximum(d + far * (aim - d), 0.0)  # but for rounding
            self.sums.move_to(self.cone.table @ d)
            changed = self.sums.regroup()
            if far == 0.0 or (changed == 0 and far == 1.0):
                break
        return self._certified(d, rounds)

    def _rescued(self, d: Floats) -> Floats:
        found = interior(self.sums, self.cone, self.centre)
        best = d if found is None else found
        self.sums.move_to(self.cone.table @ best)
        self.sums.regroup()
        return best

    def _least_squares(self) -> Floats:
        """The best steps >= 0, if the pairs that lack something were all there are."""
        square, aims = self.sums.normal()
        table = self.cone.table
        left = self.metric + table.T @ square @ table
        return bounded(left, self.wish + table.T @ aims)

    def _along(self, d: Floats, aim: Floats) -> float:
        """How far to go towards the aim, 1 being there; 0 where going promises only rounding."""
        way = aim - d
        self.sums.aim(self.cone.table @ way)
        first = float(way @ (self.metric @ d - self.wish))
        second = float(way @ self.metric @ way)
        at_start, _, cost = self.sums.slope_at(0.0)
        begin = first + at_start
        if -begin <= ENOUGH * (cost + float(d @ self.metric @ d)):
            return 0.0
        back = way < 0.0
        end = float((d[back] / -way[back]).min(initial=np.inf))  # where a step would fall below 0
        low, high, t = 0.0, max(end, 1.0), 1.0
        for _ in range(LOOKS):  # the slope is linear in pieces: Newton's steps end soon
            a, b, _ = self.sums.slope_at(t)
            value, bend = first + t * second + a, second + b
            if abs(value) <= FLAT * -begin or (value < 0.0 and t == high):
                break
            low, high = (t, high) if value < 0.0 else (low, t)
            newton = min(t - value / bend, high)
            t = newton if low < newton else 0.5 * (low + high)
        return t

    def _certified(self, d: Floats, rounds: int) -> Optimum:
        """With a lower bound: the value of the dual problem at the forces of this solution."""
        cost, dual = self.sums.cost()
        weights, table = self.cone.weights @ d, self.cone.table @ d
        off = weights - self.centre
        objective = float(off @ off) + cost
        force = self.cone.table.T @ self.sums.pull()  # in steps, half the slope
        best = bounded(self.metric, self.wish + force)  # of |w|^2 - 2 w.(force + centre)
        near = self.cone.weights @ best
        bound = dual + float(self.centre @ self.centre) - float(near @ near)
        gap = max(objective - bound, 0.0)
        if gap > LOOSE * objective:
            warnings.warn(
                f"DCGLearn stopped after {rounds} steps; the objective is known to be within "
                f"{gap / objective:.1g} of the optimum only: weights or C are too unequal.",
                FirstpageWarning,
                stacklevel=2,
            )
        return Optimum(d, weights, table, objective, gap, rounds)


def bounded(square: Floats, wish: Floats) -> Floats:
    """The d >= 0 that makes d'(square)d - 2 wish'd least; `square` is positive definite."""
    root = _root(square)
    aim = solve_triangular(root, wish, trans="T", check_finite=False)
    try:
        return np.asarray(nnls(root, aim)[0])
    except RuntimeError:  # it turned in circles, by rounding
        found = lsq_linear(root, aim, (0.0, np.inf), method="bvls", tol=1e-14)
        return np.maximum(np.asarray(found.x), 0.0)


def _root(square: Floats) -> Floats:
    """An upper triangle with root'root = square; what rounding took is given back."""
    size = float(np.trace(square)) / len(square)
    if not np.isfinite(square).all():
        size = np.nan
    for little in (0.0, 1e-15, 1e-13, 1e-11) if np.isfinite(size) else ():
        try:
            return np.asarray(
                cholesky(square + little * size * np.eye(len(square)), check_finite=False)
            )
        except LinAlgError:
            continue
    raise DataError(
        "the weights of the pairs, or C, are so large or unequal that numbers do not suffice; "
        "bring them nearer to each other."
    )
