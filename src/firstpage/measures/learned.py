"""DCG and NDCG of a measure file: weights that were learned, or written by hand."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from firstpage.data.preferences.utility import Form, MeasureSource, Utility
from firstpage.errors import MeasureError
from firstpage.kernels.measures.graded import count_grades, weighed
from firstpage.measures.measure import Additive, Convention, Lists, Measure, ratio
from firstpage.types import Floats, Ints


@dataclass(frozen=True)
class _Learned(Measure):
    """Shared by both: what a document of each grade is worth at each place.

    Worth is counted from the worst grade on: that one, documents without a judgment, labels below
    it and places that a list does not have are worth nothing.
    """

    utility: Utility = field(compare=False)
    source: MeasureSource = field(default_factory=MeasureSource)
    cutoff: int | None = None
    table: Floats = field(init=False, repr=False, compare=False)  # a row a place that counts
    mark: str = field(init=False, repr=False)  # of the whole table: files may change
    known: dict[bytes, float] = field(init=False, repr=False, compare=False)  # ideals so far

    def __post_init__(self) -> None:
        super().__post_init__()
        places = self.utility.n_positions
        if self.cutoff is not None and self.cutoff > places:
            what = self.source.file or "this utility"
            raise MeasureError(
                f"the cut-off of {self.name} is {self.cutoff}, and {what} has weights of {places} "
                f"places; choose one from 1 to {places}."
            )
        weights = self.utility.table(self._form)
        table = np.ascontiguousarray(weights - weights[:, :1])
        digest = hashlib.sha256(table.tobytes() + repr(self.utility.grades).encode())
        object.__setattr__(self, "table", table[: self.cutoff or places])
        object.__setattr__(self, "mark", digest.hexdigest())
        object.__setattr__(self, "known", {})

    @property
    def _form(self) -> Form:
        return self.source.form or self.utility.form

    @property
    def name(self) -> str:
        return type(self).__name__.removeprefix("Learned")

    def __str__(self) -> str:
        inside = str(self.source)
        if not self.source.file:  # two utilities must not have one text
            inside = ", ".join(filter(None, [f"learned {self.mark[:8]}", inside]))
        return f"{self.name}({inside})" + ("" if self.cutoff is None else f"@{self.cutoff}")

    @property
    def _grades(self) -> Floats:
        return np.array(self.utility.grades, np.float64)

    def _dcg(self, lists: Lists) -> Floats:
        out, room = np.empty(len(lists)), np.empty(self.table.shape[1])
        weighed(lists.labels, lists.block, lists.offsets, self._grades, self.table, room, out)
        return out

    def _counts(self, lists: Lists) -> Ints:
        """Judged documents of each grade, a row a query; a label that is no grade is refused."""
        counts = np.empty((len(lists), self.table.shape[1]), np.int64)
        bad = count_grades(lists.pool, lists.pool_offsets, self._grades, counts)
        if bad >= 0:
            raise MeasureError(
                f"{self} has weights of the grades {', '.join(map(str, self.utility.grades))}, and "
                f"the data hold a label {lists.pool[bad]:g}."
            )
        return counts

    def _ideal_dcg(self, lists: Lists) -> Floats:
        """Of the best order of each query's judged documents."""
        return self.ideal(self._counts(lists))

    def ideal(self, counts: Ints) -> Floats:
        """The value of the best order of so many documents of each grade, a row a query."""
        counts = _that_matter(counts, self.table)
        first, which = _kinds(counts, len(self.table))
        return np.array([self._best(kind) for kind in counts[first]], np.float64)[which]

    def _best(self, counts: Ints) -> float:
        """Of documents of which there are so many of each grade; every kind is solved once."""
        key = counts.tobytes()
        if key not in self.known:
            columns = np.repeat(np.arange(len(counts)), counts)
            solve = self._sorted if self._form == "gains" else self._assigned
            self.known[key] = solve(columns)
        return self.known[key]

    def _gains(self) -> Floats:
        found: Floats = self.utility.gains - self.utility.gains[0]
        return found

    def _sorted(self, columns: Ints) -> float:
        """Greater gains at greater discounts, wherever these stand; no place is no discount."""
        discounts = np.zeros(len(columns))
        taken = self.utility.discounts[: len(self.table)][: len(columns)]
        discounts[: len(taken)] = taken
        return float(np.sort(self._gains()[columns]) @ np.sort(discounts))

    def _assigned(self, columns: Ints) -> float:
        """One document a place, for the greatest sum."""
        from scipy.optimize import linear_sum_assignment  # slow to load, and seldom needed

        worth = self.table[: len(columns)][:, columns]
        places, documents = linear_sum_assignment(worth, maximize=True)
        return float(worth[places, documents].sum())

    def _additive(self, lists: Lists, shares: Floats) -> Additive | None:
        if self._form != "gains":
            return None
        self._counts(lists)  # refuses labels that are no grades
        at = np.searchsorted(self._grades, lists.pool, side="right") - 1
        gains = self._gains()[np.maximum(at, 0)]
        gains *= np.repeat(shares, np.diff(lists.pool_offsets))
        return Additive(gains, np.array(self.utility.discounts[: len(self.table)]))


def _that_matter(counts: Ints, table: Floats) -> Ints:
    """Numbers of documents, without those that no best order shows.

    Where a better grade is never worth less, the best documents take all places; else no more of a
    grade can be shown than there are places.
    """
    places = len(table)
    if (np.diff(table, axis=1) < 0).any():
        return np.minimum(counts, places)
    above = np.minimum(np.cumsum(counts[:, ::-1], axis=1), places)
    found: Ints = np.diff(above, axis=1, prepend=0)[:, ::-1]
    return np.ascontiguousarray(found)


def _kinds(counts: Ints, most: int) -> tuple[Ints, Ints]:
    """The first row of each kind, and the kind of each row; no count is above `most`."""
    levels = counts.shape[1]
    if (most + 1) ** levels < 2**62:  # a row as one number sorts faster
        keys = counts @ (most + 1) ** np.arange(levels)
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    else:
        _, first, which = np.unique(counts, axis=0, return_index=True, return_inverse=True)
    return first, which.ravel()


@dataclass(frozen=True)
class LearnedDCG(_Learned):
    """Sum over places of what the file says that the grade there is worth."""

    about: ClassVar[str] = "DCG with the gains and discounts, or the weights, of a measure file"

    def values(self, lists: Lists, how: Convention) -> Floats:
        self._counts(lists)  # a label that is no grade is told, whether found or not
        return self._dcg(lists)

    def additive(self, lists: Lists, how: Convention) -> Additive | None:
        return self._additive(lists, np.ones(len(lists)))


@dataclass(frozen=True)
class LearnedNDCG(_Learned):
    """The same divided by that of the best order of the judged documents; 0 where that is 0.

    The best order is the true maximum, also where discounts rise from one place to the next.
    """

    about: ClassVar[str] = "NDCG with the gains and discounts, or the weights, of a measure file"

    def values(self, lists: Lists, how: Convention) -> Floats:
        value = ratio(self._dcg(lists), self._ideal_dcg(lists))
        if how.strict_cutoff and self.cutoff is not None:
            value[lists.lengths < self.cutoff] = 0.0
        return value

    def additive(self, lists: Lists, how: Convention) -> Additive | None:
        if how.strict_cutoff or self._form != "gains":
            return None
        best = self._ideal_dcg(lists)
        return self._additive(lists, ratio(np.ones_like(best), best))


LEARNED: dict[str, type[LearnedDCG] | type[LearnedNDCG]] = {"DCG": LearnedDCG, "NDCG": LearnedNDCG}
