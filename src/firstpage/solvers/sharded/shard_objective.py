"""One part of an objective that is spread over shards: the sums of its own queries.

Everything here is a function of the arguments.  What is kept, scores and slopes at a few points and
the true rankings frozen last, is kept by the parameters that it belongs to.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np

from firstpage.solvers.objective import Objective
from firstpage.solvers.score_space import Scored, ScoreSpace
from firstpage.types import Array, Floats

POINTS = 3  # kept: both ends of a line, and the point before
ROW = 48  # bytes a document that an objective holds, about
SEEN = 40  # more, once it is looked at from its scores


class Held(Protocol):
    """What the arrays of a part are mapped from."""

    def release(self) -> None: ...


class SpreadPart:
    """An objective without penalty over the queries of a shard, by shares of all shards."""

    def __init__(self, objective: Objective, held: Held) -> None:
        self.objective, self._held = objective, held
        self._points: dict[bytes, Scored] = {}
        self._frozen: bytes | None = None

    @property
    def nbytes(self) -> int:
        rows = int(self.objective.offsets[-1])
        seen = SEEN if "space" in self.__dict__ else 0
        return rows * (ROW + seen + 16 * len(self._points))

    def release(self) -> None:
        self._held.release()

    @cached_property
    def space(self) -> ScoreSpace:
        return self.objective.space()

    # --- for descents

    def value_slope(self, params: Floats, frozen: Floats | None) -> tuple[float, Floats]:
        self._freeze(frozen)
        return self.objective(params)

    def sample(self, runs: list[tuple[int, int, int]]) -> list[tuple[Any, Array, Floats, float]]:
        """Rows, lengths, bends and shares of some runs of queries: (first, last at most, rows)."""
        found = []
        offsets = self.objective.offsets
        for lo, last, rows in runs:
            hi = int(np.searchsorted(offsets, offsets[lo] + rows))
            hi = min(max(hi, lo + 1), last)
            X: Any = self.objective.scorer.X  # type: ignore[attr-defined]
            picked = X[int(offsets[lo]) : int(offsets[hi])]
            if isinstance(picked, np.ndarray):
                picked = np.array(picked)  # not a view of what is mapped
            total = float(self.objective.shares[lo:hi].sum())
            found.append(
                (picked, np.diff(offsets[lo : hi + 1]), self.objective.bend(lo, hi, 1.0), total)
            )
        return found

    def squares(self) -> Floats:
        found: Floats = self.objective.scorer.squares()  # type: ignore[attr-defined]
        return found

    def spread(self, params: Floats) -> tuple[float, float]:
        """The widest range of scores in a query, and the greatest score without its sign."""
        fitting: Any = self.objective.scorer
        scores = fitting.predict(params, fitting.X)
        starts = self.objective.offsets[:-1]
        if not len(starts):
            return 0.0, 0.0
        wide = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
        return float(wide.max(initial=0.0)), float(np.abs(scores).max(initial=0.0))

    # --- for cutting planes

    def look(self, params: Floats, frozen: Floats | None) -> tuple[float, float]:
        """The loss there, and by how much it may be above."""
        self._freeze(frozen)
        self._points.pop(params.tobytes(), None)  # the doubt is that of the last point looked at
        return self._point(params).loss, self.space.unsure()

    def plane(self, params: Floats, frozen: Floats | None) -> tuple[float, Floats]:
        """The loss and its slope by parameters."""
        self._freeze(frozen)
        point, slope = self.space.whole(params)
        self._keep(point)
        return point.loss, slope

    def line(
        self, start: Floats, end: Floats, frozen: Floats | None
    ) -> tuple[float, float, float, float]:
        """The losses at both ends of a line, and the slopes along it there."""
        self._freeze(frozen)
        a, b = self._point(start), self._point(end)
        way = b.scores - a.scores
        return a.loss, b.loss, float(a.grad @ way), float(b.grad @ way)

    def step(
        self, start: Floats, end: Floats, way: float, frozen: Floats | None
    ) -> tuple[float, float]:
        """The loss on a line, and the slope along it."""
        self._freeze(frozen)
        a, b = self._point(start), self._point(end)
        point = self.space.between(a, b, way)
        return point.loss, float(point.grad @ (b.scores - a.scores))

    def _point(self, params: Floats) -> Scored:
        found = self._points.pop(params.tobytes(), None)
        found = self.space.at(params) if found is None else found
        self._keep(found)
        return found

    def _keep(self, point: Scored) -> None:
        self._points.pop(point.params.tobytes(), None)
        self._points[point.params.tobytes()] = point
        while len(self._points) > POINTS:
            del self._points[next(iter(self._points))]

    def _freeze(self, frozen: Floats | None) -> None:
        key = None if frozen is None else frozen.tobytes()
        if key == self._frozen:
            return
        self._points.clear()  # slopes there were under other true rankings
        target: Any = self.objective.target
        if frozen is None:
            target.thaw()
        else:
            self.space.freeze(frozen)
        self._frozen = key
