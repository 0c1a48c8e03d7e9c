"""Preferences in memory, as DCGLearn learns from them.

`Sharded`, of files that are worked on where they are, answers to the same names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from firstpage.data.preferences.preferences import Preferences, spread
from firstpage.dcglearn.checks import notes
from firstpage.dcglearn.pairs import Pairs
from firstpage.dcglearn.sums import AnySums
from firstpage.dcglearn.validation import Match, Path, Recipe, Tick, agreement, cross_validated
from firstpage.types import Array, Bools, Floats


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

    def cross_validated(self, grid: Sequence[float], tick: Tick | None) -> Path:
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
        return spread(None if query is None else query[rows], len(rows))

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

    def cross_validated(self, grid: Sequence[float], tick: Tick | None) -> Path:
        return cross_validated(
            self.recipe, self.pairs, self.groups, grid, self.folds, self.seed, tick
        )
