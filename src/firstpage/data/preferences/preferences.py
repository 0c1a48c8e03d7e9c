"""Preferences over rankings: two lists of graded documents, and which one people like better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from firstpage.data.ids import Ids
from firstpage.errors import DataError
from firstpage.types import Array, Bools, Floats, Ints

Levels = NDArray[np.int8]
Unjudged = Literal["worst", "condense", "refuse"]
UNKNOWN = -1  # an unjudged document, or a place after the end of a list
MAX_LEVELS = 100
MAX_WEIGHT = 1e100  # a weight beyond it would overflow in sums
MAX_OUTCOME = 2  # "much better"


@dataclass(frozen=True, eq=False)
class Preferences:
    """Pairs of rankings of the same query.

    grades   whole numbers, upward; a level is a number among them
    left     levels from the first place on, a row a pair; -1: unjudged, or the list has ended
    right    likewise
    outcome  1, 2: left is better, much better; 0: equally good; -1, -2: right is
    weight   how much a pair counts
    query, segment   names, where known: pairs of one query stay together in folds
    """

    grades: tuple[int, ...]
    left: Levels
    right: Levels
    outcome: Levels
    weight: Floats
    query: Ids | None = None
    segment: Ids | None = None
    source: str = "the preferences"

    def __post_init__(self) -> None:
        n = len(self.outcome)
        if self.left.shape != self.right.shape or self.left.ndim != 2 or len(self.left) != n:
            raise DataError(
                f"{self.source}: left and right must have one row a pair and as many places; they "
                f"have the shapes {self.left.shape} and {self.right.shape} for {n} outcomes."
            )
        for name in ("weight", "query", "segment"):
            value = getattr(self, name)
            if value is not None and len(value) != n:
                raise DataError(
                    f"{self.source}: {name} must be one a pair; there are {len(value)} for {n}."
                )
        _check_numbers(self)

    def __len__(self) -> int:
        return len(self.outcome)

    def __repr__(self) -> str:
        return (
            f"Preferences({len(self)} pairs, {int(self.tied.sum())} ties; {self.n_positions} places, "
            f"grades {self.grades[0]} to {self.grades[-1]})"
        )

    @property
    def n_positions(self) -> int:
        return int(self.left.shape[1])

    @property
    def tied(self) -> Bools:
        found: Bools = self.outcome == 0
        return found

    def __getitem__(self, rows: slice | Ints | Bools) -> Preferences:
        """Some of the pairs."""
        at = np.arange(len(self))[rows]
        names = (None if ids is None else ids[at] for ids in (self.query, self.segment))
        query, segment = names
        return replace(
            self, left=self.left[at], right=self.right[at], outcome=self.outcome[at],
            weight=self.weight[at], query=query, segment=segment,
        )  # fmt: skip

    def __add__(self, other: Preferences) -> Preferences:
        """Both, one after the other."""
        grades = _upward(sorted({*self.grades, *other.grades}), self.source)
        first, second = (
            _padded(p, grades, max(self.n_positions, other.n_positions)) for p in (self, other)
        )
        return Preferences(
            grades, np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]]),
            np.concatenate([self.outcome, other.outcome]),
            np.concatenate([self.weight, other.weight]),
            _chained(self, other, "query", "pair {}"), _chained(self, other, "segment", ""),
            self.source,
        )  # fmt: skip

    @classmethod
    def from_grades(
        cls, left: Any, right: Any, outcome: Any = None, *, weight: Any = None, query: Any = None,
        segment: Any = None, grades: Sequence[int] | None = None,
        source: str = "the preferences",
    ) -> Preferences:  # fmt: skip
        """From lists of grades (None or NaN: unjudged), of any lengths, and outcomes.

        Without outcomes the left one is the better of each pair.
        """
        width = max(_width(side, source) for side in (left, right))
        first, second = (_matrix(side, width, source) for side in (left, right))
        n = len(first)
        kept = _grades(grades, first, second, source)
        if len(kept) > MAX_LEVELS:
            raise DataError(f"{source}: {len(kept)} grades are too many; at most {MAX_LEVELS}.")
        given = np.ones(n) if outcome is None else _numbers(outcome, "outcomes", source)
        if not np.isin(given, (-2, -1, 0, 1, 2)).all():
            bad = given[~np.isin(given, (-2, -1, 0, 1, 2))][0]
            raise DataError(
                f"{source}: an outcome is 2, 1 (left is better), 0 (equal), -1 or -2 (right is); "
                f"got {bad:g}."
            )
        weights = np.ones(n) if weight is None else _numbers(weight, "weights", source)
        return cls(
            kept, _levels(first, kept, source), _levels(second, kept, source),
            given.astype(np.int8), weights, None if query is None else Ids.from_values(query),
            None if segment is None else Ids.from_values(segment), source,
        )  # fmt: skip

    def observed_grades(self) -> list[int]:
        """Grades that occur in some list."""
        return [
            grade
            for level, grade in enumerate(self.grades)
            if (self.left == level).any() or (self.right == level).any()
        ]

    def with_grades(self, grades: Sequence[int]) -> Preferences:
        """The same among other grades, which must have all that occur."""
        kept = _upward(grades, self.source)
        if kept == self.grades:
            return self
        lost = [grade for grade in self.observed_grades() if grade not in kept]
        if lost:
            raise DataError(
                f"{self.source}: a list has the grade {lost[0]}; the grades are "
                f"{', '.join(map(str, kept))}."
            )
        left, right = _padded(self, kept, self.n_positions)
        return replace(self, grades=kept, left=left, right=right)

    def encode(self, places: int, unjudged: Unjudged = "worst") -> tuple[Levels, Levels]:
        """Levels of the first `places` with nothing unknown: what is not judged is the worst.

        "condense" leaves unjudged documents out first, so that those below move up; "refuse" is
        an error where there are any.
        """
        if unjudged not in get_args(Unjudged):
            known = ", ".join(get_args(Unjudged))
            raise DataError(f"unjudged must be one of {known}; got {unjudged!r}.")
        first, second = (
            _first(condense(side) if unjudged == "condense" else side, places)
            for side in (self.left, self.right)
        )
        if unjudged == "refuse":
            _refuse_unknown(self, first, second)
        return np.maximum(first, 0), np.maximum(second, 0)


def condense(levels: Levels) -> Levels:
    """Known levels moved up, in their order; unknown ones after them."""
    order = np.argsort(levels == UNKNOWN, axis=1, kind="stable")
    return np.take_along_axis(levels, order, axis=1)


def _first(levels: Levels, places: int) -> Levels:
    """As many places, filled up with unknown ones."""
    short = places - levels.shape[1]
    if short > 0:
        return np.pad(levels, ((0, 0), (0, short)), constant_values=UNKNOWN)
    return np.ascontiguousarray(levels[:, :places])


def _refuse_unknown(given: Preferences, first: Levels, second: Levels) -> None:
    for name, side in (("left", first), ("right", second)):
        at = np.argwhere(side == UNKNOWN)
        if len(at):
            row, place = at[0] + 1
            raise DataError(
                f"{given.source}: pair {row}: the {name} list has no grade at place {place}; judge "
                "it, or let unjudged='worst' count it as the worst."
            )


def _check_numbers(given: Preferences) -> None:
    bad = ~((given.weight >= 0) & (given.weight <= MAX_WEIGHT))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{given.source}: the weight of pair {row + 1} is {given.weight[row]}; weights are "
            f"numbers from 0 to {MAX_WEIGHT:g}."
        )
    top = len(given.grades)
    for side in (given.left, given.right):
        if side.size and (int(side.max()) >= top or int(side.min()) < UNKNOWN):
            raise DataError(f"{given.source}: levels must be from -1 to {top - 1}.")


def _width(side: Any, source: str) -> int:
    """Places of the longest list."""
    if isinstance(side, np.ndarray) and side.ndim == 2:
        return int(side.shape[1])
    try:
        return max((len(row) for row in side), default=0)
    except TypeError:
        raise DataError(
            f"{source}: left and right must be lists of rankings, each a list of grades."
        ) from None


def _matrix(side: Any, width: int, source: str) -> Array:
    """Grades with NaN for what is unknown; whole numbers stay as they are."""
    if isinstance(side, np.ndarray) and side.ndim == 2 and side.dtype.kind in "iuf":
        short = width - side.shape[1]
        if not short:
            return side
        return np.pad(side.astype(np.float64), ((0, 0), (0, short)), constant_values=np.nan)
    found = np.full((len(side), width), np.nan)
    for row, grades in enumerate(side):
        try:
            values = [np.nan if g is None else float(g) for g in grades]
        except (TypeError, ValueError, OverflowError):
            raise DataError(f"{source}: pair {row + 1} has a grade that is no number.") from None
        found[row, : len(values)] = values
    return found


def _grades(
    given: Sequence[int] | None, first: Array, second: Array, source: str
) -> tuple[int, ...]:
    """Those given, or all whole numbers from the least (at most 1) to the greatest seen."""
    if given is not None:
        return _upward(given, source)
    low, high = np.inf, -np.inf
    for side in (first, second):
        known = side if side.dtype.kind != "f" else side[~np.isnan(side)]
        if known.size:
            low, high = min(low, float(known.min())), max(high, float(known.max()))
    if low > high:
        raise DataError(f"{source}: there is no grade in any list; judge the documents first.")
    if not np.isfinite([low, high]).all():
        raise DataError(f"{source}: a grade is infinite; grades are whole numbers.")
    least, most = int(np.floor(min(low, 1.0))), int(np.ceil(high))
    if most - least >= MAX_LEVELS:
        raise DataError(
            f"{source}: the grades go from {low:g} to {high:g}; name those that there are "
            f"(grades=), at most {MAX_LEVELS}."
        )
    return tuple(range(least, max(most, least + 1) + 1))


def _upward(grades: Sequence[int], source: str) -> tuple[int, ...]:
    """Grades by name, checked."""
    try:
        kept = tuple(int(g) for g in grades)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{source}: grades must be whole numbers; got {grades!r}.") from None
    if not 2 <= len(kept) <= MAX_LEVELS or list(kept) != sorted(set(kept)):
        raise DataError(
            f"{source}: grades must be two or more (and at most {MAX_LEVELS}), upward; got "
            f"{list(kept)}."
        )
    return kept


def _levels(side: Array, grades: tuple[int, ...], source: str) -> Levels:
    """Numbers among the grades; every grade must be one of them."""
    low, high = grades[0], grades[-1]
    whole = side.dtype.kind != "f" and high - low + 1 == len(grades)
    if whole and side.size and low <= side.min() and side.max() <= high:
        fits = np.iinfo(side.dtype).min <= low <= np.iinfo(side.dtype).max
        levels = side - side.dtype.type(low) if fits else side.astype(np.int64) - low
        return levels.astype(np.int8)  # millions of pairs come this way
    at = np.searchsorted(grades, side)  # NaN goes to the end
    known = ~np.isnan(side)
    fits = np.asarray(grades)[np.minimum(at, len(grades) - 1)] == side
    if (known & ~fits).any():
        row, place = np.argwhere(known & ~fits)[0]
        raise DataError(
            f"{source}: pair {row + 1} has the grade {side[row, place]:g} at place {place + 1}; "
            f"the grades are {', '.join(map(str, grades))}."
        )
    return np.where(known, at, UNKNOWN).astype(np.int8)


def _numbers(values: Any, what: str, source: str) -> Floats:
    try:
        return np.asarray(values, np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise DataError(f"{source}: {what} must be numbers ({error}).") from None


def _padded(given: Preferences, grades: tuple[int, ...], places: int) -> tuple[Levels, Levels]:
    """Levels among other grades, as many places."""
    number = np.searchsorted(grades, given.grades).astype(np.int8)
    table = np.append(number, np.int8(UNKNOWN))  # the unknown level, -1, takes the last
    return _first(table[given.left], places), _first(table[given.right], places)


def _chained(first: Preferences, second: Preferences, name: str, other: str) -> Ids | None:
    """Names of both; where one has none, each pair of it is called by `other`."""
    ids = [getattr(part, name) for part in (first, second)]
    if ids[0] is None and ids[1] is None:
        return None
    sizes = (range(len(first)), range(len(first), len(first) + len(second)))
    named = [
        Ids.from_values([other.format(at + 1) for at in rows]) if found is None else found
        for found, rows in zip(ids, sizes, strict=True)
    ]
    return Ids.concatenate(*named)


def factorize(ids: Ids | Iterable[object] | None, n: int) -> Array:
    """A number for each name, the same for the same; without names everyone is alone."""
    if ids is None:
        return np.arange(n)
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(str(name), len(seen)) for name in ids], np.int64)
