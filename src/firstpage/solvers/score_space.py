"""The objective of linear scores, seen from the scores.

Scores are linear in the parameters, so between two parameters whose scores are known any number
of points can be looked at without reading the features: a search along a line costs the loss alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from firstpage.engine.threads import Lanes
from firstpage.solvers.objective import Objective, weigher
from firstpage.types import Floats

Job = Callable[[], object]


@dataclass(frozen=True, eq=False)
class Point:
    """Parameters and their scores; the value there, of the loss alone and of all; the slope of the
    loss by the scores."""

    params: Floats
    scores: Floats
    grad: Floats
    loss: float
    value: float


class ScoreSpace:
    """Forward from parameters to scores, the loss at scores, and slopes back to parameters."""

    def __init__(self, objective: Objective) -> None:
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

    def scores(self, params: Floats) -> Floats:
        """One read of the features."""
        self._objective.scorer.load(params)
        self._score.run()
        return self._forward.copy()

    def at(self, params: Floats, scores: Floats) -> Point:
        """What is there; these must be the scores of these parameters."""
        self._at[:] = scores
        self._look.run()
        loss = float((self._values * self._objective.shares).sum())
        penalty = self.l2 / 2 * float(params @ params)
        return Point(params, scores, self._grad.copy(), loss, loss + penalty)

    def between(self, start: Point, end: Point, way: float) -> Point:
        """A point on the line through two others, at 0 and at 1."""
        params = start.params + way * (end.params - start.params)
        return self.at(params, start.scores + way * (end.scores - start.scores))

    def slope(self, point: Point) -> Floats:
        """Of the loss alone, by parameters: another read."""
        self._grad[:] = point.grad
        self._pull.run()
        found: Floats = self._slopes.sum(axis=0)
        return found

    def unsure(self) -> float:
        """By how much the loss at the last point may be above what was found."""
        bounds = getattr(self._objective.target, "bounds", None)
        if bounds is None:
            return 0.0
        return float(((bounds - self._values) * self._objective.shares).sum())
