"""Learning from files of preferences that are worked on where they are, and added up here.

Files are added up in their order: how many machines there are, and which of them has which file,
changes nothing, not even the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from firstpage.data.preferences.files import PreferenceFiles
from firstpage.dcglearn.pairs import Pairs, lost_grades, same_places
from firstpage.dcglearn.shard import (
    ALL,
    How,
    PreferenceShard,
    PreferenceTask,
    Some,
    Survey,
    Told,
)
from firstpage.dcglearn.sums import KINDS, Grouped
from firstpage.dcglearn.validation import NOTHING, Match, Path, Recipe, told_by
from firstpage.engine.engine import Engine, ShardJob
from firstpage.errors import DataError
from firstpage.types import Bools, Floats, Progress


class ShardedSums:
    """What `Sums` is to the solver; pairs stay in the shards."""

    def __init__(self, job: ShardJob[PreferenceShard], how: How, which: Some) -> None:
        self._job, self._how, self._which = job, how, which
        self.margins, self.costs = np.array(how.margins), np.ones(KINDS)
        self._grouped: Floats | None = None
        self._sizes: list[int] = []

    def move_to(self, table: Floats) -> None:
        self._point = table.copy()

    def aim(self, direction: Floats) -> None:
        self._way = direction.copy()

    def regroup(self) -> int:
        changed, square, aims = self._job.sum(
            PreferenceShard.regroup, self._how, self._which, self._grouped, self._point
        )
        self._sums, self._grouped = Grouped(square, aims), self._point
        return changed

    def normal(self) -> tuple[Floats, Floats]:
        return self._sums.normal(self.costs, self.margins)

    def slope_at(self, t: float) -> tuple[float, float, float]:
        return self._job.sum(
            PreferenceShard.slope, self._how, self._which, self._point, self._way, t, self.costs
        )

    def cost(self) -> tuple[float, float]:
        return self._job.sum(PreferenceShard.cost, self._how, self._which, self._point, self.costs)

    def pull(self) -> Floats:
        return self._job.sum(PreferenceShard.pull, self._how, self._which, self._point, self.costs)

    def lacking(self, room: float) -> Bools:
        found = self._job.map(PreferenceShard.lacking, self._how, self._which, self._point, room)
        self._sizes = [size for size, _ in found]
        return np.concatenate([np.unpackbits(bits, count=n).astype(bool) for n, bits in found])

    def picked(self, chosen: Bools) -> Pairs:
        own = np.split(chosen, np.cumsum(self._sizes)[:-1])
        return Pairs.chained(self._job.map_own(PreferenceShard.picked, own, self._how, self._which))


@dataclass(frozen=True, eq=False)
class Sharded:
    """Pairs in files, looked through once."""

    source: str
    job: ShardJob[PreferenceShard]
    recipe: Recipe
    how: How
    surveys: tuple[Survey, ...]
    told: tuple[Told, ...]

    def __len__(self) -> int:
        return sum(s.pairs for s in self.surveys)

    @property
    def grades(self) -> tuple[int, ...]:
        return self.how.grades

    @property
    def ties(self) -> int:
        return sum(s.ties for s in self.surveys)

    @property
    def used(self) -> int:
        return sum(t.pairs for t in self.told)

    @property
    def only_ties(self) -> bool:
        return self.used == sum(t.ties for t in self.told)

    @property
    def alike(self) -> bool:
        """Whether both rankings of every pair have the same grades, in whatever order."""
        return all(t.alike for t in self.told)

    @property
    def same(self) -> Bools:
        """Whether no pair differs at a place."""
        found: Bools = np.logical_and.reduce([t.same for t in self.told if t.pairs])
        return found

    def notes(self) -> Iterator[str]:
        yield from lost_grades(self.grades, {g for s in self.surveys for g in s.seen})
        yield from same_places(self.same)
        if any(s.segments for s in self.surveys):
            yield "segments are learned from pairs in memory only; over files there is one measure."

    def sums(self, which: Some = ALL) -> ShardedSums:
        return ShardedSums(self.job, self.how, which)

    def matches(self, tables: Sequence[Floats], which: Some = ALL) -> list[Match]:
        flat = [np.ascontiguousarray(table, np.float64).ravel() for table in tables]
        wide = self.job.max(PreferenceShard.widest, self.how, which, flat)
        tolerances: list[float] = (NOTHING * wide).tolist()
        sums = self.job.sum(PreferenceShard.agreement, self.how, which, flat, tolerances)
        return [Match.of(row) for row in sums]

    def cross_validated(self, grid: Sequence[float], tick: Progress | None) -> Path:
        """The folds are of queries, as a hash of their names falls: nobody knows all of them."""
        strict = self.job.sum(PreferenceShard.strict, self.how)
        folds = np.flatnonzero((strict > 0) & (strict < strict.sum())).tolist()
        if len(folds) < 2:
            raise DataError(
                "cross-validation needs preferences, not only ties, in several queries."
            )
        rows = []
        for done, fold in enumerate(folds, 1):
            if tick is not None:
                tick(done, len(folds) + 1)
            path = self.recipe.along(self.sums(Some(fold)), grid)
            held = partial(self.matches, which=Some(fold, held=True))
            rows.append(told_by(self.recipe, path, held))
        return Path(tuple(grid), *np.moveaxis(np.array(rows), 1, 0))


def job_of(files: PreferenceFiles, engine: Engine) -> ShardJob[PreferenceShard]:
    """A shard for each file."""
    return engine.job([PreferenceTask(path.resolve(), n) for n, path in enumerate(files.paths)])


def surveyed(job: ShardJob[PreferenceShard]) -> tuple[tuple[Survey, ...], tuple[int, ...]]:
    """What is in each file, and the grades of all."""
    found = tuple(job.map(PreferenceShard.survey))
    return found, tuple(sorted({grade for survey in found for grade in survey.grades}))
