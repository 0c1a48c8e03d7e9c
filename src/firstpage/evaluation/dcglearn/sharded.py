"""Learning from files of preferences that stay where they are: each file returns its sums.

The sums of a file depend only on the arguments of the call; cached sums are identified by the point
they belong to.  Sums are added in the order of the files: the result is the same to the last bit
for any number of machines and any assignment of files to them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from firstpage.core import Array, Bools, DataError, Floats, Ints, Progress
from firstpage.core.engine import Engine, ShardJob
from firstpage.core.kernels.losses import preferences as kernel
from firstpage.data.preferences import PreferenceFiles, Preferences, Unjudged, read_preferences
from firstpage.evaluation.dcglearn.pairs import (
    Pairs,
    contradicted,
    contradiction_notes,
    encode,
    judged_positions,
    lowest_grade,
    missing_grade_notes,
    undetermined_notes,
)
from firstpage.evaluation.dcglearn.sums import KINDS, ActiveSums, InMemoryPairSums
from firstpage.evaluation.dcglearn.validation import (
    TIE_TOLERANCE,
    LearningSpec,
    PreferenceAgreement,
    ValidationCurve,
    differences,
    path_accuracies,
)

EXACT_LIMIT = 2.0**53  # integers below it are added without rounding


@dataclass(frozen=True)
class FileSurvey:
    """The contents of a file of preferences.

    Attributes
    ----------
    pairs, ties : int
        Number of pairs, and of ties among them.
    positions : int
        Length of the longest list.
    grades : tuple of int
        Grades of the file, in ascending order.
    seen : tuple of int
        Grades that occur in some list.
    segments : bool
        Whether rows name segments.
    """

    pairs: int
    ties: int
    positions: int
    grades: tuple[int, ...]
    seen: tuple[int, ...]
    segments: bool


@dataclass(frozen=True)
class ShardSummary:
    """The pairs of a file that have a weight and a difference.

    Attributes
    ----------
    pairs, ties : int
        Number of these pairs, and of ties among them.
    never_differs : ndarray
        Positions at which both lists of every pair have the same grade.
    same_grades : bool
        Whether both lists of every pair have the same grades, in any order.
    lowest : tuple of int
        The worst grade, if a document has it or is unjudged; else empty.
    contradicted : int
        Number of preferences that another one of the same file contradicts.
    """

    pairs: int
    ties: int
    never_differs: Bools
    same_grades: bool
    lowest: tuple[int, ...]
    contradicted: int


@dataclass(frozen=True)
class ShardOptions:
    """Options of encoding and of the split into folds; the same for all files."""

    grades: tuple[int, ...]
    positions: int
    unjudged: Unjudged
    margins: tuple[float, ...]
    folds: int
    seed: int


@dataclass(frozen=True)
class PairSubset:
    """All pairs, or those outside a fold (to learn from), or those of the fold (held out)."""

    fold: int | None = None
    held_out: bool = False


ALL = PairSubset()


@dataclass(frozen=True)
class PreferenceTask:
    """The file of a shard, its number among all files, and all grades if they are set."""

    path: Path
    number: int
    grades: tuple[int, ...] | None = None

    def open(self, threads: int) -> PreferenceShard:
        return PreferenceShard(self, threads)


class PreferenceShard:
    """The sums of one file."""

    def __init__(self, task: PreferenceTask, threads: int) -> None:
        self._task, self._threads = task, threads
        self._preferences: Preferences | None = None
        self._options: ShardOptions | None = None
        self._subset: PairSubset | None = None
        self._size = 0
        # the points and the direction that the cached sums belong to
        self._point = self._direction = self._active_point = b""
        self._exact = True

    @property
    def nbytes(self) -> int:
        return self._size

    def release(self) -> None:
        """Do nothing: no file is mapped."""

    # --- contents

    def survey(self) -> FileSurvey:
        """Return the contents of the file."""
        preferences = self._read()
        return FileSurvey(
            len(preferences),
            int(preferences.tied.sum()),
            preferences.n_positions,
            preferences.grades,
            tuple(preferences.observed_grades()),
            preferences.segment is not None,
        )

    def judged_positions(self, positions: int) -> int:
        """Return the number of grades at the first positions of all lists."""
        return judged_positions(self._read(), positions)

    def summary(self, options: ShardOptions) -> ShardSummary:
        """Return a summary of the encoded pairs."""
        pairs = self._encoded(options)
        never_differs = (pairs.left == pairs.right).all(axis=0)
        lowest = lowest_grade(options.grades, pairs)
        return ShardSummary(
            len(pairs),
            pairs.ties,
            never_differs,
            pairs.same_grades,
            lowest,
            int(contradicted(pairs).sum()),
        )

    def preference_counts(self, options: ShardOptions) -> Array:
        """Return the number of preferences, without ties, per fold."""
        strict = self._encoded(options).kind > 0
        return np.bincount(self._folds[strict], minlength=options.folds)

    # --- sums at a point

    def update_active(
        self, options: ShardOptions, subset: PairSubset, previous: Floats | None, table: Floats
    ) -> tuple[int, Floats, Floats]:
        """Return how many pairs become active or inactive between two tables, and the sums."""
        sums = self._sums(options, subset)
        if previous is None:
            sums.reset_active()
        elif self._active_point != previous.tobytes():
            sums.reset_active()
            self._move(sums, previous)
            sums.update_active()
        self._move(sums, table)
        changed = sums.update_active()
        if not self._exact:  # incremental sums would depend on the path in the last digits
            sums.reset_active()
            sums.update_active()
        self._active_point = table.tobytes()
        active = sums.active_sums()
        return changed, active.square, active.targets

    def line_derivatives(
        self,
        options: ShardOptions,
        subset: PairSubset,
        table: Floats,
        direction: Floats,
        t: float,
        costs: Floats,
    ) -> tuple[float, float, float]:
        """Return half the derivative and curvature of the cost, and the cost, at step size t."""
        sums = self._sums(options, subset, costs)
        self._move(sums, table)
        if self._direction != direction.tobytes():
            sums.set_direction(direction)
            self._direction = direction.tobytes()
        return sums.line_derivatives(t)

    def cost(
        self, options: ShardOptions, subset: PairSubset, table: Floats, costs: Floats
    ) -> tuple[float, float]:
        """Return the weighted squared shortfalls, and their contribution to the dual value."""
        sums = self._sums(options, subset, costs)
        self._move(sums, table)
        self._direction = b""  # overwritten
        return sums.cost()

    def negative_half_gradient(
        self, options: ShardOptions, subset: PairSubset, table: Floats, costs: Floats
    ) -> Floats:
        """Return minus half the gradient of the cost in the weights."""
        sums = self._sums(options, subset, costs)
        self._move(sums, table)
        self._direction = b""  # overwritten
        return sums.negative_half_gradient()

    def near_margin(
        self, options: ShardOptions, subset: PairSubset, table: Floats, slack: float
    ) -> tuple[int, Array]:
        """Return the number of pairs, and a bit per pair: whether it is near its margin."""
        sums = self._sums(options, subset)
        self._move(sums, table)
        flags = sums.near_margin(slack)
        return len(flags), np.packbits(flags)

    def select(self, options: ShardOptions, subset: PairSubset, chosen: Bools) -> Pairs:
        """Return the chosen pairs."""
        return self._sums(options, subset).select(chosen)

    def _move(self, sums: InMemoryPairSums, table: Floats) -> None:
        if self._point != table.tobytes():
            sums.move_to(table)
            self._point = table.tobytes()

    # --- agreement of tables with the pairs

    def max_differences(
        self, options: ShardOptions, subset: PairSubset, tables: list[Floats]
    ) -> Floats:
        """Return the largest absolute difference under each table."""
        pairs = self._selected(options, subset)
        return np.array([np.abs(differences(pairs, t)).max(initial=0.0) for t in tables])

    def agreement_sums(
        self,
        options: ShardOptions,
        subset: PairSubset,
        tables: list[Floats],
        tolerances: list[float],
    ) -> Floats:
        """Return the sums of `kernel.agreement`, a row per table."""
        pairs = self._selected(options, subset)
        sums = np.zeros((len(tables), 4))
        for row, (table, tolerance) in enumerate(zip(tables, tolerances, strict=True)):
            z = differences(pairs, table)
            kernel.agreement(z, pairs.kind, pairs.weight, tolerance, sums[row])
        return sums

    # --- cached data

    def _read(self) -> Preferences:
        if self._preferences is None:
            self._preferences = read_preferences(self._task.path, grades=self._task.grades)
            self._size = _bytes(
                self._preferences.left, self._preferences.right, self._preferences.weight
            )
        return self._preferences

    def _encoded(self, options: ShardOptions) -> Pairs:
        if self._options != options:
            preferences = self._read().with_grades(options.grades)
            self._pairs = encode(
                preferences, options.positions, len(options.grades), options.unjudged
            )
            self._folds = self._fold_numbers(preferences, self._pairs, options)
            self._options, self._subset, self._preferences = options, None, None
        return self._pairs

    def _fold_numbers(self, preferences: Preferences, pairs: Pairs, options: ShardOptions) -> Ints:
        """Return the fold of each pair, by a hash of its query, which may be in several files.

        Without queries folds are drawn at random, with a stream per file.
        """
        if preferences.query is None:
            rng = np.random.default_rng([options.seed, self._task.number])
            return rng.integers(0, options.folds, len(preferences))[pairs.rows]
        salt = zlib.crc32(b"%d" % options.seed)
        fold_of_query: dict[str, int] = {}
        numbers = np.empty(len(pairs), np.int64)
        for row, query in enumerate(preferences.query[pairs.rows]):
            if query not in fold_of_query:
                fold_of_query[query] = zlib.crc32(str(query).encode(), salt) % options.folds
            numbers[row] = fold_of_query[query]
        return numbers

    def _selected(self, options: ShardOptions, subset: PairSubset) -> Pairs:
        pairs = self._encoded(options)
        if subset.fold is None:
            return pairs
        return pairs[(self._folds == subset.fold) == subset.held_out]

    def _sums(
        self, options: ShardOptions, subset: PairSubset, costs: Floats | None = None
    ) -> InMemoryPairSums:
        if self._options != options or self._subset != subset:
            pairs = self._selected(options, subset)
            self._cached_sums = InMemoryPairSums(pairs, np.array(options.margins), self._threads)
            self._subset = subset
            self._point = self._direction = self._active_point = b""
            weight = pairs.weight
            self._exact = bool((weight == np.round(weight)).all() and weight.sum() < EXACT_LIMIT)
            total, selected = (
                _bytes(p.left, p.right, p.weight, p.rows) for p in (self._pairs, pairs)
            )
            self._size = total + (0 if pairs is self._pairs else selected) + 17 * len(pairs)
        if costs is not None:
            self._cached_sums.costs[:] = costs
        return self._cached_sums


def _bytes(*arrays: Array) -> int:
    return sum(a.nbytes for a in arrays)


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
            PreferenceShard.update_active,
            self._options,
            self._subset,
            self._active_point,
            self._point,
        )
        self._active_sums, self._active_point = ActiveSums(square, targets), self._point
        return changed

    def normal_equations(self) -> tuple[Floats, Floats]:
        return self._active_sums.normal_equations(self.costs, self.margins)

    def line_derivatives(self, t: float) -> tuple[float, float, float]:
        return self._job.sum(
            PreferenceShard.line_derivatives,
            self._options,
            self._subset,
            self._point,
            self._direction,
            t,
            self.costs,
        )

    def cost(self) -> tuple[float, float]:
        return self._job.sum(
            PreferenceShard.cost, self._options, self._subset, self._point, self.costs
        )

    def negative_half_gradient(self) -> Floats:
        return self._job.sum(
            PreferenceShard.negative_half_gradient,
            self._options,
            self._subset,
            self._point,
            self.costs,
        )

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
        seen = {g for s in self.surveys for g in s.seen}
        seen |= {g for s in self.summaries for g in s.lowest}
        yield from missing_grade_notes(self.grades, seen)
        yield from undetermined_notes(self.never_differs)
        preferences = self.used - sum(s.ties for s in self.summaries)
        yield from contradiction_notes(sum(s.contradicted for s in self.summaries), preferences)
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


def shard_job(
    files: PreferenceFiles, grades: tuple[int, ...] | None, engine: Engine
) -> ShardJob[PreferenceShard]:
    """Return a job with a shard per file; `grades` are all grades, None for those that occur."""
    return engine.job(
        [PreferenceTask(path.resolve(), n, grades) for n, path in enumerate(files.paths)]
    )


def survey_files(
    job: ShardJob[PreferenceShard],
) -> tuple[tuple[FileSurvey, ...], tuple[int, ...]]:
    """Return the contents of each file, and the grades of all files in ascending order."""
    surveys = tuple(job.map(PreferenceShard.survey))
    return surveys, tuple(sorted({grade for survey in surveys for grade in survey.grades}))


def survey_lists(
    job: ShardJob[PreferenceShard], surveys: Sequence[FileSurvey], positions: int
) -> tuple[int, float]:
    """Return the length of the longest list, and the fraction of positions without a grade.

    Lists count up to the longest one, at most to the first `positions`, as in memory.
    """
    longest = max(survey.positions for survey in surveys)
    total = 2 * sum(survey.pairs for survey in surveys) * min(longest, positions)
    judged = sum(job.map(PreferenceShard.judged_positions, positions))
    return longest, 1.0 - judged / total if total else 0.0
