"""Learning from files of preferences that stay where they are: each file returns its sums.

Sums are added in the order of the files, so that the result is the same to the last bit for any
number of machines and any assignment of files to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from firstpage.data.preferences.files import PreferenceFiles
from firstpage.dcglearn.pairs import Pairs, missing_grade_notes, undetermined_notes
from firstpage.dcglearn.shard import (
    ALL,
    FileSurvey,
    PairSubset,
    PreferenceShard,
    PreferenceTask,
    ShardOptions,
    ShardSummary,
)
from firstpage.dcglearn.sums import KINDS, ActiveSums
from firstpage.dcglearn.validation import (
    TIE_TOLERANCE,
    LearningSpec,
    PreferenceAgreement,
    ValidationCurve,
    path_accuracies,
)
from firstpage.engine.engine import Engine, ShardJob
from firstpage.errors import DataError
from firstpage.types import Bools, Floats, Progress


class ShardedPairSums:
    """`PairSums` over the pairs of all shards."""

    def __init__(
        self, job: ShardJob[PreferenceShard], options: ShardOptions, subset: PairSubset
    ) -> None:
        self._job, self._options, self._subset = job, options, subset
        self.margins, self.costs = np.array(options.margins), np.ones(KINDS)
        self._active_point: Floats | None = None
        self._sizes: list[int] = []

    def move_to(self, table: Floats) -> None:
        self._point = table.copy()

    def set_direction(self, direction: Floats) -> None:
        self._direction = direction.copy()

    def update_active(self) -> int:
        changed, square, targets = self._job.sum(
            PreferenceShard.update_active, self._options, self._subset, self._active_point,
            self._point,
        )  # fmt: skip
        self._active_sums, self._active_point = ActiveSums(square, targets), self._point
        return changed

    def normal_equations(self) -> tuple[Floats, Floats]:
        return self._active_sums.normal_equations(self.costs, self.margins)

    def line_derivatives(self, t: float) -> tuple[float, float, float]:
        return self._job.sum(
            PreferenceShard.line_derivatives, self._options, self._subset, self._point,
            self._direction, t, self.costs,
        )  # fmt: skip

    def cost(self) -> tuple[float, float]:
        return self._job.sum(
            PreferenceShard.cost, self._options, self._subset, self._point, self.costs
        )

    def negative_half_gradient(self) -> Floats:
        return self._job.sum(
            PreferenceShard.negative_half_gradient, self._options, self._subset, self._point,
            self.costs,
        )  # fmt: skip

    def near_margin(self, slack: float) -> Bools:
        answers = self._job.map(
            PreferenceShard.near_margin, self._options, self._subset, self._point, slack
        )
        self._sizes = [size for size, _ in answers]
        return np.concatenate([np.unpackbits(bits, count=n).astype(bool) for n, bits in answers])

    def select(self, chosen: Bools) -> Pairs:
        flags = np.split(chosen, np.cumsum(self._sizes)[:-1])
        return Pairs.concatenate(
            self._job.map_own(PreferenceShard.select, flags, self._options, self._subset)
        )


@dataclass(frozen=True, eq=False)
class ShardedProblem:
    """A learning problem whose pairs are in files."""

    source: str
    job: ShardJob[PreferenceShard]
    spec: LearningSpec
    options: ShardOptions
    surveys: tuple[FileSurvey, ...]
    summaries: tuple[ShardSummary, ...]

    def __len__(self) -> int:
        return sum(s.pairs for s in self.surveys)

    @property
    def grades(self) -> tuple[int, ...]:
        return self.options.grades

    @property
    def ties(self) -> int:
        return sum(s.ties for s in self.surveys)

    @property
    def used(self) -> int:
        return sum(s.pairs for s in self.summaries)

    @property
    def only_ties(self) -> bool:
        return self.used == sum(s.ties for s in self.summaries)

    @property
    def same_grades(self) -> bool:
        """Whether both rankings of every pair have the same grades, in any order."""
        return all(s.same_grades for s in self.summaries)

    @property
    def never_differs(self) -> Bools:
        """Positions at which no pair differs."""
        flags: Bools = np.logical_and.reduce([s.never_differs for s in self.summaries if s.pairs])
        return flags

    def notes(self) -> Iterator[str]:
        yield from missing_grade_notes(self.grades, {g for s in self.surveys for g in s.seen})
        yield from undetermined_notes(self.never_differs)
        if any(s.segments for s in self.surveys):
            yield (
                "segments are learned from pairs in memory only; a folder of files gives one "
                "measure."
            )

    def sums(self, subset: PairSubset = ALL) -> ShardedPairSums:
        return ShardedPairSums(self.job, self.options, subset)

    def agreements(
        self, tables: Sequence[Floats], subset: PairSubset = ALL
    ) -> list[PreferenceAgreement]:
        flat = [np.ascontiguousarray(table, np.float64).ravel() for table in tables]
        largest = self.job.max(PreferenceShard.max_differences, self.options, subset, flat)
        tolerances: list[float] = (TIE_TOLERANCE * largest).tolist()
        sums = self.job.sum(PreferenceShard.agreement_sums, self.options, subset, flat, tolerances)
        return [PreferenceAgreement.from_sums(row) for row in sums]

    def cross_validation_curve(
        self, grid: Sequence[float], progress: Progress | None
    ) -> ValidationCurve:
        """Return the accuracy on held-out pairs for each C.

        Folds are folds of queries, by a hash of their names: no machine knows all names.
        """
        counts = self.job.sum(PreferenceShard.preference_counts, self.options)
        folds = np.flatnonzero((counts > 0) & (counts < counts.sum())).tolist()
        if len(folds) < 2:
            raise DataError(
                "cross-validation needs preferences, not only ties, in several queries."
            )
        rows = []
        for done, fold in enumerate(folds, 1):
            if progress is not None:
                progress(done, len(folds) + 1)
            path = self.spec.path_from_sums(self.sums(PairSubset(fold)), grid)
            agreements = partial(self.agreements, subset=PairSubset(fold, held_out=True))
            rows.append(path_accuracies(self.spec, path, agreements))
        return ValidationCurve(tuple(grid), *np.moveaxis(np.array(rows), 1, 0))


def shard_job(files: PreferenceFiles, engine: Engine) -> ShardJob[PreferenceShard]:
    """Return a job with a shard per file."""
    return engine.job([PreferenceTask(path.resolve(), n) for n, path in enumerate(files.paths)])


def survey_files(
    job: ShardJob[PreferenceShard],
) -> tuple[tuple[FileSurvey, ...], tuple[int, ...]]:
    """Return the contents of each file, and the grades of all files in ascending order."""
    surveys = tuple(job.map(PreferenceShard.survey))
    return surveys, tuple(sorted({grade for survey in surveys for grade in survey.grades}))
