"""DCG and NDCG of a measure file: with weights that were learned, or written by hand."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from firstpage.core import Floats, Ints, MeasureError
from firstpage.core.kernels.measures import count_grades, table_dcg
from firstpage.data.preferences import Form, MeasureSource, Utility
from firstpage.evaluation.measures.base import (
    Convention,
    Measure,
    RankedLists,
    kernel_values,
    ratio,
)
from firstpage.evaluation.measures.rank_forms import AdditiveForm, TableForm


@dataclass(frozen=True)
class _Learned(Measure):
    """Base of LearnedDCG and LearnedNDCG: the weight of each grade at each rank.

    Weights are relative to the lowest grade: that grade, labels below it, unjudged documents and
    ranks beyond the end of a list have weight 0.

    Parameters
    ----------
    utility : Utility
        Gains, discounts and weights of the grades.
    source : MeasureSource, optional
        File, form and segment that the utility was read from; they are part of the text.
    cutoff : int, optional
        Number of ranks k; None takes all ranks of the utility.

    Attributes
    ----------
    table : array of float of shape (n_ranks, n_grades)
        Weight of each grade at each rank that counts, relative to the lowest grade.
    digest : str
        SHA-256 of the full table, because files may change; measures with the same digest, source
        and cut-off are equal.
    ideal_cache : dict
        Ideal values computed so far, by counts of grades.
    """

    utility: Utility = field(compare=False)
    source: MeasureSource = field(default_factory=MeasureSource)
    cutoff: int | None = None
    table: Floats = field(init=False, repr=False, compare=False)
    digest: str = field(init=False, repr=False)
    ideal_cache: dict[bytes, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        ranks = self.utility.n_positions
        if self.cutoff is not None and self.cutoff > ranks:
            origin = self.source.file or "this utility"
            raise MeasureError(
                f"the cut-off of {self.name} is {self.cutoff}, and {origin} has weights of {ranks} "
                f"ranks; choose one from 1 to {ranks}."
            )
        weights = self.utility.table(self._form)
        table = np.ascontiguousarray(weights - weights[:, :1])
        digest = hashlib.sha256(table.tobytes() + repr(self.utility.grades).encode())
        object.__setattr__(self, "table", table[: self.cutoff or ranks])
        object.__setattr__(self, "digest", digest.hexdigest())
        object.__setattr__(self, "ideal_cache", {})

    @property
    def _form(self) -> Form:
        return self.source.form or self.utility.form

    @property
    def name(self) -> str:
        """Name of the measure, as in its text: DCG or NDCG."""
        return type(self).__name__.removeprefix("Learned")

    def __str__(self) -> str:
        inside = str(self.source)
        if not self.source.file:  # different utilities must have different texts
            inside = ", ".join(filter(None, [f"learned {self.digest[:8]}", inside]))
        inside += ", condensed=true" if self.condensed else ""
        return f"{self.name}({inside})" + ("" if self.cutoff is None else f"@{self.cutoff}")

    @property
    def grade_values(self) -> Floats:
        return np.array(self.utility.grades, np.float64)

    def _dcg(self, lists: RankedLists) -> Floats:
        grades, counts = self.grade_values, np.empty(self.table.shape[1])
        return kernel_values(
            table_dcg, lists.ranked, grades=grades, table=self.table, counts=counts
        )

    def grade_counts(self, lists: RankedLists) -> Ints:
        """Return the number of judged documents of each grade, one row per query.

        A label that is not a grade raises an error.
        """
        counts = np.empty((len(lists), self.table.shape[1]), np.int64)
        bad = count_grades(lists.pool, lists.pool_offsets, self.grade_values, counts)
        if bad >= 0:
            raise MeasureError(
                f"{self} has weights of the grades {', '.join(map(str, self.utility.grades))}, and "
                f"the data hold a label {lists.pool[bad]:g}."
            )
        return counts

    def _check_labels(self, lists: RankedLists) -> None:
        """Raise an error for a judged document whose label is not a grade, ranked or not."""
        self.grade_counts(lists)

    def _ideal_dcg(self, lists: RankedLists) -> Floats:
        """Return the DCG of the ideal order of each query's judged documents."""
        return self.ideal(self.grade_counts(lists))

    def ideal(self, counts: Ints) -> Floats:
        """Compute the ideal value of documents, given how many there are of each grade."""
        counts = _relevant_to_ideal(counts, self.table)
        first, inverse = _unique_rows(counts, len(self.table))
        return np.array([self._ideal_value(row) for row in counts[first]], np.float64)[inverse]

    def _ideal_value(self, counts: Ints) -> float:
        """Return the value of the best order of so many documents of each grade, cached."""
        key = counts.tobytes()
        if key not in self.ideal_cache:
            columns = np.repeat(np.arange(len(counts)), counts)
            solve = self._by_sorting if self._form == "gains" else self._by_assignment
            self.ideal_cache[key] = solve(columns)
        return self.ideal_cache[key]

    def _relative_gains(self) -> Floats:
        gains: Floats = self.utility.gains - self.utility.gains[0]
        return gains

    def _by_sorting(self, columns: Ints) -> float:
        """Assign the greatest gains to the greatest discounts; ranks beyond the table have 0."""
        discounts = np.zeros(len(columns))
        available = self.utility.discounts[: len(self.table)][: len(columns)]
        discounts[: len(available)] = available
        return float(np.sort(self._relative_gains()[columns]) @ np.sort(discounts))

    def _by_assignment(self, columns: Ints) -> float:
        """Assign one document to each rank so that the summed weight is greatest."""
        from scipy.optimize import linear_sum_assignment  # slow to load, and seldom needed

        weights = self.table[: len(columns)][:, columns]
        ranks, documents = linear_sum_assignment(weights, maximize=True)
        return float(weights[ranks, documents].sum())

    def _rank_form(
        self, lists: RankedLists, scale: Floats | None = None
    ) -> AdditiveForm | TableForm:
        """Return gains and discounts, or the table of weights, times each query's scale."""
        self._check_labels(lists)
        columns = np.maximum(np.searchsorted(self.grade_values, lists.pool, side="right") - 1, 0)
        if self._form != "gains":
            return TableForm(columns, self.table, scale)
        gains = self._relative_gains()[columns]
        if scale is not None:
            gains *= np.repeat(scale, np.diff(lists.pool_offsets))
        return AdditiveForm(gains, np.append(self.utility.discounts, 0.0), len(self.table))


def _relevant_to_ideal(counts: Ints, table: Floats) -> Ints:
    """Return the counts of documents without those that no ideal order shows.

    Where a better grade never has a smaller weight, the best documents fill all ranks; else at most
    as many documents of a grade can be shown as there are ranks.
    """
    ranks = len(table)
    if (np.diff(table, axis=1) < 0).any():
        return np.minimum(counts, ranks)
    cumulative = np.minimum(np.cumsum(counts[:, ::-1], axis=1), ranks)
    shown: Ints = np.diff(cumulative, axis=1, prepend=0)[:, ::-1]
    return np.ascontiguousarray(shown)


def _unique_rows(counts: Ints, max_count: int) -> tuple[Ints, Ints]:
    """Return the first row of each distinct kind, and the kind of every row."""
    levels = counts.shape[1]
    if (max_count + 1) ** levels < 2**62:  # rows encoded as one integer sort faster
        keys = counts @ (max_count + 1) ** np.arange(levels)
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    else:
        _, first, inverse = np.unique(counts, axis=0, return_index=True, return_inverse=True)
    return first, inverse.ravel()


@dataclass(frozen=True)
class LearnedDCG(_Learned):
    """DCG with the gains and discounts, or the weights, of a measure file or Utility.

    DCG@k = sum over ranks j <= k of w(j, grade_j) - w(j, lowest grade), where w is the table of
    weights (`form="weights"`) or discount(j) * gain(grade) (`form="gains"`).  The lowest grade,
    labels below it and unjudged documents have weight 0.  `fp.measure("DCG(file.json)@10")` and
    `fp.measure(utility)` return it.

    Raises
    ------
    MeasureError
        If the cut-off exceeds the ranks of the utility, or a label is not one of its grades.

    References
    ----------
    Zhou et al., Learning the Gain Values and Discount Factors of Discounted Cumulative Gains, 2013.

    Examples
    --------
    >>> import firstpage as fp
    >>> utility = fp.dcglearn.Utility.from_gains(gains=[0, 1, 3], discounts=[1.0, 0.5])
    >>> measure = fp.measure("DCG", of=utility)
    >>> result = fp.evaluate([2, 1], [1, 2], qid=[1, 1], measures=measure)
    >>> round(result[str(measure)], 4)
    0.8333
    """

    about: ClassVar[str] = "DCG with the gains and discounts, or the weights, of a measure file"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        self._check_labels(lists)
        return self._dcg(lists)

    def rank_form(self, lists: RankedLists) -> AdditiveForm | TableForm:
        return self._rank_form(lists)


@dataclass(frozen=True)
class LearnedNDCG(_Learned):
    """NDCG with the gains and discounts, or the weights, of a measure file or Utility.

    LearnedDCG divided by its value for the best order of the judged documents; 0 where that is 0.
    The best order is the true maximum, also where discounts increase from one rank to the next.
    `fp.measure("NDCG(file.json)@10")` and `fp.measure("NDCG@10", of=utility)` return it.

    Raises
    ------
    MeasureError
        If the cut-off exceeds the ranks of the utility, or a label is not one of its grades.

    References
    ----------
    Zhou et al., Learning the Gain Values and Discount Factors of Discounted Cumulative Gains, 2013.

    Examples
    --------
    >>> import firstpage as fp
    >>> utility = fp.dcglearn.Utility.from_gains(gains=[0, 1, 3], discounts=[1.0, 0.5])
    >>> measure = fp.measure("NDCG", of=utility)
    >>> result = fp.evaluate([2, 1], [1, 2], qid=[1, 1], measures=measure)
    >>> round(result[str(measure)], 4)
    0.7143
    """

    about: ClassVar[str] = "NDCG with the gains and discounts, or the weights, of a measure file"

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        value = ratio(self._dcg(lists), self._ideal_dcg(lists))
        if convention.strict_cutoff and self.cutoff is not None:
            value[lists.lengths < self.cutoff] = 0.0
        return value

    def rank_form(self, lists: RankedLists) -> AdditiveForm | TableForm:
        ideal = self._ideal_dcg(lists)
        return self._rank_form(lists, ratio(np.ones_like(ideal), ideal))


LEARNED: dict[str, type[LearnedDCG] | type[LearnedNDCG]] = {"DCG": LearnedDCG, "NDCG": LearnedNDCG}
