"""The objective over shards: the same sums, taken part by part wherever the parts are.

What parts answer is added up here, in the order of the shards: how many machines there are, and
which of them works on which shard, changes nothing, not even the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.data.dataset import stacked_rows
from firstpage.data.groups import offsets_from_lengths
from firstpage.engine.engine import Parts
from firstpage.scorers.linear import WIDE, LinearFitting, by_width
from firstpage.scorers.scorer import Fitting
from firstpage.solvers.objective import RUNS, SAMPLE
from firstpage.solvers.score_space import Point
from firstpage.types import Floats

Run = tuple[int, int, int]


class SpreadObjective:
    """What `Objective` is to solvers, over parts that are `SpreadPart`s.

    scorer    set up on no documents: what solvers ask of it does not need any
    counts    (queries, documents) of every part
    """

    def __init__(
        self, parts: Parts, scorer: Fitting, counts: Sequence[tuple[int, int]], l2: float
    ) -> None:
        self.parts, self.scorer, self.counts, self.l2 = parts, scorer, list(counts), l2
        self.frozen: Floats | None = None  # the parameters whose true rankings are frozen

    @property
    def size(self) -> int:
        return self.scorer.size

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        """Value and slope over all queries."""
        value, slope = 0.0, np.zeros(self.size)
        for loss, part in self.parts.each("value_slope", params, self.frozen):
            value += loss
            slope += part
        return value + self.l2 / 2 * float(params @ params), slope + self.l2 * params

    def space(self) -> SpreadSpace:
        return SpreadSpace(self)

    def spread(self, params: Floats) -> tuple[float, float]:
        """The widest range of scores in a query, and the greatest score without its sign."""
        found = self.parts.each("spread", params)
        return max(wide for wide, _ in found), max(top for _, top in found)

    def conditioner(self) -> Floats | None:
        """From about the sample of queries that `Objective` would take."""
        if self.size > WIDE:
            rows = sum(rows for _, rows in self.counts)
            return by_width(_summed(self.parts.each("squares")), rows, self.l2)
        wanted = _runs(self.counts, SAMPLE * self.size)
        answers = self.parts.each("sample", own=[runs or None for runs in wanted])
        found = [one for answer in answers if answer is not None for one in answer]
        total = sum(share for *_, share in found)
        bends = np.concatenate([bend for _, _, bend, _ in found]) / total
        lengths = np.concatenate([lengths for _, lengths, _, _ in found])
        ends = offsets_from_lengths(lengths)
        fitting = LinearFitting(stacked_rows([rows for rows, *_ in found]))
        return fitting.conditioner([ends], bends, self.l2)


def _runs(counts: Sequence[tuple[int, int]], rows: int) -> list[list[Run]]:
    """For each part the runs of queries to look at: (first, last at most, rows)."""
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


def _summed(arrays: Sequence[Floats]) -> Floats:
    total = np.zeros_like(arrays[0])
    for one in arrays:
        total += one
    return total


@dataclass(frozen=True, eq=False)
class SpreadLine:
    space: SpreadSpace
    start: Point
    end: Point
    slopes: tuple[float, float]

    def look(self, way: float) -> tuple[Point, float]:
        return self.space.step(self.start, self.end, way)


class SpreadSpace:
    """What `ScoreSpace` is to cutting planes; scores stay in the parts."""

    def __init__(self, objective: SpreadObjective) -> None:
        self._objective, self.l2 = objective, objective.l2
        self._unsure = 0.0

    def _sums(self, method: str, *args: Any) -> list[float]:
        answers = self._objective.parts.each(method, *args, self._objective.frozen)
        return [float(sum(column)) for column in zip(*answers, strict=True)]

    def _point(self, params: Floats, loss: float) -> Point:
        return Point(params, loss, loss + self.l2 / 2 * float(params @ params))

    def at(self, params: Floats) -> Point:
        loss, self._unsure = self._sums("look", params)
        return self._point(params, loss)

    def line(self, start: Point, end: Floats) -> SpreadLine:
        first, last, *slopes = self._sums("line", start.params, end)
        a, b = self._point(start.params, first), self._point(end, last)
        return SpreadLine(self, a, b, (slopes[0], slopes[1]))

    def step(self, start: Point, end: Point, way: float) -> tuple[Point, float]:
        loss, slope = self._sums("step", start.params, end.params, way)
        return self._point(start.params + way * (end.params - start.params), loss), slope

    def between(self, start: Point, end: Point, way: float) -> Point:
        """Not looked at before its plane is: that is one call for both."""
        params = start.params + way * (end.params - start.params)
        return Point(params, float("nan"), float("nan"))

    def plane(self, point: Point) -> tuple[Floats, float]:
        value, slope = 0.0, np.zeros(self._objective.size)
        frozen = self._objective.frozen
        for loss, part in self._objective.parts.each("plane", point.params, frozen):
            value += loss
            slope += part
        return slope, value

    def freeze(self, params: Floats) -> None:
        self._objective.frozen = params.copy()

    def unsure(self) -> float:
        return self._unsure
