"""Measures of graded relevance: DCG, NDCG, MeanNDCG, ERR; kNDCG and kERR for top-k truths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from firstpage.errors import MeasureError
from firstpage.kernels.measures import graded as kernel
from firstpage.measures.measure import (
    ALL,
    AdditiveForm,
    Convention,
    Measure,
    RankedLists,
    cut,
    ratio,
)
from firstpage.types import Floats, Ints

Gain = str | tuple[float, ...]
KINDS = {"exp": kernel.EXPONENTIAL, "linear": kernel.LINEAR}
DISCOUNTS = ("log2", "letor")


def discounts(kind: str, size: int) -> Floats:
    """The discount of places 1..size: `log2` 1/log2(1+j); `letor` 1, 1, 1/log2(3), .."""
    place = np.arange(1, size + 1, dtype=np.float64)
    if kind == "letor":
        return 1.0 / np.log2(np.maximum(place, 2.0))
    return 1.0 / np.log2(1.0 + place)


@dataclass(frozen=True)
class _Discounted(Measure):
    """Shared by the DCG family: which gain, which discount."""

    gain: Gain | None = None
    discount: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.gain, list):
            object.__setattr__(self, "gain", tuple(self.gain))
        if isinstance(self.gain, str) and self.gain not in KINDS:
            raise MeasureError(
                f"the gain of {self.name} must be exp, linear or a list such as [0, 1, 3]; "
                f"got {self.gain!r}."
            )
        if self.discount is not None and self.discount not in DISCOUNTS:
            raise MeasureError(
                f"the discount of {self.name} must be log2 or letor; got {self.discount!r}."
            )

    def _gain(self, lists: RankedLists, how: Convention) -> tuple[int, Floats]:
        """Kind and table for the kernel; a table must cover every label."""
        gain = self.gain if self.gain is not None else how.gain
        if isinstance(gain, str):
            return KINDS[gain], np.empty(0)
        for labels in (lists.pool, lists.labels):
            judged = labels[~np.isnan(labels)]
            off = judged[(judged != np.floor(judged)) | (judged >= len(gain))]
            if len(off):
                raise MeasureError(
                    f"{self} has gains for the labels 0 to {len(gain) - 1}, and the data hold a "
                    f"label {off[0]:g}."
                )
        return kernel.TABLE, np.array(gain, np.float64)

    def _discount(self, lists: RankedLists, how: Convention) -> Floats:
        longest = max(int(np.diff(o).max(initial=0)) for o in (lists.offsets, lists.pool_offsets))
        return discounts(self.discount or how.discount, longest)

    def _dcg(self, lists: RankedLists, how: Convention, top: Floats, cutoff: int) -> Floats:
        out = np.empty(len(lists))
        kind, table = self._gain(lists, how)
        kernel.dcg(
            lists.labels, lists.tie_sizes, lists.offsets, top, kind, table,
            self._discount(lists, how), cutoff, out,
        )  # fmt: skip
        return out

    def _ideal_dcg(self, lists: RankedLists, how: Convention, top: Floats, cutoff: int) -> Floats:
        best, offsets = lists.ideal(cutoff)
        out = np.empty(len(lists))
        kind, table = self._gain(lists, how)
        singles = np.ones(len(best), np.int64)
        kernel.dcg(
            best, singles, offsets, top, kind, table, self._discount(lists, how), cutoff, out
        )
        return out


@dataclass(frozen=True)
class DCG(_Discounted):
    """Sum over places of gain / log2(1 + place).  Gain 2^label - 1; 0 for labels up to 0."""

    cutoff: int | None = None
    about: ClassVar[str] = "discounted cumulative gain"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        if (self.gain or how.gain) == "exp" and lists.max_labels.max(initial=0.0) > 1000:
            raise MeasureError(
                f"{self} is too large for labels up to {lists.max_labels.max():g}; NDCG is not."
            )
        return self._dcg(lists, how, np.zeros(len(lists)), cut(self.cutoff))


@dataclass(frozen=True)
class NDCG(_Discounted):
    """DCG divided by the DCG of the ideal order; 0 where nothing has a positive label."""

    cutoff: int | None = None
    about: ClassVar[str] = "normalized DCG"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        cutoff = cut(self.cutoff)
        got = self._dcg(lists, how, lists.max_labels, cutoff)
        value = ratio(got, self._ideal_dcg(lists, how, lists.max_labels, cutoff))
        if how.strict_cutoff and self.cutoff is not None:
            value[lists.lengths < self.cutoff] = 0.0
        return value

    def additive_form(self, lists: RankedLists, how: Convention) -> AdditiveForm | None:
        if how.strict_cutoff:
            return None
        kind, table = self._gain(lists, how)
        gains = np.empty(len(lists.pool))
        kernel.gains(lists.pool, lists.pool_offsets, lists.max_labels, kind, table, gains)
        best = self._ideal_dcg(lists, how, lists.max_labels, cut(self.cutoff))
        shares = ratio(np.ones_like(best), best)
        gains *= np.repeat(shares, np.diff(lists.pool_offsets))
        return AdditiveForm(gains, self._discount(lists, how)[: cut(self.cutoff)])


@dataclass(frozen=True)
class MeanNDCG(_Discounted):
    """Mean of NDCG@1 .. NDCG@n over the places of a list, as LETOR's tool prints it."""

    about: ClassVar[str] = "mean of NDCG over all cut-offs"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        best, offsets = lists.ideal(ALL)
        out = np.empty(len(lists))
        kind, table = self._gain(lists, how)
        kernel.mean_ndcg(
            lists.labels, lists.tie_sizes, lists.offsets, best, offsets, lists.max_labels, kind,
            table, self._discount(lists, how), out,
        )  # fmt: skip
        return out


@dataclass(frozen=True)
class ERR(Measure):
    """Expected reciprocal rank: readers stop at a label r with chance (2^r - 1) / 2^max.

    `max` is the greatest grade of the scale: a number, "data" (the greatest label in the data,
    the default) or "query" (in the query).
    """

    max: float | str | None = None
    cutoff: int | None = None
    about: ClassVar[str] = "expected reciprocal rank (Chapelle et al. 2009)"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.max, str) and self.max not in ("data", "query"):
            raise MeasureError(f"max of ERR must be a number, data or query; got {self.max!r}.")

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        if self.max == "query":
            top = lists.max_labels
        elif self.max is None or isinstance(self.max, str):
            top = np.full(len(lists), lists.max_labels.max(initial=0.0))
        else:
            if lists.max_labels.max(initial=0.0) > self.max:
                raise MeasureError(
                    f"{self}: the data have a label {lists.max_labels.max():g}, above "
                    f"max={self.max:g}."
                )
            top = np.full(len(lists), float(self.max))
        return err(lists, top, cut(self.cutoff))


def err(lists: RankedLists, top: Floats, cutoff: int) -> Floats:
    """ERR with the scale's greatest label given for each query."""
    out = np.empty(len(lists))
    work = np.empty(lists.longest_tie + 2)
    kernel.err(lists.labels, lists.tie_sizes, lists.offsets, top, cutoff, work, out)
    return out


@dataclass(frozen=True)
class _TopK(Measure):
    """Shared: the truth must say the order of its top k one by one.

    `k` None takes the labels as position-aware ones (k, k-1, .. 1, then 0; or a full order
    n-1 .. 0).  With `k`, the first k places of the order in the labels become the truth.
    """

    k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None and self.k < 1:
            raise MeasureError(f"k of {self.name} must be at least 1; got {self.k}.")

    def _lists(self, lists: RankedLists) -> RankedLists:
        """The lists with position-aware labels."""
        best, offsets = lists.ideal(ALL)
        self._check(best, offsets, lists)
        if self.k is None:
            return lists
        place = np.arange(len(best)) - np.repeat(offsets[:-1], np.diff(offsets))
        last = offsets[:-1] + np.minimum(np.diff(offsets), self.k) - 1
        # A label becomes k minus the number of greater ones in its query's pool.
        relabel = np.maximum(self.k - place, 0).astype(np.float64)
        limit = best[np.maximum(last, 0)] if len(best) else np.empty(0)
        return replace(
            lists,
            labels=_lookup(lists.labels, lists.offsets, best, offsets, relabel, limit),
            pool=_lookup(lists.pool, lists.pool_offsets, best, offsets, relabel, limit),
            _counts={},
            _ideals={},
        )

    def _check(self, best: Floats, offsets: Ints, lists: RankedLists) -> None:
        """Refuse labels with ties where the truth should have an order."""
        if len(best) < 2:
            return
        place = np.arange(len(best)) - np.repeat(offsets[:-1], np.diff(offsets))
        tied = (best[1:] == best[:-1]) & (place[1:] > 0)
        tied &= best[1:] > 0 if self.k is None else place[1:] <= self.k
        if tied.any():
            at = int(np.argmax(tied)) + 1
            query = lists.queries[int(np.searchsorted(offsets, at, side="right")) - 1]
            k = self.k or 10
            raise MeasureError(
                f"{self} needs a truth that orders the top documents one by one; in query "
                f"{query!r} several have the label {best[at]:g}. Make one from grades with --k {k} "
                f"(Truth.top_k({k})), or use NDCG{_at(self)} or ERR{_at(self)}."
            )


def _at(measure: Measure) -> str:
    cutoff = getattr(measure, "cutoff", None)
    return "" if cutoff is None else f"@{cutoff}"


def _lookup(
    labels: Floats, offsets: Ints, best: Floats, best_offsets: Ints, relabel: Floats, limit: Floats
) -> Floats:
    """New labels of documents by the place that their old label has in the ideal order."""
    out = labels.copy()
    for q in range(len(offsets) - 1):
        lo, hi = offsets[q], offsets[q + 1]
        b_lo, b_hi = best_offsets[q], best_offsets[q + 1]
        if b_hi == b_lo:
            continue
        here = labels[lo:hi]
        place = np.searchsorted(-best[b_lo:b_hi], -here, side="left")
        place = np.minimum(place, b_hi - b_lo - 1)
        new = np.where(here >= limit[q], relabel[b_lo:b_hi][place], 0.0)
        out[lo:hi] = np.where(np.isnan(here), np.nan, new)
    return out


@dataclass(frozen=True)
class kNDCG(_TopK):
    """NDCG on position-aware labels: the first of the truth has label k, the k-th 1."""

    cutoff: int | None = None
    about: ClassVar[str] = "kappa-NDCG, for top-k truths (Niu et al. 2012, eq. 2)"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        return NDCG(gain="exp", cutoff=self.cutoff).values(self._lists(lists), how)


@dataclass(frozen=True)
class kERR(_TopK):
    """ERR on position-aware labels, the greatest label being k (discount 1/place)."""

    cutoff: int | None = None
    about: ClassVar[str] = "kappa-ERR, for top-k truths (Niu et al. 2012, eq. 3)"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        changed = self._lists(lists)
        return err(changed, changed.max_labels, cut(self.cutoff))
