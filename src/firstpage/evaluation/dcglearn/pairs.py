"""Preferences encoded for the learner, and checks of preferences and parameters.

In encoded pairs the better ranking is the left one, and every position has a known grade.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.core import Bools, DataError, Floats, Ints, Words
from firstpage.data.preferences import (
    MAX_EXP_LABEL,
    UNKNOWN,
    Levels,
    Preferences,
    Unjudged,
    checked_grades,
)

TIE = 0  # kind of a pair; 1 and 2 are preferences


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of rankings as levels of grades; pairs without any difference are left out.

    Attributes
    ----------
    left, right : ndarray
        Level of the document at each position, a row per pair; left is the better ranking.
    kind : ndarray
        0 for a tie, 1 where left is better, 2 where it is much better.
    weight : ndarray
        Weight per pair.
    levels : int
        Number of grades.
    rows : ndarray
        Row of each pair in the preferences that were encoded.
    """

    left: Levels
    right: Levels
    kind: Levels
    weight: Floats
    levels: int
    rows: Ints

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def positions(self) -> int:
        return int(self.left.shape[1])

    @property
    def ties(self) -> int:
        return int((self.kind == TIE).sum())

    @property
    def same_grades(self) -> bool:
        """Whether both rankings of every pair have the same grades, in any order."""
        return bool((np.sort(self.left, axis=1) == np.sort(self.right, axis=1)).all())

    def __getitem__(self, index: Ints | Bools | slice) -> Pairs:
        return Pairs(
            self.left[index],
            self.right[index],
            self.kind[index],
            self.weight[index],
            self.levels,
            self.rows[index],
        )

    def with_weight(self, weight: Floats) -> Pairs:
        """Return the same pairs with other weights."""
        return replace(self, weight=weight)

    def sparse(self) -> Any:
        """Return the differences delta as a sparse matrix, a row per pair."""
        from scipy.sparse import csr_array

        n, k = self.left.shape
        first = np.arange(k) * self.levels
        columns = np.hstack([self.left + first, self.right + first]).ravel()
        signs = np.tile(np.repeat([1.0, -1.0], k), n)
        starts = np.arange(0, 2 * k * n + 1, 2 * k)
        deltas = csr_array((signs, columns, starts), shape=(n, k * self.levels))
        deltas.sum_duplicates()
        deltas.eliminate_zeros()
        return deltas


def encode(
    preferences: Preferences, positions: int, levels: int, unjudged: Unjudged = "worst"
) -> Pairs:
    """Return the pairs with the better ranking on the left.

    Pairs without a weight, or without a difference in the counted positions, are left out.
    """
    grades = preferences.grades
    if len(grades) > levels:
        raise DataError(
            f"{preferences.source}: there are {len(grades)} grades ({grades[0]} to {grades[-1]}), "
            f"and the measure has {levels} levels."
        )
    left, right = preferences.encode(positions, unjudged)
    kind = np.abs(preferences.outcome)
    informative = preferences.weight > 0
    informative &= (left != right).any(axis=1)
    swapped = preferences.outcome < 0
    if swapped.any():
        left, right = (
            np.where(swapped[:, None], right, left),
            np.where(swapped[:, None], left, right),
        )
    if informative.all():
        return Pairs(left, right, kind, preferences.weight, levels, np.arange(len(kind)))
    return Pairs(
        left[informative],
        right[informative],
        kind[informative],
        preferences.weight[informative],
        levels,
        np.flatnonzero(informative),
    )


MAX_UNKNOWNS = 4000  # positions times grades of one problem
MAX_LISTED = 8  # positions named in one note
CONTRADICTED_FRACTION = 0.05  # of the preferences: above it a note is given


def check_parameters(
    K: int,
    L: int | None,
    C: float | str,
    C_tie: float | None,
    strong_margin: float,
    pooling: float,
    grid: Sequence[float],
    folds: int,
    seed: int,
    grades: Sequence[int] | None,
    **others: Any,
) -> None:
    """Raise DataError for the first parameter of DCGLearn with an invalid value."""
    if not _is_integer(K, 1):
        raise DataError(f"K, the number of positions, must be an integer of at least 1; got {K!r}.")
    if L is not None and not _is_integer(L, 2):
        raise DataError(f"L, the number of grades, must be an integer of at least 2; got {L!r}.")
    if grades is not None:
        count = len(checked_grades(grades, "DCGLearn"))
        if L not in (None, count):
            raise DataError(f"L is {L}, and there are {count} grades; omit L or grades.")
    if C != "cv" and not _is_number(C, above=0.0):
        raise DataError(f"C must be a finite number above 0, or 'cv'; got {C!r}.")
    if C_tie is not None and not (C_tie == 0 or _is_number(C_tie, above=0.0)):
        raise DataError(f"C_tie must be a finite number of at least 0; got {C_tie!r}.")
    if not _is_number(strong_margin, above=0.0):
        raise DataError(
            f"strong_margin, the margin of 'much better', must be above 0; got {strong_margin!r}."
        )
    if not (_is_number(pooling, above=-1.0) and 0 <= pooling <= 1):
        raise DataError(f"pooling must be from 0 to 1; got {pooling!r}.")
    if (
        not isinstance(grid, Sequence)
        or not len(grid)
        or not all(_is_number(c, above=0.0) for c in grid)
    ):
        raise DataError(f"grid must be a sequence of values of C above 0; got {grid!r}.")
    if not _is_integer(folds, 2):
        raise DataError(f"folds must be an integer of at least 2; got {folds!r}.")
    if not _is_integer(seed, 0):
        raise DataError(f"seed must be an integer of at least 0; got {seed!r}.")


def check_size(positions: int, grades: Sequence[int]) -> None:
    """Raise DataError where the normal equations do not fit in memory, or 2^grade overflows."""
    if positions * len(grades) > MAX_UNKNOWNS:
        raise DataError(
            f"{positions} positions times {len(grades)} grades exceed the limit of {MAX_UNKNOWNS} "
            "weights; use fewer positions (K)."
        )
    if grades[-1] > MAX_EXP_LABEL:
        raise DataError(
            f"the grade {grades[-1]} is too large: the gain 2^grade of the standard DCG is limited "
            f"to grade {MAX_EXP_LABEL}; number the grades anew, such as 0, 1, 2."
        )


def _is_number(value: object, above: float) -> bool:
    return isinstance(value, (int, float, np.number)) and above < float(value) < np.inf


def _is_integer(value: object, minimum: int) -> bool:
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return integer and int(value) >= minimum  # type: ignore[call-overload]


def notes(preferences: Preferences, pairs: Pairs) -> Iterator[str]:
    """Yield what the user should know about the preferences, a sentence each."""
    yield from _missing_grade_notes(preferences, pairs)
    yield from _undetermined_notes(never_differs(pairs))
    yield from _contradiction_notes(pairs)


def _missing_grade_notes(preferences: Preferences, pairs: Pairs) -> Iterator[str]:
    """Yield a note naming the grades that no list has.

    The worst grade occurs as well where an unjudged document counts as it.
    """
    seen = set(preferences.observed_grades())
    if (pairs.left == 0).any() or (pairs.right == 0).any():
        seen.add(preferences.grades[0])
    missing = [str(grade) for grade in preferences.grades if grade not in seen]
    if missing:
        yield (
            f"no list has the grade {', '.join(missing)}: its gain is determined by the "
            "neighboring grades only."
        )


def never_differs(pairs: Pairs) -> Bools:
    """Return the positions at which no pair differs; their discounts cannot be learned."""
    flags: Bools = (pairs.left == pairs.right).all(axis=0)
    return flags


def _undetermined_notes(undetermined: Bools) -> Iterator[str]:
    """Yield a note naming the positions at which no pair differs."""
    if undetermined.any():
        yield (
            f"in every pair both lists have the same grade at position "
            f"{_listed(np.flatnonzero(undetermined) + 1)}: its discount cannot be learned and is "
            "0."
        )


def _contradiction_notes(pairs: Pairs) -> Iterator[str]:
    """Yield a note where many of the preferences are contradicted by others."""
    fraction = contradicted(pairs).sum() / max(1, len(pairs) - pairs.ties)
    if fraction > CONTRADICTED_FRACTION:
        yield (
            f"{fraction:.0%} of the preferences are contradicted: for the same two lists of grades "
            "the opposite preference was given as well."
        )


def truncation_notes(preferences: Preferences, positions: int) -> Iterator[str]:
    """Yield a note where lists are longer than the positions that count."""
    longest = preferences.n_positions
    if longest > positions:
        yield (
            f"some lists have {longest} positions; only the first {positions} count in the measure."
        )


def unjudged_fraction(preferences: Preferences, positions: int) -> float:
    """Return the fraction of the first positions that have no grade."""
    counted = [side[:, :positions] for side in (preferences.left, preferences.right)]
    unjudged = sum(int((side == UNKNOWN).sum()) for side in counted)
    return unjudged / max(1, sum(side.size for side in counted))


def unjudged_notes(preferences: Preferences, positions: int, unjudged: Unjudged) -> Iterator[str]:
    """Yield a note on how positions without a grade count, where there are any."""
    fraction = unjudged_fraction(preferences, positions)
    if fraction:
        effects = {"worst": "count as the worst grade", "condense": "are left out"}
        yield f"{fraction:.1%} of the positions have no grade and {effects[unjudged]} (unjudged)."


def _listed(numbers: Ints) -> str:
    """Return the first few numbers as text, and how many more there are."""
    text = ", ".join(map(str, numbers[:MAX_LISTED].tolist()))
    rest = len(numbers) - MAX_LISTED
    return text if rest <= 0 else f"{text} and {rest} more"


def contradicted(pairs: Pairs) -> Bools:
    """Return whether another preference states the opposite for the same difference of grades."""
    keys = fingerprints(pairs)
    same = np.minimum(keys, np.uint64(0) - keys)  # one number for a difference and its opposite
    strict = np.flatnonzero(pairs.kind != TIE)
    order = strict[np.argsort(same[strict])]
    first = np.flatnonzero(np.diff(same[order], prepend=~same[order[:1]]) != 0)
    flags = np.zeros(len(pairs), bool)
    if len(first):
        opposite = keys[order] != same[order]
        both = np.logical_or.reduceat(opposite, first) & ~np.logical_and.reduceat(opposite, first)
        flags[order] = np.repeat(both, np.diff(first, append=len(order)))
    return flags


def fingerprints(pairs: Pairs) -> Words:
    """Return a 64-bit hash of each difference of rankings.

    Equal differences have the same hash, opposite ones its negative.  The hash is a sum of random
    numbers, so that two other differences collide with probability 2^-64.
    """
    size = pairs.positions * pairs.levels
    rng = np.random.default_rng(20130202)
    table = rng.integers(0, 2**64, size, np.uint64, endpoint=False)
    out = np.zeros(len(pairs), np.uint64)
    for k in range(pairs.positions):
        row = table[k * pairs.levels : (k + 1) * pairs.levels]
        out += row[pairs.left[:, k]] - row[pairs.right[:, k]]
    return out
