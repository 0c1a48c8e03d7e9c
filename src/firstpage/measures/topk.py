"""kappa-NDCG and kappa-ERR: NDCG and ERR for top-k truths (Niu et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from firstpage.errors import MeasureError
from firstpage.measures.conventions import Convention
from firstpage.measures.graded import NDCG, err
from firstpage.measures.lists import ALL, Lists
from firstpage.measures.measure import Measure, cut
from firstpage.types import Floats, Ints


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

    def _lists(self, lists: Lists) -> Lists:
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

    def _check(self, best: Floats, offsets: Ints, lists: Lists) -> None:
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

    def values(self, lists: Lists, how: Convention) -> Floats:
        return NDCG(gain="exp", cutoff=self.cutoff).values(self._lists(lists), how)


@dataclass(frozen=True)
class kERR(_TopK):
    """ERR on position-aware labels, the greatest label being k (discount 1/place)."""

    cutoff: int | None = None
    about: ClassVar[str] = "kappa-ERR, for top-k truths (Niu et al. 2012, eq. 3)"

    def values(self, lists: Lists, how: Convention) -> Floats:
        changed = self._lists(lists)
        return err(changed, changed.top, cut(self.cutoff))
