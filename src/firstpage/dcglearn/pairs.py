"""Preferences as the learner reads them: the better ranking left, nothing unknown; and what may be
wrong with them, or with parameters, said before or beside the result."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.data.preferences.preferences import UNKNOWN, Levels, Preferences, Unjudged
from firstpage.errors import DataError
from firstpage.types import Bools, Floats, Ints, Words

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
    left, right = given.encode(places, unjudged)
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


LARGEST = 4000  # places times grades: the unknowns of one problem
SHOWN = 8  # places named in one note
MANY = 0.05  # of the preferences: a share of contradicted ones that is worth a note


def check_parameters(
    K: int, L: int | None, C: float | str, C_tie: float | None, strong: float, pooling: float,
    grid: Sequence[float], folds: int, seed: int, **others: Any,
) -> None:  # fmt: skip
    """One line for each number of DCGLearn that cannot be."""
    if not _whole(K, 1):
        raise DataError(f"K, the places that count, must be a whole number from 1 on; got {K!r}.")
    if L is not None and not _whole(L, 2):
        raise DataError(f"L, the number of grades, must be a whole number from 2 on; got {L!r}.")
    if C != "cv" and not _number(C, above=0.0):
        raise DataError(f"C must be a finite number above 0, or 'cv'; got {C!r}.")
    if C_tie is not None and not (C_tie == 0 or _number(C_tie, above=0.0)):
        raise DataError(f"C_tie must be a finite number from 0 on; got {C_tie!r}.")
    if not _number(strong, above=0.0):
        raise DataError(f"strong, the margin of 'much better', must be above 0; got {strong!r}.")
    if not (_number(pooling, above=-1.0) and 0 <= pooling <= 1):
        raise DataError(f"pooling must be from 0 to 1; got {pooling!r}.")
    if (
        not isinstance(grid, Sequence)
        or not len(grid)
        or not all(_number(c, above=0.0) for c in grid)
    ):
        raise DataError(f"grid must be values of C above 0; got {grid!r}.")
    if not _whole(folds, 2):
        raise DataError(f"folds must be a whole number from 2 on; got {folds!r}.")
    if not _whole(seed, 0):
        raise DataError(f"seed must be a whole number from 0 on; got {seed!r}.")


def check_size(places: int, levels: int) -> None:
    """The unknowns of one problem, and the square of that many sums, must fit."""
    if places * levels > LARGEST:
        raise DataError(
            f"{places} places times {levels} grades are too many, at most {LARGEST} in all; look "
            "at fewer places (K)."
        )


def _number(value: object, above: float) -> bool:
    return isinstance(value, (int, float, np.number)) and above < float(value) < np.inf


def _whole(value: object, least: int) -> bool:
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return is_whole and int(value) >= least  # type: ignore[call-overload]


def notes(given: Preferences, pairs: Pairs) -> Iterator[str]:
    """What a person should know about the preferences."""
    yield from lost_grades(given.grades, given.observed_grades())
    yield from same_places((pairs.left == pairs.right).all(axis=0))
    against = contradicted(pairs)
    share = float(against.sum()) / max(1, int((pairs.kind != TIE).sum()))
    if share > MANY:
        yield (
            f"{share:.0%} of the preferences are contradicted: of the same two lists of grades "
            "the other one was preferred as well."
        )


def places_cut(given: Preferences, places: int) -> Iterator[str]:
    """Yield that lists go on after the places that count, where they do."""
    if given.n_positions > places:
        yield (
            f"some lists have {given.n_positions} places; only the first {places} count in the "
            "measure."
        )


def places_unjudged(given: Preferences, places: int, unjudged: Unjudged) -> Iterator[str]:
    """Yield what places without a grade count as, where there are any."""
    levels = np.concatenate([side[:, :places].ravel() for side in (given.left, given.right)])
    unknown = float((levels == UNKNOWN).mean()) if levels.size else 0.0
    if unknown:
        words = {"worst": "count as the worst grade", "condense": "are left out"}
        yield f"{unknown:.1%} of the places have no grade and {words[unjudged]} (unjudged)."


def lost_grades(grades: Sequence[int], seen: Collection[int]) -> Iterator[str]:
    lost = [str(grade) for grade in grades if grade not in seen]
    if lost:
        yield (
            f"no list has the grade {', '.join(lost)}: what it is worth follows from the grades "
            "beside it only."
        )


def same_places(same: Bools) -> Iterator[str]:
    """`same`: places at which no pair differs."""
    if same.any():
        yield (
            f"in every pair both lists have the same grade at place "
            f"{_some(np.flatnonzero(same) + 1)}: its discount cannot be learned and is 0."
        )


def _some(numbers: Ints) -> str:
    """The first few, and how many more."""
    shown = ", ".join(map(str, numbers[:SHOWN].tolist()))
    return shown if len(numbers) <= SHOWN else f"{shown} and {len(numbers) - SHOWN} more"


def contradicted(pairs: Pairs) -> Bools:
    """Preferences for which another one says the opposite about the same difference of grades."""
    keys = fingerprints(pairs)
    same = np.minimum(keys, np.uint64(0) - keys)  # one number for a difference and its opposite
    strict = np.flatnonzero(pairs.kind != TIE)
    order = strict[np.argsort(same[strict])]
    first = np.flatnonzero(np.diff(same[order], prepend=~same[order[:1]]) != 0)
    found = np.zeros(len(pairs), bool)
    if len(first):
        turned = keys[order] != same[order]
        both = np.logical_or.reduceat(turned, first) & ~np.logical_and.reduceat(turned, first)
        found[order] = np.repeat(both, np.diff(first, append=len(order)))
    return found


def fingerprints(pairs: Pairs) -> Words:
    """A number for each difference of rankings: equal ones share it, opposite ones its negative.

    Random and 64 bits long: two others share one by chance once in 10^19.
    """
    size = pairs.places * pairs.levels
    rng = np.random.default_rng(20130202)
    table = rng.integers(0, 2**64, size, np.uint64, endpoint=False)
    out = np.zeros(len(pairs), np.uint64)
    for k in range(pairs.places):
        row = table[k * pairs.levels : (k + 1) * pairs.levels]
        out += row[pairs.left[:, k]] - row[pairs.right[:, k]]
    return out
