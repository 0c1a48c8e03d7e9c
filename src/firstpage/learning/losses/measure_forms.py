"""Measures as sums over ranks, as the kernels of direct optimization read them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from firstpage.core import BoundKernel, DataError, Floats, Ints
from firstpage.core.kernels.losses import ADDITIVE, CASCADE, PRECISION, TABLE, true_order_values
from firstpage.core.kernels.measures import graded as gain_kernel
from firstpage.data import Truth
from firstpage.evaluation.measures import (
    AP,
    DCG,
    ERR,
    NDCG,
    RBP,
    RR,
    Convention,
    LearnedDCG,
    LearnedNDCG,
    Measure,
    P,
    RankedLists,
    Recall,
    Success,
    discounts,
    kernel_cutoff,
    kERR,
    kNDCG,
    rank_lists,
)
from firstpage.learning.losses.base import Loss, LossTarget, LossTerm, safe_inverse

SUPPORTED = (
    NDCG, DCG, P, Recall, RBP, ERR, RR, Success, AP, kNDCG, kERR, LearnedDCG, LearnedNDCG,
)  # fmt: skip
DEFAULT = Convention()
NO_TABLE = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class MeasureForm:
    """A measure as a sum over ranks of scale * gain * discount * state (see `kernels.plrank`).

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
        out = np.empty(len(truth))
        true_order_values(
            truth.by_label[0],
            self.gains,
            truth.offsets,
            self.kind,
            self.discount,
            self.table,
            self.scale,
            out,
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
class MeasureTarget(LossTarget):
    """A truth prepared for a loss that reads a measure."""

    form: MeasureForm
    offsets: Ints

    def terms(self) -> list[LossTerm] | None:
        return [LossTerm("measure", {}, self.form.scale, measure=self)]

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        return self._bind(lo, hi, scores, values, grad, np.empty(0))

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        return self._bind(lo, hi, scores, np.empty(hi - lo), np.empty(len(scores)), out)

    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curvature: Floats
    ) -> BoundKernel:
        """Return a kernel of values, gradient and, unless it is empty, curvature."""
        raise AssertionError(f"{type(self).__name__} has no kernel")  # every subclass has its own


def check_unweighted(loss: Loss, weights: Floats | None) -> None:
    """Raise an error for weights of documents, which a measure does not have."""
    if weights is not None and not np.all(weights == 1.0):
        raise DataError(
            f"{type(loss).__name__} takes no weights of documents inside a query: a measure counts "
            "each document once."
        )


def has_form(measure: Measure) -> bool:
    """Return whether a measure has a form; derived classes have other values."""
    graded = isinstance(measure, RBP) and measure.gain is not None
    return type(measure) in SUPPORTED and not graded


def check_supported(measure: Measure, user: str) -> None:
    """Raise an error unless the measure has a form."""
    if not has_form(measure):
        names = ", ".join(cls.__name__ for cls in SUPPORTED[:-2])
        raise DataError(
            f"{user} cannot maximize {measure}; choose one of {names}, or DCG or NDCG of a measure "
            "file."
        )


def measure_form(measure: Measure, truth: Truth, k: int | None = None) -> MeasureForm:
    """Return the form of a supported measure, of which only the first k ranks count.

    Conventions are the default ones.
    """
    lists = rank_lists(truth.labels, truth, DEFAULT)
    return _form(measure, lists).truncated(k)


def _form(measure: Measure, lists: RankedLists) -> MeasureForm:
    longest = int(lists.lengths.max(initial=1))
    ranks = max(min(kernel_cutoff(getattr(measure, "cutoff", None)), longest), 1)
    ones = np.ones(len(lists))
    if isinstance(measure, (LearnedDCG, LearnedNDCG)):
        return _learned(measure, lists)
    if isinstance(measure, kNDCG):
        exponential = NDCG(gain="exp", cutoff=measure.cutoff)
        return _form(exponential, measure.position_aware(lists))
    if isinstance(measure, (NDCG, DCG)):
        full = discounts(measure.discount or DEFAULT.discount, longest + 1)
        if isinstance(measure, NDCG):
            form = measure.additive_form(lists, DEFAULT)
            assert form is not None
            gains = form.gains
        else:
            measure.values(lists, DEFAULT)  # raises an error for labels that overflow
            kind, table = measure.gain_table(lists, DEFAULT)
            gains = np.empty(len(lists.pool))
            gain_kernel.gains(lists.pool, lists.pool_offsets, 0.0 * ones, kind, table, gains)
        return MeasureForm(ADDITIVE, gains, full[:ranks], NO_TABLE, ones, full)
    rank = np.arange(1, longest + 2, dtype=np.float64)
    if isinstance(measure, (ERR, kERR)):
        if isinstance(measure, kERR):
            lists = measure.position_aware(lists)
            greatest = lists.max_labels
        else:
            greatest = measure.greatest_labels(lists)
        top = np.repeat(greatest, np.diff(lists.pool_offsets))
        stop = np.where(lists.pool > 0, np.exp2(lists.pool - top) - np.exp2(-top), 0.0)
        return MeasureForm(CASCADE, stop, (1 / rank)[:ranks], NO_TABLE, ones, 1 / rank)
    assert isinstance(measure, (AP, RR, P, Recall, RBP))
    level = measure.relevance_level(DEFAULT)
    relevant = (lists.pool >= level).astype(np.float64)
    if isinstance(measure, AP):
        scale = safe_inverse(lists.relevant_counts(level))
        return MeasureForm(PRECISION, relevant, (1 / rank)[:ranks], NO_TABLE, scale, 1 / rank)
    if isinstance(measure, RR):
        full = np.ones_like(rank) if isinstance(measure, Success) else 1 / rank
        return MeasureForm(CASCADE, relevant, full[:ranks], NO_TABLE, ones, full)
    if isinstance(measure, RBP):
        full = (1 - measure.p) * measure.p ** (rank - 1)
        return MeasureForm(ADDITIVE, relevant, full[:ranks], NO_TABLE, ones, full)
    if isinstance(measure, P):
        full = (rank <= kernel_cutoff(measure.cutoff)) / float(measure.cutoff or 1)
        return MeasureForm(ADDITIVE, relevant, full[:ranks], NO_TABLE, ones, full)
    full = (rank <= kernel_cutoff(measure.cutoff)).astype(np.float64)
    scale = safe_inverse(lists.relevant_counts(level))
    return MeasureForm(ADDITIVE, relevant, full[:ranks], NO_TABLE, scale, full)


def _learned(measure: LearnedDCG | LearnedNDCG, lists: RankedLists) -> MeasureForm:
    """Return the form of a measure file: gains and discounts, or a weight per rank and grade."""
    ones = np.ones(len(lists))
    form = measure.additive_form(lists, DEFAULT)
    if form is not None:
        full = np.append(measure.utility.discounts, 0.0)
        return MeasureForm(ADDITIVE, form.gains, form.discount, NO_TABLE, ones, full)
    counts = measure.grade_counts(lists)
    scale = safe_inverse(measure.ideal(counts)) if isinstance(measure, LearnedNDCG) else ones
    column = np.searchsorted(measure.grade_values, lists.pool, side="right") - 1
    gains = np.maximum(column, 0).astype(np.float64)
    return MeasureForm(TABLE, gains, np.empty(0), measure.table.copy(), scale, np.empty(0))
