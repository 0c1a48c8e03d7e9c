"""What a measure says of scores on every query, again and again on the same truth."""

from __future__ import annotations

import numpy as np

from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.kernels.measures.graded import top_sums
from firstpage.measures.measure import SHORT, Measure, convention, rank_lists
from firstpage.types import Bools, Floats, Ints

DUST = 1e-12  # differences of a measure that are rounding


class Judge:
    """A measure on some documents of a truth, equal scores averaged over their orders.

    rows      which documents the lists are made of; None: all
    telling   queries whose order by label measures otherwise than its reverse; others say nothing
    """

    def __init__(self, measure: Measure, truth: Truth, rows: Ints | None = None) -> None:
        self.measure, self.rows, self.queries = measure, rows, truth.queries
        self.labels, self.offsets = truth.labels, truth.offsets
        if rows is not None:
            self.labels = truth.labels[rows]
            self.offsets = np.searchsorted(rows, truth.offsets).astype(np.int64)
        self._how = convention("default")
        ideal = rank_lists(self.labels, self.labels, self.offsets, self.queries, self._how)
        self.additive = measure.additive(ideal, self._how)
        best, worst = self.of_lists(self.labels), self.of_lists(-self.labels)
        self.telling: Bools = np.abs(best - worst) > DUST  # discounts of a file may rise
        if measure.lower_is_better or best.max(initial=0.0) > 1 + DUST or worst.min(initial=0) < 0:
            raise DataError(
                f"boosting needs a measure from 0 to 1, higher is better; not {measure}."
            )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __call__(self, scores: Floats) -> Floats:
        """One number a query, from the scores of all documents."""
        return self.of_lists(scores if self.rows is None else scores[self.rows])

    def of_lists(self, scores: Floats) -> Floats:
        """The same from the scores of the lists' documents."""
        sums = self.additive
        if sums is None or len(sums.discount) > SHORT:
            lists = rank_lists(scores, self.labels, self.offsets, self.queries, self._how)
            return self.measure.values(lists, self._how)
        out, room = np.empty(len(self)), len(sums.discount)
        top_sums(
            scores, sums.gains, self.offsets, sums.discount, np.empty(room), np.empty(room), out
        )
        return out
