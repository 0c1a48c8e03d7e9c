"""Worlds in which the true measure is known: the simulations of Zhou et al. (2013), section 5.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from firstpage.data.preferences import Preferences
from firstpage.data.utility import Utility
from firstpage.errors import DataError
from firstpage.types import Array, Floats

LIST = (5, 5, 4, 4, 3, 3, 2, 2, 1, 1)
OTHER_LIST = (5, 5, 5, 4, 4, 4, 3, 3, 2, 1)  # for optimal rankings of other grades
GRADES = (1, 2, 3, 4, 5)
Draw = Callable[[int], tuple[Array, Array]]  # so many pairs of rankings
NOTHING = 1e-9  # a difference in the true worth that is none


@dataclass(frozen=True, eq=False)
class World:
    """A true measure, and the grades whose orders are compared."""

    truth: Utility
    grades: tuple[int, ...] = LIST

    @property
    def places(self) -> int:
        return len(self.grades)

    def rankings(self, count: int, rng: np.random.Generator) -> Array:
        """Random orders of the grades, one a row."""
        rows = np.tile(np.array(self.grades, np.int8), (count, 1))
        return rng.permuted(rows, axis=1)

    def worth(self, rankings: Array) -> Floats:
        """The true worth of rankings."""
        level = np.searchsorted(self.truth.grades, rankings)
        found: Floats = self.truth.weights[np.arange(rankings.shape[1]), level].sum(axis=1)
        return found

    def prefer(self, left: Array, right: Array) -> Preferences:
        """What the true measure says of pairs; those it finds equal are left out."""
        apart = self.worth(left) - self.worth(right)
        clear = np.abs(apart) > NOTHING
        outcome = np.sign(apart[clear])
        return Preferences.of(left[clear], right[clear], outcome, grades=self.truth.grades)

    def pairs(self, count: int, rng: np.random.Generator) -> Preferences:
        """So many pairs of random orders."""
        return self._filled(count, lambda n: (self.rankings(n, rng), self.rankings(n, rng)))

    def optimal_pairs(
        self, count: int, rng: np.random.Generator, grades: Sequence[int] | None = None
    ) -> Preferences:
        """One side always the best order of the grades; the other a random order of them, or of
        other grades."""
        best = np.sort(np.array(self.grades, np.int8))[::-1]
        other = World(self.truth, tuple(self.grades if grades is None else grades))
        return self._filled(count, lambda n: (np.tile(best, (n, 1)), other.rankings(n, rng)))

    def _filled(self, count: int, draw: Draw) -> Preferences:
        """Draws until there are enough that are not equal."""
        found = self.prefer(*draw(max(count, 8)))
        while len(found) < count:
            found = found + self.prefer(*draw(max(count, 8)))
        return found[:count]


def world(data: int) -> World:
    """Data 1 (the gain is the grade) or Data 2 (2^grade - 1), discounts 1 / log(1 + place)."""
    if data not in (1, 2):
        raise DataError(f"there are Data 1 and Data 2; got {data}.")
    return World(Utility.standard(("linear", "exp")[data - 1], GRADES, len(LIST)))


def reversed_pairs(given: Preferences, share: float, rng: np.random.Generator) -> Preferences:
    """A share of the preferences turned round, as people err."""
    turned = rng.permutation(len(given))[: round(share * len(given))]
    outcome = given.outcome.copy()
    outcome[turned] *= -1
    return replace(given, outcome=outcome)


def regraded(given: Preferences, share: float, rng: np.random.Generator) -> Preferences:
    """A share of the documents with a random grade (perhaps their own), as assessors err."""
    sides = []
    for side in (given.left, given.right):
        noisy = rng.random(side.shape) < share
        sides.append(np.where(noisy, rng.integers(0, len(given.grades), side.shape), side))
    return replace(given, left=sides[0].astype(np.int8), right=sides[1].astype(np.int8))
