"""One file of preferences at work, on whatever machine it is read.

Everything here is a function of the arguments; what is kept, sums at the last point, is kept by the
point that it belongs to.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from firstpage.data.preferences.files import read_preferences
from firstpage.data.preferences.preferences import Preferences, Unjudged
from firstpage.dcglearn.pairs import Pairs, encode
from firstpage.dcglearn.sums import Sums
from firstpage.dcglearn.validation import differences
from firstpage.kernels.losses import preferences as kernel
from firstpage.types import Array, Bools, Floats, Ints

EXACT = 2.0**53  # whole numbers below it are added without rounding


@dataclass(frozen=True)
class Survey:
    """What a file has."""

    pairs: int
    ties: int
    places: int
    grades: tuple[int, ...]
    seen: tuple[int, ...]
    segments: bool


@dataclass(frozen=True)
class Told:
    """What pairs are left of a file: those with a weight and a difference.

    same    places at which both lists of every pair have the same grade
    alike   whether both lists of every pair have the same grades, in whatever order
    """

    pairs: int
    ties: int
    same: Bools
    alike: bool


@dataclass(frozen=True)
class How:
    """How files are read, the same for all."""

    grades: tuple[int, ...]
    places: int
    unjudged: Unjudged
    margins: tuple[float, ...]
    folds: int
    seed: int


@dataclass(frozen=True)
class Some:
    """Which pairs: all, those to learn from without a fold, or those of a fold alone."""

    fold: int | None = None
    held: bool = False


ALL = Some()


@dataclass(frozen=True)
class PreferenceTask:
    """Where the pairs of a shard are: in the n-th file."""

    path: Path
    number: int

    def open(self, threads: int) -> PreferenceShard:
        return PreferenceShard(self, threads)


class PreferenceShard:
    """The sums of one file."""

    def __init__(self, task: PreferenceTask, threads: int) -> None:
        self._task, self._threads = task, threads
        self._given: Preferences | None = None
        self._how: How | None = None
        self._which: Some | None = None
        self._size = 0
        self._point = self._way = self._grouped = b""  # what the kept sums are at
        self._whole = True

    @property
    def nbytes(self) -> int:
        return self._size

    def release(self) -> None:
        """Nothing is mapped."""

    # --- what there is

    def survey(self) -> Survey:
        given = self._read()
        return Survey(
            len(given), int(given.tied.sum()), given.n_positions, given.grades,
            tuple(given.observed_grades()),
            given.segment is not None,
        )  # fmt: skip

    def told(self, how: How) -> Told:
        pairs = self._encoded(how)
        same = (pairs.left == pairs.right).all(axis=0)
        return Told(len(pairs), pairs.ties, same, pairs.alike)

    def strict(self, how: How) -> Array:
        """How many pairs of each fold are no ties."""
        kept = self._encoded(how).kind > 0
        return np.bincount(self._folds[kept], minlength=how.folds)

    # --- sums at a point

    def regroup(
        self, how: How, which: Some, before: Floats | None, table: Floats
    ) -> tuple[int, Floats, Floats]:
        """How many pairs change sides from one table to the next, and the sums there."""
        sums = self._sums(how, which)
        if before is None:
            sums.forget()
        elif self._grouped != before.tobytes():
            sums.forget()
            self._move(sums, before)
            sums.regroup()
        self._move(sums, table)
        changed = sums.regroup()
        if not self._whole:  # the way there would show in the last digits
            sums.forget()
            sums.regroup()
        self._grouped = table.tobytes()
        grouped = sums.grouped()
        return changed, grouped.square, grouped.aims

    def slope(
        self, how: How, which: Some, table: Floats, way: Floats, t: float, costs: Floats
    ) -> tuple[float, float, float]:
        sums = self._sums(how, which, costs)
        self._move(sums, table)
        if self._way != way.tobytes():
            sums.aim(way)
            self._way = way.tobytes()
        return sums.slope_at(t)

    def cost(self, how: How, which: Some, table: Floats, costs: Floats) -> tuple[float, float]:
        sums = self._sums(how, which, costs)
        self._move(sums, table)
        self._way = b""  # its place is taken
        return sums.cost()

    def pull(self, how: How, which: Some, table: Floats, costs: Floats) -> Floats:
        sums = self._sums(how, which, costs)
        self._move(sums, table)
        self._way = b""
        return sums.pull()

    def lacking(self, how: How, which: Some, table: Floats, room: float) -> tuple[int, Array]:
        """Pairs near their margins, a bit each."""
        sums = self._sums(how, which)
        self._move(sums, table)
        found = sums.lacking(room)
        return len(found), np.packbits(found)

    def picked(self, how: How, which: Some, chosen: Bools) -> Pairs:
        return self._sums(how, which).picked(chosen)

    def _move(self, sums: Sums, table: Floats) -> None:
        if self._point != table.tobytes():
            sums.move_to(table)
            self._point = table.tobytes()

    # --- how tables agree with the pairs

    def widest(self, how: How, which: Some, tables: list[Floats]) -> Floats:
        """The greatest difference under each table."""
        pairs = self._some(how, which)
        return np.array([np.abs(differences(pairs, t)).max(initial=0.0) for t in tables])

    def agreement(
        self, how: How, which: Some, tables: list[Floats], tolerances: list[float]
    ) -> Floats:
        """The sums of `kernel.agreement` under each table."""
        pairs = self._some(how, which)
        found = np.zeros((len(tables), 4))
        for at, (table, tolerance) in enumerate(zip(tables, tolerances, strict=True)):
            z = differences(pairs, table)
            kernel.agreement(z, pairs.kind, pairs.weight, tolerance, found[at])
        return found

    # --- what is kept

    def _read(self) -> Preferences:
        if self._given is None:
            self._given = read_preferences(self._task.path)
            self._size = _bytes(self._given.left, self._given.right, self._given.weight)
        return self._given

    def _encoded(self, how: How) -> Pairs:
        if self._how != how:
            given = self._read().with_grades(how.grades)
            self._pairs = encode(given, how.places, len(how.grades), how.unjudged)
            self._folds = self._numbers(given, self._pairs, how)
            self._how, self._which, self._given = how, None, None
        return self._pairs

    def _numbers(self, given: Preferences, pairs: Pairs, how: How) -> Ints:
        """The fold of each pair: by its query, which may be in several files, or by its place."""
        if given.query is None:
            rng = np.random.default_rng([how.seed, self._task.number])
            return rng.integers(0, how.folds, len(given))[pairs.rows]
        salt = zlib.crc32(b"%d" % how.seed)
        names: dict[str, int] = {}
        found = np.empty(len(pairs), np.int64)
        for at, name in enumerate(given.query[pairs.rows]):
            if name not in names:
                names[name] = zlib.crc32(str(name).encode(), salt) % how.folds
            found[at] = names[name]
        return found

    def _some(self, how: How, which: Some) -> Pairs:
        pairs = self._encoded(how)
        if which.fold is None:
            return pairs
        return pairs[(self._folds == which.fold) == which.held]

    def _sums(self, how: How, which: Some, costs: Floats | None = None) -> Sums:
        if self._how != how or self._which != which:
            pairs = self._some(how, which)
            self._kept = Sums(pairs, np.array(how.margins), self._threads)
            self._which = which
            self._point = self._way = self._grouped = b""
            weight = pairs.weight
            self._whole = bool((weight == np.round(weight)).all() and weight.sum() < EXACT)
            whole, part = (_bytes(p.left, p.right, p.weight, p.rows) for p in (self._pairs, pairs))
            self._size = whole + (0 if pairs is self._pairs else part) + 17 * len(pairs)
        if costs is not None:
            self._kept.costs[:] = costs
        return self._kept


def _bytes(*arrays: Array) -> int:
    return sum(a.nbytes for a in arrays)
