"""The objective of linear scores, seen from the scores.

Scores are linear in the parameters, so between two parameters whose scores are known any number
of points can be looked at without reading the features: a search along a line costs the loss alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from firstpage.engine.threads import Lanes
from firstpage.solvers.solver import Objective, SolverResult
from firstpage.types import Floats, Ints

if TYPE_CHECKING:
    from firstpage.solvers.objective import BlockObjective

Job = Callable[[], object]


@dataclass(frozen=True, eq=False)
class Point:
    """Parameters, and the value there, of the loss alone and of all."""

    params: Floats
    loss: float
    value: float


@dataclass(frozen=True, eq=False)
class Scored(Point):
    """With the scores, and the slope of the loss by them."""

    scores: Floats
    grad: Floats


P = TypeVar("P", bound=Point)
P_co = TypeVar("P_co", bound=Point, covariant=True)


class Line(Protocol[P_co]):
    """From one point through another, at 0 and at 1.

    slopes   of the loss along the line, at both
    """

    @property
    def start(self) -> P_co: ...

    @property
    def end(self) -> P_co: ...

    @property
    def slopes(self) -> tuple[float, float]: ...

    def look(self, way: float) -> tuple[P_co, float]:
        """A point on it, and the slope of the loss along the line there."""
        ...


class Space(Protocol[P]):
    """What cutting planes ask of an objective whose scores are linear in the parameters."""

    l2: float

    def at(self, params: Floats) -> P: ...

    def line(self, start: P, end: Floats) -> Line[P]:
        """From a point to some parameters."""
        ...

    def between(self, start: P, end: P, way: float) -> P:
        """A point on the line through two others, at 0 and at 1."""
        ...

    def plane(self, point: P) -> tuple[Floats, float]:
        """The slope of the loss alone, by parameters, and the loss."""
        ...

    def freeze(self, params: Floats) -> None:
        """From now on true rankings are those that these parameters like best."""
        ...

    def unsure(self) -> float:
        """By how much the loss at the last point may be above what was found."""
        ...


class ScoredObjective(Objective, Protocol[P]):
    """An objective of linear scores, which can be seen from the scores."""

    def space(self) -> Space[P]: ...


@dataclass(frozen=True, eq=False)
class ScoredLine:
    space: ScoreSpace
    start: Scored
    end: Scored
    way: Floats  # of the scores
    slopes: tuple[float, float]

    def look(self, way: float) -> tuple[Scored, float]:
        point = self.space.between(self.start, self.end, way)
        return point, float(point.grad @ self.way)


class ScoreSpace:
    """Forward from parameters to scores, the loss at scores, and slopes back to parameters."""

    def __init__(self, objective: BlockObjective) -> None:
        self._objective, self.l2 = objective, objective.l2
        rows = int(objective.offsets[-1])
        self._forward, self._at, self._grad = np.empty(rows), np.empty(rows), np.empty(rows)
        self._values = np.empty(len(objective.shares))
        self._slopes = np.zeros((len(objective.bounds), objective.size))
        forward: list[list[Job]] = [[] for _ in range(objective.threads)]
        loss: list[list[Job]] = [[] for _ in range(objective.threads)]
        back: list[list[Job]] = [[] for _ in range(objective.threads)]
        offsets = objective.offsets
        for block, (lo, hi) in enumerate(objective.bounds):
            a, b = int(offsets[lo]), int(offsets[hi])
            grad, lane = self._grad[a:b], block % objective.threads
            score, pull = objective.scorer.bind(a, b, self._forward[a:b], grad, self._slopes[block])
            forward[lane].append(score)
            back[lane].append(pull)
            loss[lane].append(
                objective.target.bind(lo, hi, self._at[a:b], self._values[lo:hi], grad)
            )
            loss[lane].append(weigher(grad, objective.shares[lo:hi], np.diff(offsets[lo : hi + 1])))
        self._score, self._look, self._pull = Lanes(forward), Lanes(loss), Lanes(back)
        self._jobs = forward, loss, back

    @cached_property
    def _all(self) -> Lanes:
        """Block after block: scores, loss, slope."""
        forward, loss, back = self._jobs
        offsets, bounds = self._objective.offsets, self._objective.bounds
        lanes: list[list[Job]] = []
        for lane, (scores, looks, pulls) in enumerate(zip(forward, loss, back, strict=True)):
            jobs: list[Job] = []
            for i, (lo, hi) in enumerate(bounds[lane :: len(forward)]):
                a, b = int(offsets[lo]), int(offsets[hi])
                copy = partial(np.copyto, self._at[a:b], self._forward[a:b])
                jobs += [scores[i], copy, looks[2 * i], looks[2 * i + 1], pulls[i]]
            lanes.append(jobs)
        return Lanes(lanes)

    def scores(self, params: Floats) -> Floats:
        """One read of the features."""
        self._objective.scorer.load(params)
        self._score.run()
        return self._forward.copy()

    def at(self, params: Floats) -> Scored:
        return self._at_scores(params, self.scores(params))

    def _at_scores(self, params: Floats, scores: Floats) -> Scored:
        """What is there; these must be the scores of these parameters."""
        self._at[:] = scores
        self._look.run()
        loss = float((self._values * self._objective.shares).sum())
        penalty = self.l2 / 2 * float(params @ params)
        return Scored(params, loss, loss + penalty, scores, self._grad.copy())

    def line(self, start: Scored, end: Floats) -> ScoredLine:
        last = self.at(end)
        way = last.scores - start.scores
        slopes = float(start.grad @ way), float(last.grad @ way)
        return ScoredLine(self, start, last, way, slopes)

    def between(self, start: Scored, end: Scored, way: float) -> Scored:
        params = start.params + way * (end.params - start.params)
        return self._at_scores(params, start.scores + way * (end.scores - start.scores))

    def plane(self, point: Scored) -> tuple[Floats, float]:
        """Another read of the features."""
        self._grad[:] = point.grad
        self._pull.run()
        found: Floats = self._slopes.sum(axis=0)
        return found, point.loss

    def whole(self, params: Floats) -> tuple[Scored, Floats]:
        """The point and the slope there, in one read of the features."""
        self._objective.scorer.load(params)
        self._all.run()
        loss = float((self._values * self._objective.shares).sum())
        penalty = self.l2 / 2 * float(params @ params)
        point = Scored(params, loss, loss + penalty, self._forward.copy(), self._grad.copy())
        return point, self._slopes.sum(axis=0)

    def freeze(self, params: Floats) -> None:
        target: Any = self._objective.target
        target.freeze(self.scores(params))

    def unsure(self) -> float:
        """By how much the loss at the last point may be above what was found."""
        return unsure(self._objective.target, self._values, self._objective.shares)


def result_at(found: SolverResult, objective: ScoredObjective[P], params: Floats) -> SolverResult:
    """The result at other parameters of the same problem, with its value and its gap there."""
    if found.gap is None:
        return replace(found, params=params)
    space = objective.space()
    space.l2 = space.l2 if found.l2 is None else found.l2
    point = space.at(params)
    gap = relative_gap(point.value + space.unsure(), (1.0 - found.gap) * found.value)
    return replace(found, params=params, value=point.value, gap=gap)


def unsure(target: object, values: Floats, shares: Floats) -> float:
    """By how much a mean loss may be above these values, from the bounds of the target."""
    bounds = getattr(target, "bounds", None)
    return 0.0 if bounds is None else float(((bounds - values) * shares).sum())


def relative_gap(above: float, below: float) -> float:
    """The fraction of an objective, at most `above`, by which its minimum may be lower."""
    return max(above - below, 0.0) / above if above > 0 else 0.0


def weigher(grad: Floats, shares: Floats, lengths: Ints) -> Callable[[], object]:
    """Multiplies a block's slopes by the shares of their queries."""
    if len(shares) and (shares == shares[0]).all():
        share = shares[0]
        return lambda: np.multiply(grad, share, out=grad)
    each = np.repeat(shares, lengths)
    return lambda: np.multiply(grad, each, out=grad)
