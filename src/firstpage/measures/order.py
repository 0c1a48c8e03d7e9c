"""Measures of order: what a ranking does to the preferences in the truth.

They look at judged documents only; judged ones that were not retrieved stand in one tie
at the end.  Documents of equal label have no order that could be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.errors import MeasureError
from firstpage.kernels.measures import order as kernel
from firstpage.measures.graded import discounts
from firstpage.measures.measure import ALL, Convention, Measure, RankedLists, cut, ratio
from firstpage.types import Floats


def _concordance(lists: RankedLists) -> tuple[Floats, ...]:
    """Pairs of each query: right, wrong, tied in score, tied in label, all."""
    lists = lists.judged_only
    labels, n = lists.labels.copy(), lists.lengths.astype(np.float64)
    out = np.empty(4 * len(lists))
    kernel.concordance(labels, lists.tie_sizes, lists.offsets, np.empty(len(labels)), out)
    return *out.reshape(-1, 4).T, n * (n - 1) / 2


@dataclass(frozen=True)
class Tau(Measure):
    """Kendall's tau-b between scores and labels; 0 where either is constant."""

    about: ClassVar[str] = "Kendall's tau (tau-b: ties corrected)"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        right, wrong, tied_scores, tied_labels, pairs = _concordance(lists)
        size = np.sqrt((pairs - tied_scores) * (pairs - tied_labels))
        return ratio(right - wrong, size)


@dataclass(frozen=True)
class PairAccuracy(Measure):
    """The share of preferences that the ranking keeps; a tied score keeps half of one."""

    about: ClassVar[str] = "share of preferences in the right order"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        right, wrong, _, tied_labels, every = _concordance(lists)
        pairs = every - tied_labels
        return ratio(right + (pairs - right - wrong) / 2, pairs)


@dataclass(frozen=True)
class WKT(Measure):
    """Weighted Kendall's tau distance: worse documents above each of the true first k places.

    Sum over true places j of (2^label - 1) / log2(1 + j) times the number of documents of a
    lower label that are ranked above.  With `norm` it is divided by its weights' sum, so that
    1 - NDCG@k <= WKT(norm=true)@k.
    """

    norm: bool = False
    cutoff: int | None = None
    lower_is_better: ClassVar[bool] = True
    about: ClassVar[str] = "weighted Kendall's tau distance (Lan et al. 2013, eq. 12)"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        judged = lists.judged_only
        value, total = np.empty(len(judged)), np.empty(len(judged))
        best, _ = judged.ideal(ALL)
        place_discount = discounts(how.discount, int(judged.lengths.max(initial=0)))
        kernel.weighted_kendall(
            judged.labels, judged.tie_sizes, judged.offsets, best, judged.max_labels,
            place_discount, cut(self.cutoff), value, total,
        )  # fmt: skip
        if self.norm:
            return ratio(value, total)
        if judged.max_labels.max(initial=0.0) > 1000:
            raise MeasureError(
                f"{self} is too large for labels up to {judged.max_labels.max():g}; "
                "take WKT(norm=true), which is the same divided by its greatest weights."
            )
        return value * np.exp2(judged.max_labels)


@dataclass(frozen=True)
class TopK01(Measure):
    """The top-k true loss: 0 if the first k places are exactly right, else 1.

    With tied scores, the chance of an error.
    """

    cutoff: int | None = None
    lower_is_better: ClassVar[bool] = True
    about: ClassVar[str] = "top-k true loss (Xia et al. 2009, eq. 5)"
    without_cutoff: ClassVar[str] = "TopK01@3; Perm01 takes all"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        return _wrong_places(lists, cut(self.cutoff))


@dataclass(frozen=True)
class Perm01(Measure):
    """Permutation 0-1 loss: 0 if the whole order is right, else 1."""

    lower_is_better: ClassVar[bool] = True
    about: ClassVar[str] = "permutation 0-1 loss (Xia et al. 2009, eq. 2)"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        return _wrong_places(lists, ALL)


def _wrong_places(lists: RankedLists, cutoff: int) -> Floats:
    judged = lists.judged_only
    out = np.empty(len(judged))
    best, _ = judged.ideal(ALL)
    kernel.exact_match_probability(
        judged.labels, judged.tie_sizes, judged.offsets, best, cutoff, out
    )
    return 1.0 - out


@dataclass(frozen=True)
class _Preferences(Measure):
    cutoff: int | None = None

    def _share(self, lists: RankedLists, weight: Floats) -> Floats:
        judged = lists.judged_only
        right, both = np.empty(len(judged)), np.empty(len(judged))
        kernel.preferences(
            judged.labels, judged.tie_sizes, judged.offsets, weight, cut(self.cutoff), right, both
        )
        return ratio(right, both)


@dataclass(frozen=True)
class ppref(_Preferences):
    """Precision of preferences: kept ones among those that the first k places decide.

    A pair is decided if one of the two stands there.  With tied scores, expected kept over
    expected decided.
    """

    about: ClassVar[str] = "precision of preferences (Carterette & Bennett 2008)"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        return self._share(lists, np.ones(int(lists.judged_only.lengths.max(initial=0))))


@dataclass(frozen=True)
class nwppref(_Preferences):
    """ppref with each pair weighing 1 / log2(1 + place of its upper document), normalized."""

    about: ClassVar[str] = "normalized weighted precision of preferences"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        return self._share(lists, discounts("log2", int(lists.judged_only.lengths.max(initial=0))))


@dataclass(frozen=True)
class RBO(Measure):
    """Rank-biased overlap with the ideal order of the relevant documents, 1 for the ideal.

    Ties in the truth count in favor of the ranking: Clarke et al.'s compatibility (2020).
    """

    rel: float | None = None
    p: float = 0.9
    cutoff: int | None = None
    about: ClassVar[str] = "rank-biased overlap with the ideal order"

    def values(self, lists: RankedLists, how: Convention) -> Floats:
        level = how.rel if self.rel is None else self.rel
        best, offsets = lists.ideal(ALL)
        kept = best >= level
        counts = offsets_from_lengths(kept)[offsets]
        size = int(lists.lengths.max(initial=0)) + 2
        logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size)))])
        out = np.empty(len(lists))
        kernel.rank_biased_overlap(
            lists.labels, lists.tie_sizes, lists.offsets, best[kept], counts.astype(np.int64),
            float(self.p), cut(self.cutoff), logs, out,
        )  # fmt: skip
        return out
