"""Preferences as the learner reads them: the better ranking left, nothing unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.data.preferences.preferences import Levels, Preferences, Unjudged
from firstpage.errors import DataError
from firstpage.types import Bools, Floats, Ints

TIE = 0  # kind of a pair; 1 and 2 are preferences


@dataclass(frozen=True, eq=False)
class Pairs:
    """kind  0 a tie, 1 the left is better, 2 much better; `rows`: where they stand in what was
    given, for pairs that differ nowhere say nothing and are left out."""

    left: Levels
    right: Levels
    kind: Levels
    weight: Floats
    levels: int
    rows: Ints

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def places(self) -> int:
        return int(self.left.shape[1])

    @property
    def ties(self) -> int:
        return int((self.kind == TIE).sum())

    @property
    def alike(self) -> bool:
        """Whether both rankings of every pair have the same grades, in whatever order."""
        return bool((np.sort(self.left, axis=1) == np.sort(self.right, axis=1)).all())

    @classmethod
    def chained(cls, parts: Sequence[Pairs]) -> Pairs:
        """All of several parts, one after the other; `rows` are numbered anew."""
        left, right, kind, weight = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("left", "right", "kind", "weight")
        )
        return cls(left, right, kind, weight, parts[0].levels, np.arange(len(kind)))

    def __getitem__(self, at: Ints | Bools | slice) -> Pairs:
        return Pairs(
            self.left[at], self.right[at], self.kind[at], self.weight[at], self.levels,
            self.rows[at],
        )  # fmt: skip

    def weighed(self, weight: Floats) -> Pairs:
        """The same with other weights."""
        return replace(self, weight=weight)

    def sparse(self) -> Any:
        """The differences delta, one row a pair, as a sparse matrix: for tests and small work."""
        from scipy.sparse import csr_array

        n, k = self.left.shape
        first = np.arange(k) * self.levels
        at = np.hstack([self.left + first, self.right + first]).ravel()
        sign = np.tile(np.repeat([1.0, -1.0], k), n)
        starts = np.arange(0, 2 * k * n + 1, 2 * k)
        found = csr_array((sign, at, starts), shape=(n, k * self.levels))
        found.sum_duplicates()
        found.eliminate_zeros()
        return found


def encode(given: Preferences, places: int, levels: int, unjudged: Unjudged = "worst") -> Pairs:
    """Of each pair the better one left; pairs without difference or weight are left out."""
    if len(given.grades) > levels:
        raise DataError(
            f"{given.source}: there are {len(given.grades)} grades ({given.grades[0]} to "
            f"{given.grades[-1]}), and the measure has {levels} levels."
        )
    left, right = given.encoded(places, unjudged)
    kind = np.abs(given.outcome)
    kept = given.weight > 0
    kept &= (left != right).any(axis=1)
    back = given.outcome < 0
    if back.any():
        left, right = np.where(back[:, None], right, left), np.where(back[:, None], left, right)
    if kept.all():
        return Pairs(left, right, kind, given.weight, levels, np.arange(len(kind)))
    return Pairs(
        left[kept], right[kept], kind[kept], given.weight[kept], levels, np.flatnonzero(kept)
    )
