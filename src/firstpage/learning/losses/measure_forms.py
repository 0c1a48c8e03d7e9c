"""Measures as sums over ranks, as the kernels of direct optimization read them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from firstpage.core import PACKAGE, DataError, Floats, Ints, MeasureError
from firstpage.core.kernels.losses import ADDITIVE, CASCADE, PRECISION, TABLE, true_order_values
from firstpage.core.kernels.measures import top_dcg
from firstpage.data import MAX_PARTIAL_SORT, Truth, sort_groups
from firstpage.evaluation.measures import (
    AdditiveForm,
    CascadeForm,
    Convention,
    Measure,
    PrecisionForm,
    RankForm,
    TableForm,
    measure_classes,
    measured_values,
    rank_lists,
)
from firstpage.learning.losses.base import Loss, LossTerm, OneKernelTarget

DEFAULT = Convention()
KINDS = {AdditiveForm: ADDITIVE, CascadeForm: CASCADE, PrecisionForm: PRECISION}
NO_TABLE = np.empty((0, 0))
MAX_DIFFERENCE = 1e-6  # between a form of one's own and the measure, relative to the greater


@dataclass(frozen=True, eq=False)
class MeasureForm:
    """The form of a measure on some data, as kernels take it (see `kernels.plrank`).

    Attributes
    ----------
    kind : int
        How the state depends on the documents above: ADDITIVE, CASCADE, PRECISION, or TABLE.
    gains : array
        The gain of each document; with TABLE, the number of its column.
    discount : array
        The discount of each rank that counts; with TABLE, empty.
    table : array of shape (ranks, columns)
        The weights of TABLE, one row per rank that counts; else empty.
    scale : array
        One factor per query.
    all_discounts : array
        Discounts beyond the cut-off too, as far as the measure defines them.
    """

    kind: int
    gains: Floats
    discount: Floats
    table: Floats
    scale: Floats
    all_discounts: Floats

    @property
    def depth(self) -> int:
        """The number of ranks that count."""
        return len(self.table) if self.kind == TABLE else len(self.discount)

    @property
    def columns(self) -> int:
        """The number of columns of the table; 0 without one."""
        return int(self.table.shape[1])

    def truncated(self, k: int | None) -> MeasureForm:
        """Return the form without the ranks beyond k."""
        return replace(self, discount=self.discount[:k], table=self.table[:k])

    def true_values(self, truth: Truth) -> Floats:
        """Return the value of each query where documents are in the order of their labels."""
        return self.values(truth.by_label[0], truth.offsets)

    def values(self, order: Ints, offsets: Ints) -> Floats:
        """Return the value of each query where documents are in this order."""
        out = np.empty(len(offsets) - 1)
        true_order_values(
            order, self.gains, offsets, self.kind, self.discount, self.table, self.scale, out
        )
        return out

    def gain_range(self, offsets: Ints) -> Floats:
        """Return the range of the gains of each query, times its scale; 0 where all orders of the
        documents have the same value."""
        lengths = np.diff(offsets)
        filled = lengths > 0
        out = np.zeros(len(lengths))
        if filled.any():
            starts = offsets[:-1][filled]
            high = np.maximum.reduceat(self.gains, starts)
            low = np.minimum.reduceat(self.gains, starts)
            out[filled] = (high > low).astype(float) if self.kind == TABLE else high - low
        return out * self.scale

    def importance(self) -> Floats:
        """Return an upper bound, per rank x, of how much one document can change the measure by
        moving within the ranks from x on, where gains range from 0 to 1.

        A document that moves from rank r to r + 1 changes the measure by the difference of both
        gains, times state * (discount[r] - discount[r + 1]).
        """
        if self.kind == TABLE:
            below = np.vstack([self.table[1:], np.zeros((1, self.columns))])
            steps = np.ptp(self.table - below, axis=1)
        else:
            steps = np.abs(np.diff(self.discount, append=0.0))
            if self.kind == PRECISION:
                steps = steps * np.arange(1, len(steps) + 1)  # the state is at most the rank
        importance: Floats = np.cumsum(steps[::-1])[::-1].copy()
        return importance


@dataclass(frozen=True, eq=False)
class MeasureTarget(OneKernelTarget):
    """A truth prepared for a loss that reads a measure."""

    form: MeasureForm
    offsets: Ints

    def terms(self) -> list[LossTerm] | None:
        return [LossTerm("measure", {}, self.form.scale, measure=self)]


def check_unweighted(loss: Loss, weights: Floats | None) -> None:
    """Raise an error for weights of documents, which a measure does not have."""
    if weights is not None and not np.all(weights == 1.0):
        raise DataError(
            f"{type(loss).__name__} takes no weights of documents inside a query: a measure counts "
            "each document once."
        )


def check_supported(measure: Measure, user: str) -> None:
    """Raise an error unless the measure has a form, and is better when higher."""
    if not measure.has_rank_form or measure.lower_is_better:
        summed = (c for c in measure_classes() if c.rank_form is not Measure.rank_form)
        names = [cls.__name__ for cls in summed]
        raise DataError(
            f"{user} cannot maximize {measure}; choose one of {', '.join(names)}, DCG or NDCG of a "
            "measure file, or a measure of your own with a method rank_form."
        )


def measure_form(measure: Measure, truth: Truth, k: int | None = None) -> MeasureForm:
    """Return the form of a measure that has one, of which only the first k ranks count.

    Conventions are the default ones.
    """
    form = measure.rank_form(rank_lists(truth.labels, truth, DEFAULT))
    if form is None:
        raise DataError(f"{measure} cannot be maximized: its rank_form is None.")
    as_arrays = _as_arrays(form, len(truth))
    if type(measure).__module__.partition(".")[0] != PACKAGE:
        _check_own_form(measure, as_arrays, truth)
    return as_arrays.truncated(k)


def _as_arrays(form: RankForm, queries: int) -> MeasureForm:
    scale = np.ones(queries) if form.scale is None else np.array(form.scale, np.float64)
    if isinstance(form, TableForm):
        columns, table = (np.array(a, np.float64) for a in (form.columns, form.table))
        return MeasureForm(TABLE, columns, np.empty(0), table, scale, np.empty(0))
    kind = KINDS[type(form)]
    gains, discounts = (np.array(a, np.float64) for a in (form.gains, form.discounts))
    return MeasureForm(kind, gains, discounts[: form.depth], NO_TABLE, scale, discounts)


def _check_own_form(measure: Measure, form: MeasureForm, truth: Truth) -> None:
    """Raise an error unless a form has the shape of the data and, in some order of the documents,
    the values of its measure."""
    rows = int(truth.offsets[-1])
    for name, array, size in (("gains", form.gains, rows), ("scale", form.scale, len(truth))):
        if array.shape != (size,) or not np.isfinite(array).all():
            raise MeasureError(
                f"the {name} of rank_form of the measure {measure} must be {size} finite numbers "
                f"here, one per {'document' if name == 'gains' else 'query'}; the shape is "
                f"{array.shape}."
            )
    scores = np.random.default_rng(0).permutation(rows).astype(np.float64)
    values = measured_values(measure, rank_lists(scores, truth, DEFAULT), DEFAULT)
    by_form = form.values(sort_groups(scores, truth.offsets)[0], truth.offsets)
    wrong = np.abs(values - by_form) > MAX_DIFFERENCE * np.maximum(np.abs(values), 1.0)
    if wrong.any():
        q = int(np.argmax(wrong))
        raise MeasureError(
            f"rank_form of the measure {measure} is wrong: in query {truth.queries[q]!r} it adds "
            f"up to {by_form[q]:.4g} for an order of the documents whose value is {values[q]:.4g}."
        )


class MeasureOfScores:
    """A measure on the documents of a truth, for many scores; the mean over the orders of ties.

    Attributes
    ----------
    measure : Measure
        The measure.
    truth : Truth
        The truth.
    sums : MeasureForm or None
        The measure as a sum of discounted gains, which include the scale of the query, if it is
        one.
    """

    def __init__(self, measure: Measure, truth: Truth) -> None:
        self.measure, self.truth = measure, truth
        self.sums: MeasureForm | None = None
        if measure.has_rank_form and len(truth.labels):
            form = measure_form(measure, truth)
            if form.kind == ADDITIVE:
                self.sums = replace(form, gains=form.gains * np.repeat(form.scale, truth.lengths))

    def values(self, scores: Floats) -> Floats:
        """Return one value per query."""
        sums, truth, scores = self.sums, self.truth, np.ascontiguousarray(scores, np.float64)
        if sums is None or sums.depth > MAX_PARTIAL_SORT:
            needs = self.measure.needs(DEFAULT)
            return self.measure.values(rank_lists(scores, truth, DEFAULT, needs=needs), DEFAULT)
        best, best_gains = np.empty((2, sums.depth))
        out = np.empty(len(truth))
        top_dcg(scores, sums.gains, truth.offsets, sums.discount, best, best_gains, out)
        return out
