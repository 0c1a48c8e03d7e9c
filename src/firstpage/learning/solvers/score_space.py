"""The objective of a linear scorer as a function of the scores.

Scores are linear in the parameters, so that any point between two parameters of known scores can be
evaluated without reading the features: a line search costs the loss alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol, TypeVar

import numpy as np

from firstpage.core import BoundKernel, Floats, Ints
from firstpage.core.engine import Lanes
from firstpage.learning.losses.base import LossTarget
from firstpage.learning.scorers.scorer import BoundScorer
from firstpage.learning.solvers.solver import Objective, SolverResult


@dataclass(frozen=True, eq=False)
class ParameterPoint:
    """Parameters, the loss there, and the value of the objective, which includes the penalty."""

    params: Floats
    loss: float
    value: float


@dataclass(frozen=True, eq=False)
class ScoredPoint(ParameterPoint):
    """A point with its scores and the gradient of the loss by them."""

    scores: Floats
    grad: Floats


P = TypeVar("P", bound=ParameterPoint)
P_co = TypeVar("P_co", bound=ParameterPoint, covariant=True)


class Line(Protocol[P_co]):
    """The line through two points, at step 0 and step 1."""

    @property
    def start(self) -> P_co: ...

    @property
    def end(self) -> P_co: ...

    @property
    def derivatives(self) -> tuple[float, float]:
        """The derivatives of the loss along the line, at both points."""
        ...

    def evaluate(self, step: float) -> tuple[P_co, float]:
        """Return the point at this step, and the derivative of the loss along the line there."""
        ...


class LinearScoreSpace(Protocol[P]):
    """What cutting planes need of an objective whose scores are linear in the parameters."""

    l2: float

    def evaluate(self, params: Floats) -> P:
        """Return the point of these parameters."""
        ...

    def line(self, start: P, end: Floats) -> Line[P]:
        """Return the line from a point to some parameters."""
        ...

    def interpolate(self, start: P, end: P, step: float) -> P:
        """Return a point on the line through two others, which are at step 0 and step 1."""
        ...

    def plane(self, point: P) -> tuple[Floats, float]:
        """Return the gradient of the loss alone, by parameters, and the loss."""
        ...

    def freeze(self, params: Floats) -> None:
        """Fix the true rankings to those of the highest score under these parameters."""
        ...

    def loss_error_bound(self) -> float:
        """Return by how much the loss at the last point may exceed the computed value."""
        ...


class ScoredObjective(Objective, Protocol[P]):
    """An objective of linear scores, which can be evaluated in score space."""

    def score_space(self) -> LinearScoreSpace[P]: ...


@dataclass(frozen=True, eq=False)
class ScoredLine:
    """A line whose points are evaluated from their scores."""

    space: ScoreSpace
    start: ScoredPoint
    end: ScoredPoint
    direction: Floats  # difference of the scores of both points
    derivatives: tuple[float, float]

    def evaluate(self, step: float) -> tuple[ScoredPoint, float]:
        point = self.space.interpolate(self.start, self.end, step)
        return point, float(point.grad @ self.direction)


class BlockedLoss(Protocol):
    """The loss of a scorer over blocks of queries, as objectives in memory have it."""

    @property
    def scorer(self) -> BoundScorer: ...
    @property
    def target(self) -> LossTarget: ...
    @property
    def offsets(self) -> Ints: ...
    @property
    def bounds(self) -> Sequence[tuple[int, int]]: ...
    @property
    def query_weights(self) -> Floats: ...
    @property
    def size(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def l2(self) -> float: ...


class ScoreSpace:
    """Scores of parameters, the loss at scores, and back-propagation to parameters."""

    def __init__(self, objective: BlockedLoss) -> None:
        self._objective, self.l2 = objective, objective.l2
        rows = int(objective.offsets[-1])
        self._new_scores, self._scores, self._grad = np.empty(rows), np.empty(rows), np.empty(rows)
        self._values = np.empty(len(objective.query_weights))
        self._gradients = np.zeros((len(objective.bounds), objective.size))
        forward: list[list[BoundKernel]] = [[] for _ in range(objective.threads)]
        loss: list[list[BoundKernel]] = [[] for _ in range(objective.threads)]
        backward: list[list[BoundKernel]] = [[] for _ in range(objective.threads)]
        offsets = objective.offsets
        for block, (lo, hi) in enumerate(objective.bounds):
            a, b = int(offsets[lo]), int(offsets[hi])
            grad, lane = self._grad[a:b], block % objective.threads
            scoring, backpropagation = objective.scorer.bind_slice(
                a, b, self._new_scores[a:b], grad, self._gradients[block]
            )
            forward[lane].append(scoring)
            backward[lane].append(backpropagation)
            loss[lane].append(
                objective.target.bind_slice(lo, hi, self._scores[a:b], self._values[lo:hi], grad)
            )
            loss[lane].append(
                bind_weighting(grad, objective.query_weights[lo:hi], np.diff(offsets[lo : hi + 1]))
            )
        self._forward, self._loss, self._backward = Lanes(forward), Lanes(loss), Lanes(backward)
        self._kernels = forward, loss, backward

    @cached_property
    def _full_pass(self) -> Lanes:
        """Scores, loss and gradient, block after block."""
        forward, loss, backward = self._kernels
        offsets, bounds = self._objective.offsets, self._objective.bounds
        lanes: list[list[BoundKernel]] = []
        for lane, kernels in enumerate(zip(forward, loss, backward, strict=True)):
            scorings, losses, backpropagations = kernels
            runs: list[BoundKernel] = []
            for i, (lo, hi) in enumerate(bounds[lane :: len(forward)]):
                a, b = int(offsets[lo]), int(offsets[hi])
                copy = partial(np.copyto, self._scores[a:b], self._new_scores[a:b])
                runs += [scorings[i], copy, losses[2 * i], losses[2 * i + 1], backpropagations[i]]
            lanes.append(runs)
        return Lanes(lanes)

    def scores(self, params: Floats) -> Floats:
        """Return the scores of these parameters; this reads the features once."""
        self._objective.scorer.load(params)
        self._forward.run()
        return self._new_scores.copy()

    def evaluate(self, params: Floats) -> ScoredPoint:
        return self._evaluate_scores(params, self.scores(params))

    def _evaluate_scores(self, params: Floats, scores: Floats) -> ScoredPoint:
        """Return the point of parameters whose scores are known."""
        self._scores[:] = scores
        self._loss.run()
        loss = float((self._values * self._objective.query_weights).sum())
        penalty = self.l2 / 2 * float(params @ params)
        return ScoredPoint(params, loss, loss + penalty, scores, self._grad.copy())

    def line(self, start: ScoredPoint, end: Floats) -> ScoredLine:
        last = self.evaluate(end)
        direction = last.scores - start.scores
        derivatives = float(start.grad @ direction), float(last.grad @ direction)
        return ScoredLine(self, start, last, direction, derivatives)

    def interpolate(self, start: ScoredPoint, end: ScoredPoint, step: float) -> ScoredPoint:
        params = start.params + step * (end.params - start.params)
        return self._evaluate_scores(params, start.scores + step * (end.scores - start.scores))

    def plane(self, point: ScoredPoint) -> tuple[Floats, float]:
        """Return the gradient by parameters and the loss; this reads the features once."""
        self._grad[:] = point.grad
        self._backward.run()
        gradient: Floats = self._gradients.sum(axis=0)
        return gradient, point.loss

    def evaluate_with_gradient(self, params: Floats) -> tuple[ScoredPoint, Floats]:
        """Return the point and the gradient there, in one read of the features."""
        self._objective.scorer.load(params)
        self._full_pass.run()
        loss = float((self._values * self._objective.query_weights).sum())
        penalty = self.l2 / 2 * float(params @ params)
        point = ScoredPoint(
            params, loss, loss + penalty, self._new_scores.copy(), self._grad.copy()
        )
        return point, self._gradients.sum(axis=0)

    def freeze(self, params: Floats) -> None:
        self._objective.target.freeze(self.scores(params))

    def loss_error_bound(self) -> float:
        return loss_error_bound(self._objective.target, self._values, self._objective.query_weights)


def result_at(result: SolverResult, objective: ScoredObjective[P], params: Floats) -> SolverResult:
    """Return a result with a gap at other parameters of the same problem."""
    assert result.gap is not None
    space = objective.score_space()
    space.l2 = space.l2 if result.l2 is None else result.l2
    point = space.evaluate(params)
    lower_bound = (1.0 - result.gap) * (result.value + result.missed)
    missed = space.loss_error_bound()
    gap = relative_gap(point.value + missed, lower_bound)
    return replace(result, params=params, value=point.value, missed=missed, gap=gap)


def loss_error_bound(target: LossTarget, values: Floats, query_weights: Floats) -> float:
    """Return by how much a mean loss may exceed these values of the target's last run."""
    bounds = target.upper_bounds
    return 0.0 if bounds is None else float(((bounds - values) * query_weights).sum())


def relative_gap(upper: float, lower: float) -> float:
    """Return the optimality gap (upper - lower) / upper of an objective with these bounds."""
    return max(upper - lower, 0.0) / upper if upper > 0 else 0.0


def gradient_gap(objective: Objective, params: Floats, value: float) -> float | None:
    """Return the optimality gap of a smooth convex loss of linear scores, from its gradient.

    The penalty makes the objective strongly convex: its minimum is at least the value at `params`
    minus |gradient|^2 / (2 l2).  Rounding errors are added.  `value` is the value as reported, of
    which the gap is a fraction at least.  None: the objective is negative or not finite.
    """
    loss, gradient, loss_error, gradient_errors = objective.evaluate_with_errors(params)
    unit = (len(params) + 4) * float(np.finfo(np.float64).eps)
    penalty = objective.l2 / 2 * float(params @ params)
    error = loss_error + unit * penalty
    errors = gradient_errors + unit * objective.l2 * np.abs(params)
    steepest = np.abs(gradient + objective.l2 * params) + errors
    excess = float(steepest @ steepest) / (2 * objective.l2) * (1 + unit)
    upper = max(loss + penalty + error, value)
    gap = relative_gap(upper, loss + penalty - error - excess)
    return gap if upper >= 0 and np.isfinite(gap) else None


def bind_weighting(grad: Floats, query_weights: Floats, lengths: Ints) -> BoundKernel:
    """Return a kernel that multiplies a block's gradients by the weights of their queries."""
    if len(query_weights) and (query_weights == query_weights[0]).all():
        weight = query_weights[0]
        return lambda: np.multiply(grad, weight, out=grad)
    row_weights = np.repeat(query_weights, lengths)
    return lambda: np.multiply(grad, row_weights, out=grad)
