"""The objective over shards: the same sums, taken shard by shard wherever the shards are.

A shard's results are functions of the arguments.  What it caches, scores and gradients at a few
points and the true rankings frozen last, is stored by the parameters that it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from firstpage.data.dataset import concat_features
from firstpage.data.groups import offsets_from_lengths
from firstpage.engine.engine import ShardJob
from firstpage.scorers.linear import WIDE, BoundLinear, by_width
from firstpage.scorers.scorer import BoundScorer
from firstpage.solvers.objective import RUNS, SAMPLE, BlockObjective
from firstpage.solvers.score_space import Point, Scored, ScoreSpace
from firstpage.types import Array, Floats

POINTS = 3  # stored: both ends of a line, and the point before
ROW = 48  # bytes per document that an objective holds, about
SEEN = 40  # more, once it is looked at from its scores
Run = tuple[int, int, int]
"""Some queries: the first, the last at most, and about how many rows."""
Sample = tuple[Any, Array, Floats, float]
"""Rows of some queries, the lengths of these, curvatures by score, and their weight."""


class Held(Protocol):
    """What the arrays of a shard are mapped from."""

    def release(self) -> None: ...


class ObjectiveShard:
    """An objective without penalty over the queries of a shard, by shares of all shards."""

    def __init__(self, objective: BlockObjective, held: Held) -> None:
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

    def value_gradient(self, params: Floats, frozen: Floats | None) -> tuple[float, Floats]:
        """The mean loss, and its gradient by parameters."""
        self._freeze(frozen)
        return self.objective(params)

    def sample(self, runs: list[Run]) -> list[Sample]:
        """Rows, lengths, bends and shares of some runs of queries: (first, last at most, rows)."""
        found = []
        offsets = self.objective.offsets
        for lo, last, rows in runs:
            hi = int(np.searchsorted(offsets, offsets[lo] + rows))
            hi = min(max(hi, lo + 1), last)
            X = self.objective.scorer.X
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

    def score_range(self, params: Floats) -> tuple[float, float]:
        return self.objective.score_range(params)

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


class ShardedObjective:
    """What `BlockObjective` is to solvers, over shards.

    scorer    set up on no documents: what solvers ask of it does not need any
    counts    (queries, documents) of every shard
    """

    def __init__(
        self, job: ShardJob[ObjectiveShard], scorer: BoundScorer, counts: Sequence[tuple[int, int]],
        l2: float,
    ) -> None:  # fmt: skip
        self.job, self.scorer, self.counts, self.l2 = job, scorer, list(counts), l2
        self.frozen: Floats | None = None  # the parameters whose true rankings are frozen

    @property
    def size(self) -> int:
        return self.scorer.size

    @property
    def noise(self) -> float:
        return self.scorer.noise

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        """Value and gradient over all queries."""
        value, gradient = self.job.sum(ObjectiveShard.value_gradient, params, self.frozen)
        return value + self.l2 / 2 * float(params @ params), gradient + self.l2 * params

    def space(self) -> ShardedSpace:
        return ShardedSpace(self)

    def score_range(self, params: Floats) -> tuple[float, float]:
        """The widest range of scores in a query, and the greatest absolute score."""
        return self.job.max(ObjectiveShard.score_range, params)

    def conditioner(self) -> Floats | None:
        """From about the sample of queries that `BlockObjective` would take."""
        if self.size > WIDE:
            rows = sum(rows for _, rows in self.counts)
            return by_width(self.job.sum(ObjectiveShard.squares), rows, self.l2)
        runs = _runs(self.counts, SAMPLE * self.size)
        answers = self.job.map_own(ObjectiveShard.sample, [some or None for some in runs])
        samples = [one for answer in answers for one in answer]
        total = sum(share for *_, share in samples)
        bends = np.concatenate([bend for _, _, bend, _ in samples]) / total
        lengths = np.concatenate([lengths for _, lengths, _, _ in samples])
        ends = offsets_from_lengths(lengths)
        bound = BoundLinear(concat_features([rows for rows, *_ in samples]))
        return bound.conditioner([ends], bends, self.l2)


def _runs(counts: Sequence[tuple[int, int]], rows: int) -> list[list[Run]]:
    """For each shard the runs of queries to look at: (first, last at most, rows)."""
    queries, documents = (sum(c) for c in zip(*counts, strict=True))
    if documents <= rows or queries <= RUNS:
        return [[(0, n, documents)] if n else [] for n, _ in counts]
    ends = np.cumsum([n for n, _ in counts])
    found: list[list[Run]] = [[] for _ in counts]
    for i in range(RUNS):
        lo, last = queries * i // RUNS, queries * (i + 1) // RUNS
        part = int(np.searchsorted(ends, lo, side="right"))
        first = int(ends[part]) - counts[part][0]
        found[part].append((lo - first, min(last - first, counts[part][0]), rows // RUNS))
    return found


@dataclass(frozen=True, eq=False)
class ShardedLine:
    space: ShardedSpace
    start: Point
    end: Point
    slopes: tuple[float, float]

    def look(self, way: float) -> tuple[Point, float]:
        return self.space.step(self.start, self.end, way)


class ShardedSpace:
    """What `ScoreSpace` is to cutting planes; scores stay in the shards."""

    def __init__(self, objective: ShardedObjective) -> None:
        self._objective, self._job, self.l2 = objective, objective.job, objective.l2
        self._unsure = 0.0

    def _point(self, params: Floats, loss: float) -> Point:
        return Point(params, loss, loss + self.l2 / 2 * float(params @ params))

    def at(self, params: Floats) -> Point:
        loss, self._unsure = self._job.sum(ObjectiveShard.look, params, self._objective.frozen)
        return self._point(params, loss)

    def line(self, start: Point, end: Floats) -> ShardedLine:
        frozen = self._objective.frozen
        first, last, *slopes = self._job.sum(ObjectiveShard.line, start.params, end, frozen)
        a, b = self._point(start.params, first), self._point(end, last)
        return ShardedLine(self, a, b, (slopes[0], slopes[1]))

    def step(self, start: Point, end: Point, way: float) -> tuple[Point, float]:
        frozen = self._objective.frozen
        loss, slope = self._job.sum(ObjectiveShard.step, start.params, end.params, way, frozen)
        return self._point(start.params + way * (end.params - start.params), loss), slope

    def between(self, start: Point, end: Point, way: float) -> Point:
        """Not looked at before its plane is: that is one call for both."""
        params = start.params + way * (end.params - start.params)
        return Point(params, float("nan"), float("nan"))

    def plane(self, point: Point) -> tuple[Floats, float]:
        frozen = self._objective.frozen
        loss, gradient = self._job.sum(ObjectiveShard.plane, point.params, frozen)
        return gradient, loss

    def freeze(self, params: Floats) -> None:
        self._objective.frozen = params.copy()

    def unsure(self) -> float:
        return self._unsure
