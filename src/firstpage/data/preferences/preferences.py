"""Preferences over rankings: two lists of graded documents, and which of them people prefer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from firstpage.core import Advice, Array, Bools, DataError, Floats, Ints
from firstpage.data.ids import Ids

Levels = NDArray[np.int8]
Unjudged = Literal["worst", "condense", "refuse"]
UNKNOWN = -1  # the level of an unjudged document, or of a position after the end of a list
MAX_LEVELS = 100
MAX_WEIGHT = 1e100  # larger weights would overflow in sums
OUTCOMES = (-2, -1, 0, 1, 2)


@dataclass(frozen=True, eq=False)
class Preferences:
    """Pairs of rankings of the same query, and which of each pair is preferred.

    A level is the index of a grade among `grades`.  `len(preferences)` is the number of pairs;
    `preferences[rows]` selects pairs, and `a + b` concatenates.  Use `Preferences.from_grades` to
    build one from lists of grades.

    Parameters
    ----------
    grades : tuple of int
        The grades in ascending order.
    left, right : ndarray of int8 of shape (n_pairs, n_positions)
        The levels of the left and right list from the first position on; -1 where a document is
        unjudged or the list has ended.
    outcome : ndarray of int8 of shape (n_pairs,)
        1 or 2: left is better or much better; 0: equally good; -1 or -2: right is.
    weight : ndarray of shape (n_pairs,)
        The weight of each pair.
    query : Ids, optional
        The query of each pair; pairs of one query stay together in cross-validation.
    segment : Ids, optional
        The segment (kind of query) of each pair.
    source : str, default "the preferences"
        What error messages call the data.

    Attributes
    ----------
    n_positions : int
        The length of the longest list.
    tied : ndarray of bool of shape (n_pairs,)
        Which outcomes are 0.

    Raises
    ------
    DataError
        If shapes do not agree, or a weight or level is out of range.

    References
    ----------
    .. [1] K. Zhou, H. Zha, Y. Chang, G.-R. Xue, "Learning the Gain Values and Discount Factors of
       Discounted Cumulative Gains", 2013.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.dcglearn.Preferences.from_grades([[3, 0], [1, 1]], [[0, 3], [2, 0]], [1, -1])
    Preferences(2 pairs, 0 ties; 2 positions, grades 0 to 3)
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
                f"{self.source}: left and right must have one row per pair and equally many "
                f"positions; got the shapes {self.left.shape} and {self.right.shape} for {n} "
                "outcomes."
            )
        for name in ("weight", "query", "segment"):
            value = getattr(self, name)
            if value is not None and len(value) != n:
                raise DataError(
                    f"{self.source}: {name} must have one entry per pair; got {len(value)} for {n}."
                )
        _check_numbers(self)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.outcome)

    def __repr__(self) -> str:
        return (
            f"Preferences({len(self)} pairs, {int(self.tied.sum())} ties; {self.n_positions} "
            f"positions, grades {self.grades[0]} to {self.grades[-1]})"
        )

    @property
    def n_positions(self) -> int:
        """The length of the longest list."""
        return int(self.left.shape[1])

    @property
    def tied(self) -> Bools:
        """Which outcomes are 0."""
        tied: Bools = self.outcome == 0
        return tied

    def __getitem__(self, rows: slice | Ints | Bools) -> Preferences:
        """Return some of the pairs."""
        indices = np.arange(len(self))[rows]
        names = (None if ids is None else ids[indices] for ids in (self.query, self.segment))
        query, segment = names
        return replace(
            self,
            left=self.left[indices],
            right=self.right[indices],
            outcome=self.outcome[indices],
            weight=self.weight[indices],
            query=query,
            segment=segment,
        )

    def __add__(self, other: Preferences) -> Preferences:
        """Return the pairs of both, those of `other` last."""
        grades = checked_grades(sorted({*self.grades, *other.grades}), self.source)
        width = max(self.n_positions, other.n_positions)
        first, second = (_converted(p, grades, width) for p in (self, other))
        return Preferences(
            grades,
            np.concatenate([first[0], second[0]]),
            np.concatenate([first[1], second[1]]),
            np.concatenate([self.outcome, other.outcome]),
            np.concatenate([self.weight, other.weight]),
            _concat_names(self, other, "query", "pair {}"),
            _concat_names(self, other, "segment", ""),
            self.source,
        )

    @classmethod
    def from_grades(
        cls,
        left: Any,
        right: Any,
        outcome: Any = None,
        *,
        weight: Any = None,
        query: Any = None,
        segment: Any = None,
        grades: Sequence[int] | None = None,
        source: str = "the preferences",
    ) -> Preferences:
        """Return the preferences of lists of grades.

        Parameters
        ----------
        left, right : sequence of sequences of int
            For each pair, the grades of the left and right list from the first position on; None
            and NaN are unjudged documents.  Lists may differ in length.
        outcome : sequence of int, optional
            1 or 2: left is better or much better; 0: equally good; -1 or -2: right is.  By default
            the left list of every pair is better.
        weight : sequence of float, optional
            Weights of the pairs; 1 by default.
        query, segment : iterable, optional
            The query and the segment of each pair.
        grades : sequence of int, optional
            All grades in ascending order; by default the integers between those that occur.
        source : str, default "the preferences"
            What error messages call the data.

        Returns
        -------
        Preferences
            The pairs.

        Raises
        ------
        DataError
            If lengths do not agree, or a grade, outcome or weight is invalid.

        Examples
        --------
        >>> import firstpage as fp
        >>> fp.dcglearn.Preferences.from_grades([[2, None, 1]], [[0, 1]]).left.tolist()
        [[2, -1, 1]]
        """
        width = max(_width(side, source) for side in (left, right))
        first, second = (_matrix(side, width, source) for side in (left, right))
        n = len(first)
        all_grades = _resolved_grades(grades, first, second, source)
        if len(all_grades) > MAX_LEVELS:
            raise DataError(f"{source}: {len(all_grades)} grades exceed the limit of {MAX_LEVELS}.")
        outcomes = np.ones(n) if outcome is None else _numbers(outcome, "outcomes", source)
        if not np.isin(outcomes, OUTCOMES).all():
            bad = outcomes[~np.isin(outcomes, OUTCOMES)][0]
            raise DataError(
                f"{source}: an outcome must be 2, 1 (left is better), 0 (equal), -1 or -2 (right "
                f"is better); got {bad:g}."
            )
        weights = np.ones(n) if weight is None else _numbers(weight, "weights", source)
        return cls(
            all_grades,
            _levels(first, all_grades, source),
            _levels(second, all_grades, source),
            outcomes.astype(np.int8),
            weights,
            None if query is None else Ids.from_values(query),
            None if segment is None else Ids.from_values(segment),
            source,
        )

    def observed_grades(self) -> list[int]:
        """Return the grades that occur in some list.

        Returns
        -------
        list of int
            In ascending order.
        """
        return [
            grade
            for level, grade in enumerate(self.grades)
            if (self.left == level).any() or (self.right == level).any()
        ]

    def has_unjudged(self, n_positions: int) -> bool:
        """Return whether a document at one of the first positions has no grade.

        Parameters
        ----------
        n_positions : int
            The number of positions.

        Returns
        -------
        bool
            True also where a list ends before another one.
        """
        return any((side[:, :n_positions] == UNKNOWN).any() for side in (self.left, self.right))

    def with_grades(self, grades: Sequence[int]) -> Preferences:
        """Return the same pairs over another set of grades.

        Parameters
        ----------
        grades : sequence of int
            Grades in ascending order, which must include all that occur.

        Returns
        -------
        Preferences
            This object if the grades are equal.

        Raises
        ------
        DataError
            If a grade that occurs is not included.
        """
        new_grades = checked_grades(grades, self.source)
        if new_grades == self.grades:
            return self
        missing = [grade for grade in self.observed_grades() if grade not in new_grades]
        if missing:
            raise DataError(
                f"{self.source}: a list has the grade {missing[0]}; the grades are "
                f"{', '.join(map(str, new_grades))}."
            )
        left, right = _converted(self, new_grades, self.n_positions)
        return replace(self, grades=new_grades, left=left, right=right)

    def encode(self, n_positions: int, unjudged: Unjudged = "worst") -> tuple[Levels, Levels]:
        """Return the levels of the first positions, with unjudged documents at the worst level.

        Parameters
        ----------
        n_positions : int
            The number of positions.
        unjudged : {"worst", "condense", "refuse"}, default "worst"
            "condense" first removes unjudged documents, so those below move up; "refuse" raises if
            there is one.

        Returns
        -------
        left, right : ndarray of int8 of shape (n_pairs, n_positions)
            Levels of at least 0.

        Raises
        ------
        DataError
            If `unjudged` is unknown, or "refuse" and there is an unjudged document.
        """
        if unjudged not in get_args(Unjudged):
            options = ", ".join(get_args(Unjudged))
            raise DataError(f"unjudged must be one of {options}; got {unjudged!r}.")
        first, second = (
            _resized(condense(side) if unjudged == "condense" else side, n_positions)
            for side in (self.left, self.right)
        )
        if unjudged == "refuse":
            _refuse_unknown(self, first, second)
        return np.maximum(first, 0), np.maximum(second, 0)


def condense(levels: Levels) -> Levels:
    """Return known levels moved up in their order, followed by the unknown ones."""
    order = np.argsort(levels == UNKNOWN, axis=1, kind="stable")
    return np.take_along_axis(levels, order, axis=1)


def _resized(levels: Levels, n_positions: int) -> Levels:
    """Return the first positions, padded with unknown levels."""
    short = n_positions - levels.shape[1]
    if short > 0:
        return np.pad(levels, ((0, 0), (0, short)), constant_values=UNKNOWN)
    return np.ascontiguousarray(levels[:, :n_positions])


def _refuse_unknown(preferences: Preferences, first: Levels, second: Levels) -> None:
    for name, side in (("left", first), ("right", second)):
        indices = np.argwhere(side == UNKNOWN)
        if len(indices):
            pair, position = indices[0] + 1
            raise DataError(
                f"{preferences.source}: pair {pair}: the {name} list has no grade at position "
                f"{position}; judge it.",
                Advice("Or count it as the worst with {}.", "unjudged", "worst"),
            )


def _check_numbers(preferences: Preferences) -> None:
    bad = ~((preferences.weight >= 0) & (preferences.weight <= MAX_WEIGHT))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{preferences.source}: the weight of pair {row + 1} is {preferences.weight[row]}; "
            f"weights must be numbers from 0 to {MAX_WEIGHT:g}."
        )
    top = len(preferences.grades)
    for side in (preferences.left, preferences.right):
        if side.size and (int(side.max()) >= top or int(side.min()) < UNKNOWN):
            raise DataError(f"{preferences.source}: levels must be from -1 to {top - 1}.")


def _width(side: Any, source: str) -> int:
    """Return the length of the longest list."""
    if isinstance(side, np.ndarray) and side.ndim == 2:
        return int(side.shape[1])
    try:
        return max((len(row) for row in side), default=0)
    except TypeError:
        raise DataError(
            f"{source}: left and right must be lists of rankings, each a list of grades."
        ) from None


def _matrix(side: Any, width: int, source: str) -> Array:
    """Return a matrix of grades with NaN for unknown ones; integer arrays stay as they are."""
    if isinstance(side, np.ndarray) and side.ndim == 2 and side.dtype.kind in "iuf":
        short = width - side.shape[1]
        if not short:
            return side
        return np.pad(side.astype(np.float64), ((0, 0), (0, short)), constant_values=np.nan)
    matrix = np.full((len(side), width), np.nan)
    for row, grades in enumerate(side):
        try:
            values = [np.nan if g is None else float(g) for g in grades]
        except (TypeError, ValueError, OverflowError):
            raise DataError(f"{source}: pair {row + 1} has a grade that is not a number.") from None
        matrix[row, : len(values)] = values
    return matrix


def _resolved_grades(
    grades: Sequence[int] | None, first: Array, second: Array, source: str
) -> tuple[int, ...]:
    """Return the grades, by default all integers from the smallest (at most 1) to the largest."""
    if grades is not None:
        return checked_grades(grades, source)
    low, high = np.inf, -np.inf
    for side in (first, second):
        known = side if side.dtype.kind != "f" else side[~np.isnan(side)]
        if known.size:
            low, high = min(low, float(known.min())), max(high, float(known.max()))
    if low > high:
        raise DataError(f"{source}: there is no grade in any list; judge the documents first.")
    if not np.isfinite([low, high]).all():
        raise DataError(f"{source}: a grade is infinite; grades are integers.")
    smallest, largest = int(np.floor(min(low, 1.0))), int(np.ceil(high))
    if largest - smallest >= MAX_LEVELS:
        raise DataError(
            f"{source}: the grades range from {low:g} to {high:g}, and there may be at most "
            f"{MAX_LEVELS}.",
            Advice("List the grades that exist with {}.", "grades"),
        )
    return tuple(range(smallest, max(largest, smallest + 1) + 1))


def checked_grades(grades: Sequence[int], source: str) -> tuple[int, ...]:
    """Return grades as integers; raise DataError if one is not, or they are not ascending."""
    try:
        values = tuple(grades)
        checked = tuple(int(g) for g in values)
        if checked != values:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{source}: grades must be integers; got {grades!r}.") from None
    if not 2 <= len(checked) <= MAX_LEVELS or list(checked) != sorted(set(checked)):
        raise DataError(
            f"{source}: grades must be 2 to {MAX_LEVELS} integers in ascending order; got "
            f"{list(checked)}."
        )
    return checked


def _levels(side: Array, grades: tuple[int, ...], source: str) -> Levels:
    """Return the index of each grade; every known one must be among the grades."""
    low, high = grades[0], grades[-1]
    contiguous = side.dtype.kind != "f" and high - low + 1 == len(grades)
    if contiguous and side.size and low <= side.min() and side.max() <= high:
        fits = np.iinfo(side.dtype).min <= low <= np.iinfo(side.dtype).max
        levels = side - side.dtype.type(low) if fits else side.astype(np.int64) - low
        return levels.astype(np.int8)  # the fast path, for millions of pairs
    indices = np.searchsorted(grades, side)  # NaN goes to the end
    known = ~np.isnan(side)
    fits = np.asarray(grades)[np.minimum(indices, len(grades) - 1)] == side
    if (known & ~fits).any():
        row, column = np.argwhere(known & ~fits)[0]
        raise DataError(
            f"{source}: pair {row + 1} has the grade {side[row, column]:g} at position "
            f"{column + 1}; the grades are {', '.join(map(str, grades))}."
        )
    return np.where(known, indices, UNKNOWN).astype(np.int8)


def _numbers(values: Any, name: str, source: str) -> Floats:
    try:
        return np.asarray(values, np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise DataError(f"{source}: {name} must be numbers ({error}).") from None


def _converted(
    preferences: Preferences, grades: tuple[int, ...], n_positions: int
) -> tuple[Levels, Levels]:
    """Return the levels of both sides among other grades, resized to `n_positions`."""
    new_levels = np.searchsorted(grades, preferences.grades).astype(np.int8)
    table = np.append(new_levels, np.int8(UNKNOWN))  # UNKNOWN is -1 and so indexes the last entry
    left, right = table[preferences.left], table[preferences.right]
    return _resized(left, n_positions), _resized(right, n_positions)


def _concat_names(first: Preferences, second: Preferences, field: str, default: str) -> Ids | None:
    """Return the names of both; where one has none, its pairs are named after `default`."""
    columns = [getattr(preferences, field) for preferences in (first, second)]
    if columns[0] is None and columns[1] is None:
        return None
    ranges = (range(len(first)), range(len(first), len(first) + len(second)))
    named = [
        Ids.from_values([default.format(row + 1) for row in rows]) if ids is None else ids
        for ids, rows in zip(columns, ranges, strict=True)
    ]
    return Ids.concatenate(*named)


def factorize(ids: Ids | Iterable[object] | None, n: int) -> Array:
    """Return an integer per name, equal for equal names; without names all are distinct."""
    if ids is None:
        return np.arange(n)
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(str(name), len(numbers)) for name in ids], np.int64)


def vote_weight(where: str, value: Any) -> float:
    """Return the weight of a vote in a file; refuse one out of its range."""
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not 0 <= number <= MAX_WEIGHT:
        raise DataError(
            f"{where}: a weight must be a number from 0 to {MAX_WEIGHT:g}; got {repr(value)[:40]}."
        )
    return number
