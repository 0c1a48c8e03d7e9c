"""How well weights agree with pairs that they were not learned from, and C by that.

Preferences in memory, as DCGLearn learns from them, are here too; those of files, worked on where
they are, answer to the same names (`Problem`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from firstpage.data.preferences.preferences import Preferences, factorize
from firstpage.data.preferences.utility import Form
from firstpage.dcglearn.pairs import Pairs, notes
from firstpage.dcglearn.solver import Optimum, solve
from firstpage.dcglearn.sums import AnySums, Sums
from firstpage.dcglearn.weights import Cone, factors
from firstpage.errors import DataError
from firstpage.kernels.losses import preferences as kernel
from firstpage.types import Array, Bools, Floats, Ints, Progress

GRID = tuple(10.0**e for e in range(-3, 5))
NOTHING = 1e-12  # of the greatest difference: below it two rankings are equally good


@dataclass(frozen=True)
class Match:
    """accuracy  share of preferences agreed with, where no difference counts half; NaN without any
    apart     mean size of the differences of tied pairs; NaN without any"""

    accuracy: float
    apart: float
    preferences: float
    ties: float

    @classmethod
    def of(cls, sums: Floats) -> Match:
        """From what `kernel.agreement` adds up."""
        every, right, ties, apart = (float(v) for v in sums)
        return cls(
            right / every if every else np.nan, apart / ties if ties else np.nan, every, ties
        )


def differences(pairs: Pairs, table: Floats) -> Floats:
    """Worth of the left rankings less that of the right ones."""
    z, flat = np.empty(len(pairs)), np.ascontiguousarray(table, np.float64).ravel()
    kernel.differences(pairs.left, pairs.right, flat, pairs.levels, z)
    return z


def agreement(pairs: Pairs, table: Floats) -> Match:
    """How far these weights say what the pairs say."""
    z = differences(pairs, table)
    sums = np.zeros(4)
    tolerance = NOTHING * float(np.abs(z).max(initial=0.0))
    kernel.agreement(z, pairs.kind, pairs.weight, tolerance, sums)
    return Match.of(sums)


def hits(pairs: Pairs, table: Floats) -> Floats:
    """Return 1 per preference that these weights agree with, 0 per other, .5 for no difference.

    Ties have no meaning here: the caller that adds these up leaves them out.
    """
    z = differences(pairs, table)
    tolerance = NOTHING * float(np.abs(z).max(initial=0.0))
    return np.where(z > tolerance, 1.0, np.where(z >= -tolerance, 0.5, 0.0))


@dataclass(frozen=True, eq=False)
class Path:
    """Along C: accuracy on pairs held out, a row a fold; of the weights, and of the gains times
    discounts that are nearest to them."""

    costs: tuple[float, ...]
    accuracies: Floats
    of_gains: Floats

    @property
    def means(self) -> Floats:
        found: Floats = self.accuracies.mean(axis=0)
        return found

    @property
    def errors(self) -> Floats:
        """Standard errors over folds."""
        n = len(self.accuracies)
        if n < 2:
            return np.full(len(self.costs), np.nan)
        found: Floats = self.accuracies.std(axis=0, ddof=1) / np.sqrt(n)
        return found

    @property
    def best(self) -> float:
        """The C of the best mean of the weights; of equal ones the least."""
        return self.costs[self.at]

    @property
    def at(self) -> int:
        return int(np.argmax(np.round(self.means, 12)))

    def accuracy(self, form: Form) -> float:
        """At the chosen C.  It was chosen by these very pairs, and flatters a little."""
        rows = self.accuracies if form == "weights" else self.of_gains
        return float(rows.mean(axis=0)[self.at])


@dataclass(frozen=True, eq=False)
class Recipe:
    """All of a learning problem but the pairs: cone, margins, and the cost of ties against C.

    `tie_cost` None: ties cost as much as preferences; else that much, whatever C is.
    """

    cone: Cone
    margins: Floats
    tie_cost: float | None = None
    threads: int | None = None
    center: Floats | None = None

    def costs(self, c: float) -> Floats:
        return np.array([c if self.tie_cost is None else self.tie_cost, c, c])

    def sums(self, pairs: Pairs) -> Sums:
        return Sums(pairs, self.margins, self.threads)

    def fit(self, sums: AnySums, c: float, start: Optimum | None = None) -> Optimum:
        begin = None if start is None else start.steps
        return solve(sums, self.cone, self.costs(c), begin, self.center)

    def table(
        self, pairs: Pairs, c: float, start: Optimum | None = None, form: Form = "weights"
    ) -> Floats:
        """Return the weights learned from pairs, or the gains times discounts nearest to them."""
        found = self.fit(self.sums(pairs), c, start).table.reshape(self.cone.places, -1)
        return factors(found).table if form == "gains" else found

    def path(self, pairs: Pairs, grid: Sequence[float]) -> list[Optimum]:
        """The optimum for each C."""
        return self.along(self.sums(pairs), grid)

    def along(self, sums: AnySums, grid: Sequence[float]) -> list[Optimum]:
        """The optimum for each C, each from the one before."""
        found = list[Optimum]()
        for c in grid:
            found.append(self.fit(sums, c, found[-1] if found else None))
        return found


def folds(groups: Array, count: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Rows to learn from and rows held out; what is of one group stays together."""
    names, number = np.unique(groups, return_inverse=True)
    count = min(count, len(names))
    if count < 2:
        raise DataError("cross-validation needs pairs of at least two queries.")
    turn = np.random.default_rng(seed).permutation(len(names)) % count
    part = turn[number]
    for fold in range(count):
        yield np.flatnonzero(part != fold), np.flatnonzero(part == fold)


def cross_validated(
    recipe: Recipe, pairs: Pairs, groups: Array, grid: Sequence[float] = GRID, count: int = 5,
    seed: int = 0, progress: Progress | None = None,
) -> Path:  # fmt: skip
    """Accuracy on held-out pairs for each C."""
    rows = []
    parts = list(folds(groups, count, seed))
    for done, (train, held) in enumerate(parts, 1):
        if progress is not None:
            progress(done, len(parts) + 1)
        if not (pairs.kind[train] > 0).any() or not (pairs.kind[held] > 0).any():
            continue  # a fold of ties says nothing about accuracy
        path = recipe.path(pairs[train], grid)
        rows.append(told_by(recipe, path, _matches(pairs[held])))
    if len(rows) < 2:
        raise DataError("cross-validation needs preferences, not only ties, in several queries.")
    return Path(tuple(grid), *np.moveaxis(np.array(rows), 1, 0))


def validated(recipe: Recipe, sums: AnySums, valid: Pairs, grid: Sequence[float] = GRID) -> Path:
    """The same with validation pairs of their own."""
    if valid.ties == len(valid):
        raise DataError("the validation pairs hold no preference.")
    weights, gains = np.array(told_by(recipe, recipe.along(sums, grid), _matches(valid)))
    return Path(tuple(grid), weights[None], gains[None])


Matches = Callable[[Sequence[Floats]], list[Match]]
"""Tables of weights -> how each agrees with pairs held out."""


def _matches(held: Pairs) -> Matches:
    return lambda tables: [agreement(held, table) for table in tables]


def told_by(recipe: Recipe, path: Sequence[Optimum], held: Matches) -> list[list[float]]:
    """Accuracies along a path: of the weights, and of gains times discounts."""
    tables = [optimum.table.reshape(recipe.cone.places, -1) for optimum in path]
    nearest = [factors(table).table for table in tables]
    found = [match.accuracy for match in held([*tables, *nearest])]
    return [found[: len(tables)], found[len(tables) :]]


class Problem(Protocol):
    """Pairs to learn from, wherever they are."""

    def __len__(self) -> int:
        """Pairs that were given; of these are `used` that have a weight and a difference."""
        ...

    @property
    def source(self) -> str: ...
    @property
    def grades(self) -> tuple[int, ...]: ...
    @property
    def ties(self) -> int: ...
    @property
    def used(self) -> int: ...
    @property
    def only_ties(self) -> bool: ...

    @property
    def same(self) -> Bools:
        """Whether no pair differs at a place, of which nothing can be learned then."""
        ...

    def notes(self) -> Iterator[str]:
        """What a person should know about the preferences."""
        ...

    def sums(self) -> AnySums: ...

    def matches(self, tables: Sequence[Floats]) -> list[Match]:
        """How far each table says what the pairs say."""
        ...

    def cross_validated(self, grid: Sequence[float], progress: Progress | None) -> Path:
        """Accuracy on pairs held out for each C."""
        ...


@dataclass(frozen=True, eq=False)
class Held:
    """All pairs in memory."""

    given: Preferences
    pairs: Pairs
    recipe: Recipe
    folds: int
    seed: int

    def __len__(self) -> int:
        return len(self.given)

    @property
    def source(self) -> str:
        return self.given.source

    @property
    def grades(self) -> tuple[int, ...]:
        return self.given.grades

    @property
    def ties(self) -> int:
        return int(self.given.tied.sum())

    @property
    def used(self) -> int:
        return len(self.pairs)

    @property
    def only_ties(self) -> bool:
        return self.pairs.ties == len(self.pairs)

    @property
    def groups(self) -> Array:
        """What stays together in folds and resampling: the pairs of one query."""
        rows, query = self.pairs.rows, self.given.query
        return factorize(None if query is None else query[rows], len(rows))

    @property
    def same(self) -> Bools:
        found: Bools = (self.pairs.left == self.pairs.right).all(axis=0)
        return found

    def notes(self) -> Iterator[str]:
        return notes(self.given, self.pairs)

    def sums(self) -> AnySums:
        return self.recipe.sums(self.pairs)

    def matches(self, tables: Sequence[Floats]) -> list[Match]:
        return [agreement(self.pairs, table) for table in tables]

    def cross_validated(self, grid: Sequence[float], progress: Progress | None) -> Path:
        return cross_validated(
            self.recipe, self.pairs, self.groups, grid, self.folds, self.seed, progress
        )
