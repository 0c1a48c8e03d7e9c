"""Measures of graded relevance: DCG, NDCG, MeanNDCG, ERR; kNDCG and kERR for top-k truths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from firstpage.core import Floats, Ints, MeasureError
from firstpage.core.kernels.measures import graded as kernel
from firstpage.data import sort_groups
from firstpage.evaluation.measures.base import (
    ALL,
    MAX_CUTOFF,
    Convention,
    Measure,
    Needs,
    RankedLists,
    fill_empty,
    first_ranks,
    kernel_cutoff,
    kernel_values,
    ratio,
)
from firstpage.evaluation.measures.rank_forms import (
    AdditiveForm,
    CascadeForm,
    all_ranks,
    counted_ranks,
)

DEFAULT = Convention()
Gain = str | tuple[float, ...]
GAINS = {"exp": kernel.EXPONENTIAL, "linear": kernel.LINEAR}
DISCOUNTS = ("log2", "letor")


def discounts(kind: str, size: int) -> Floats:
    """Return the discounts of ranks 1..size: 1/log2(1 + rank), or LETOR's 1, 1, 1/log2(3), .."""
    rank = np.arange(1, size + 1, dtype=np.float64)
    if kind == "letor":
        return 1.0 / np.log2(np.maximum(rank, 2.0))
    return 1.0 / np.log2(1.0 + rank)


@dataclass(frozen=True)
class Gained(Measure):
    """Base of the measures with a gain.

    Parameters
    ----------
    gain : {"exp", "linear"} or tuple of float, optional
        Gain of a label: 2^label - 1, the label itself, or a table of gains for the labels 0, 1, ...
        Default is the convention's ("exp").
    """

    gain: Gain | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.gain, list):
            object.__setattr__(self, "gain", tuple(self.gain))
        if isinstance(self.gain, str) and self.gain not in GAINS:
            raise MeasureError(
                f"the gain of {self.name} must be exp, linear or a list such as [0, 1, 3]; "
                f"got {self.gain!r}."
            )

    def gain_table(self, lists: RankedLists, convention: Convention) -> tuple[int, Floats]:
        """Return kind and table of the gain for the kernel; a table must cover every label."""
        gain = self.gain if self.gain is not None else convention.gain
        if isinstance(gain, str):
            return GAINS[gain], np.empty(0)
        for labels in (lists.pool, lists.labels):
            judged = labels[~np.isnan(labels)]
            invalid = judged[(judged != np.floor(judged)) | (judged >= len(gain))]
            if len(invalid):
                raise MeasureError(
                    f"{self} has gains for the labels 0 to {len(gain) - 1}, and the data hold a "
                    f"label {invalid[0]:g}."
                )
        return kernel.TABLE, np.array(gain, np.float64)

    def _ideal(
        self, lists: RankedLists, kind: int, table: Floats, depth: int
    ) -> tuple[Floats, Ints]:
        """Return the labels of the ideal lists, in descending order of gain, and their offsets.

        Labels whose gain is not positive are NaN, where a table does not rise with the label.
        """
        if kind != kernel.TABLE or (table[0] >= 0 and (np.diff(table) >= 0).all()):
            return lists.ideal(depth)
        gains = np.empty(len(lists.pool))
        kernel.gains(lists.pool, lists.pool_offsets, lists.max_labels, kind, table, gains)
        labels = np.where(gains > 0, lists.pool, np.nan)
        order = sort_groups(np.maximum(gains, 0.0), lists.pool_offsets)[0]
        return labels[order], lists.pool_offsets

    def _check_overflow(self, lists: RankedLists, convention: Convention) -> None:
        """Raise an error if exponential gains overflow where they are not divided by each other."""
        if (self.gain or convention.gain) == "exp" and lists.max_labels.max(initial=0.0) > 1000:
            raise MeasureError(
                f"{self} overflows for labels up to {lists.max_labels.max():g}; use NDCG."
            )

    def _gains(
        self, lists: RankedLists, convention: Convention, max_labels: Floats
    ) -> tuple[Floats, Floats, Ints]:
        """Return the gains of the ranked documents, those of the ideal list, and its offsets."""
        kind, table = self.gain_table(lists, convention)
        best, best_offsets = self._ideal(lists, kind, table, ALL)
        ranked, ideal = np.empty(len(lists.labels)), np.empty(len(best))
        kernel.gains(lists.labels, lists.offsets, max_labels, kind, table, ranked)
        kernel.gains(best, best_offsets, max_labels, kind, table, ideal)
        return ranked, ideal, best_offsets


def discounted_gains(
    ranked: tuple[Floats, Ints, Ints],
    max_labels: Floats,
    weights: tuple[int, Floats, Floats],
    cutoff: int | None,
) -> Floats:
    """Return the DCG of lists, with weights: kind and table of the gain, and the discounts."""
    kind, table, discount = weights
    return kernel_values(
        kernel.dcg,
        ranked,
        max_label=max_labels,
        kind=kind,
        table=table,
        discount=discount,
        cutoff=kernel_cutoff(cutoff),
    )


@dataclass(frozen=True)
class Discounted(Gained):
    """Base of the DCG family: measures with a gain and a discount.

    Parameters
    ----------
    discount : {"log2", "letor"}, optional
        Discount of rank j: 1 / log2(1 + j), or 1, 1, 1/log2(3), 1/log2(4), ...  Default is the
        convention's ("log2").
    """

    discount: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.discount is not None and self.discount not in DISCOUNTS:
            raise MeasureError(
                f"the discount of {self.name} must be log2 or letor; got {self.discount!r}."
            )

    def _discount(self, lists: RankedLists, convention: Convention) -> Floats:
        longest = max(int(np.diff(o).max(initial=0)) for o in (lists.offsets, lists.pool_offsets))
        longest = min(longest, kernel_cutoff(getattr(self, "cutoff", None)))
        return discounts(self.discount or convention.discount, longest)

    def _dcg(
        self,
        ranked: tuple[Floats, Ints, Ints],
        max_labels: Floats,
        weights: tuple[int, Floats, Floats],
    ) -> Floats:
        """Return the DCG of lists: labels, sizes of ties and offsets.

        The weights are kind and table of the gain, and the discount.
        """
        return discounted_gains(ranked, max_labels, weights, getattr(self, "cutoff", None))

    def _ideal_dcg(self, lists: RankedLists, weights: tuple[int, Floats, Floats]) -> Floats:
        """Return the DCG of the ideal order of the judged documents."""
        cutoff = kernel_cutoff(getattr(self, "cutoff", None))
        best, offsets = self._ideal(lists, *weights[:2], cutoff)
        no_ties = np.ones(len(best), np.int64)
        return self._dcg((best, no_ties, offsets), lists.max_labels, weights)

    def _additive_form(self, lists: RankedLists, gains: Floats, cutoff: int | None) -> AdditiveForm:
        every = discounts(self.discount or DEFAULT.discount, len(all_ranks(lists)))
        return AdditiveForm(gains, every, counted_ranks(lists, cutoff))


@dataclass(frozen=True)
class DCG(Discounted):
    """Discounted cumulative gain: the sum over ranks of gain times discount.

    DCG@k = sum over ranks j <= k of gain(label_j) * discount(j), by default
    (2^label_j - 1) / log2(1 + j).  Labels of 0 or less and unjudged documents gain nothing.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    Raises
    ------
    MeasureError
        If a table of gains does not cover a label, or exponential gains overflow.

    References
    ----------
    Jarvelin and Kekalainen, Cumulated Gain-Based Evaluation of IR Techniques, TOIS 2002.
    Burges et al., Learning to Rank Using Gradient Descent, ICML 2005 (gain and discount).

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([3, 2, 1], [2, 0, 1], qid=[1, 1, 1], measures="DCG@3")
    >>> result["DCG@3"]
    3.5
    """

    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        self._check_overflow(lists, convention)
        weights = *self.gain_table(lists, convention), self._discount(lists, convention)
        return self._dcg(lists.ranked, np.zeros(len(lists)), weights)

    def needs(self, convention: Convention) -> Needs:
        return first_ranks(self.cutoff)

    def rank_form(self, lists: RankedLists) -> AdditiveForm:
        self._check_overflow(lists, DEFAULT)
        kind, table = self.gain_table(lists, DEFAULT)
        gains = np.empty(len(lists.pool))
        kernel.gains(lists.pool, lists.pool_offsets, np.zeros(len(lists)), kind, table, gains)
        return self._additive_form(lists, gains, self.cutoff)


@dataclass(frozen=True)
class NDCG(Discounted):
    """Normalized DCG: DCG divided by the DCG of the ideal order of the judged documents.

    NDCG@k = DCG@k / ideal DCG@k; 0 for a query without a positive label.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    Raises
    ------
    MeasureError
        If a table of gains does not cover a label.

    References
    ----------
    Jarvelin and Kekalainen, Cumulated Gain-Based Evaluation of IR Techniques, TOIS 2002.
    Burges et al., Learning to Rank Using Gradient Descent, ICML 2005 (gain and discount).

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([3, 2, 1], [1, 0, 2], qid=[1, 1, 1], measures="NDCG@10")
    >>> round(result["NDCG@10"], 4)
    0.6885
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        lists.ideal(kernel_cutoff(self.cutoff))  # sorted once, for the greatest labels too
        weights = *self.gain_table(lists, convention), self._discount(lists, convention)
        dcg = self._dcg(lists.ranked, lists.max_labels, weights)
        value = ratio(dcg, self._ideal_dcg(lists, weights))
        if convention.strict_cutoff and self.cutoff is not None:
            value[lists.lengths < self.cutoff] = 0.0
        return fill_empty(value, lists, convention)

    def needs(self, convention: Convention) -> Needs:
        return first_ranks(self.cutoff)

    def rank_form(self, lists: RankedLists) -> AdditiveForm:
        kind, table = self.gain_table(lists, DEFAULT)
        gains = np.empty(len(lists.pool))
        kernel.gains(lists.pool, lists.pool_offsets, lists.max_labels, kind, table, gains)
        ideal = self._ideal_dcg(lists, (kind, table, self._discount(lists, DEFAULT)))
        gains *= np.repeat(ratio(np.ones_like(ideal), ideal), np.diff(lists.pool_offsets))
        return self._additive_form(lists, gains, self.cutoff)


@dataclass(frozen=True)
class MeanNDCG(Discounted):
    """The mean of NDCG@1 .. NDCG@n over all n ranks of a list, as the LETOR tool reports it.

    MeanNDCG = (NDCG@1 + NDCG@2 + .. + NDCG@n) / n.

    Raises
    ------
    MeasureError
        If a table of gains does not cover a label.

    References
    ----------
    Qin et al., LETOR: A Benchmark Collection for Research on Learning to Rank, Information
    Retrieval 2010.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([2, 1], [1, 0], qid=[1, 1], measures="MeanNDCG")
    >>> result["MeanNDCG"]
    1.0
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        kind, table = self.gain_table(lists, convention)
        best, offsets = self._ideal(lists, kind, table, ALL)
        out = kernel_values(
            kernel.mean_ndcg,
            lists.ranked,
            ideal=best,
            ideal_offsets=offsets,
            max_label=lists.max_labels,
            kind=kind,
            table=table,
            discount=self._discount(lists, convention),
        )
        return fill_empty(out, lists, convention)


@dataclass(frozen=True)
class ERR(Measure):
    """Expected reciprocal rank of the document at which a user stops.

    A user who reaches a document of label r stops there with probability
    R(r) = (2^r - 1) / 2^max.  ERR = sum over ranks j of R(label_j) / j times the probability of
    passing the ranks before j.

    Parameters
    ----------
    max : float or {"data", "query"}, optional
        Greatest label of the scale: a number, the greatest label in the data (the default), or the
        greatest label in the query.
    cutoff : int, optional
        Number of ranks k; None takes the entire list.

    Raises
    ------
    MeasureError
        If the data have a label above `max`.

    References
    ----------
    Chapelle et al., Expected Reciprocal Rank for Graded Relevance, CIKM 2009.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures="ERR")["ERR"]
    0.25
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    has_scale: ClassVar[bool] = True

    max: float | str | None = None
    cutoff: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale(self, self.max)

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return err(lists, self.greatest_labels(lists), kernel_cutoff(self.cutoff))

    def needs(self, convention: Convention) -> Needs:
        return first_ranks(self.cutoff)

    def rank_form(self, lists: RankedLists) -> CascadeForm:
        return _stopping(lists, self.greatest_labels(lists), self.cutoff)

    def greatest_labels(self, lists: RankedLists) -> Floats:
        """Return the greatest label of the scale of each query."""
        return scale_of(self, self.max, lists)


def check_scale(measure: Measure, scale: float | str | None) -> None:
    """Raise an error unless the greatest label of a scale is a number, data or query."""
    if isinstance(scale, str) and scale not in ("data", "query"):
        raise MeasureError(f"max of {measure.name} must be a number, data or query; got {scale!r}.")


def reads_scale(measure: Measure) -> bool:
    """Return whether the scale of a measure is that of the data, which must then be complete."""
    return measure.has_scale and getattr(measure, "max", None) in (None, "data")


def with_scale(measure: Measure, greatest: float) -> Measure:
    """Return a measure for a part of data with this greatest label, with the values on all data."""
    changes: dict[str, Any] = {"max": max(float(greatest), 0.0)}
    if not reads_scale(measure) or changes["max"] <= getattr(measure, "min", -np.inf):
        return measure  # where no label is above min, no document has a gain
    return replace(measure, **changes)


def scale_of(measure: Measure, scale: float | str | None, lists: RankedLists) -> Floats:
    """Return the greatest label of the scale of each query; labels above it are an error."""
    if scale == "query":
        return lists.max_labels
    greatest = lists.max_labels.max(initial=0.0)
    if scale is None or isinstance(scale, str):
        return np.full(len(lists), greatest)
    if greatest > scale:
        raise MeasureError(f"{measure}: the data hold a label {greatest:g}, above max={scale:g}.")
    return np.full(len(lists), float(scale))


def err(lists: RankedLists, max_labels: Floats, cutoff: int) -> Floats:
    """Return the ERR of each query, given the greatest label of its scale."""
    means = np.empty(lists.longest_tie + 2)
    return kernel_values(
        kernel.err, lists.ranked, max_label=max_labels, cutoff=cutoff, pass_means=means
    )


def _stopping(lists: RankedLists, max_labels: Floats, cutoff: int | None) -> CascadeForm:
    """Return the form of ERR, given the greatest label of the scale of each query."""
    top = np.repeat(max_labels, np.diff(lists.pool_offsets))
    stop = np.where(lists.pool > 0, np.exp2(lists.pool - top) - np.exp2(-top), 0.0)
    return CascadeForm(stop, 1 / all_ranks(lists), counted_ranks(lists, cutoff))


@dataclass(frozen=True)
class _TopK(Measure):
    """Base of the kappa measures, which need a truth with a strict order of its top k documents.

    Position-aware labels are k, k - 1, .. 1, then 0; or n - 1 .. 0 for a full order.

    Parameters
    ----------
    k : int, optional
        Depth of the truth: the first k documents by label are ordered.  None takes the labels
        as position-aware ones.
    """

    value_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None and not 1 <= self.k <= MAX_CUTOFF:
            raise MeasureError(
                f"k of {self.name} must be at least 1 and at most {MAX_CUTOFF:,}; got {self.k}."
            )

    def position_aware(self, lists: RankedLists) -> RankedLists:
        """Return the lists with position-aware labels."""
        best, offsets = lists.ideal(ALL)
        self._check(best, offsets, lists)
        if self.k is None:
            return lists
        position = np.arange(len(best)) - np.repeat(offsets[:-1], np.diff(offsets))
        last = offsets[:-1] + np.minimum(np.diff(offsets), self.k) - 1
        # A label becomes k minus the number of greater labels in its query's pool.
        relabel = np.maximum(self.k - position, 0).astype(np.float64)
        limit = best[np.maximum(last, 0)] if len(best) else np.empty(0)
        return replace(
            lists,
            labels=_relabeled(lists.labels, lists.offsets, best, offsets, relabel, limit),
            judged=replace(
                lists.judged,
                labels=_relabeled(lists.pool, lists.pool_offsets, best, offsets, relabel, limit),
            ),
        )

    def _check(self, best: Floats, offsets: Ints, lists: RankedLists) -> None:
        """Raise an error if labels are tied where the truth must have an order."""
        if len(best) < 2:
            return
        position = np.arange(len(best)) - np.repeat(offsets[:-1], np.diff(offsets))
        tied = (best[1:] == best[:-1]) & (position[1:] > 0)
        tied &= best[1:] > 0 if self.k is None else position[1:] <= self.k
        if tied.any():
            at = int(np.argmax(tied)) + 1
            query = lists.queries[int(np.searchsorted(offsets, at, side="right")) - 1]
            k = self.k or 10
            raise MeasureError(
                f"{self} needs a truth with a strict order of the top documents; in query "
                f"{query!r} several have the label {best[at]:g}. Make one from grades with --k {k} "
                f"(Truth.top_k({k})), or use NDCG{_at_cutoff(self)} or ERR{_at_cutoff(self)}."
            )


def _at_cutoff(measure: Measure) -> str:
    cutoff = getattr(measure, "cutoff", None)
    return "" if cutoff is None else f"@{cutoff}"


def _relabeled(
    labels: Floats, offsets: Ints, best: Floats, best_offsets: Ints, relabel: Floats, limit: Floats
) -> Floats:
    """Return new labels of documents, by the position of their old label in the ideal order."""
    out = labels.copy()
    for q in range(len(offsets) - 1):
        lo, hi = offsets[q], offsets[q + 1]
        best_lo, best_hi = best_offsets[q], best_offsets[q + 1]
        if best_hi == best_lo:
            continue
        old = labels[lo:hi]
        position = np.searchsorted(-best[best_lo:best_hi], -old, side="left")
        position = np.minimum(position, best_hi - best_lo - 1)
        new = np.where(old >= limit[q], relabel[best_lo:best_hi][position], 0.0)
        out[lo:hi] = np.where(np.isnan(old), np.nan, new)
    return out


@dataclass(frozen=True)
class kNDCG(_TopK):
    """Kappa-NDCG: NDCG on position-aware labels, for truths that order their top k documents.

    The first document of the truth has the label k, the second k - 1, the k-th 1, all others 0;
    gains are exponential.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks that count; None takes the entire list.

    Raises
    ------
    MeasureError
        If documents of the top k have equal labels.

    References
    ----------
    Niu et al., Top-k Learning to Rank: Labeling, Ranking and Evaluation, SIGIR 2012, eq. 2.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([3, 2, 1], [2, 1, 0], qid=[1, 1, 1], measures="kNDCG@2")
    >>> result["kNDCG@2"]
    1.0
    """

    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        return self._ndcg.values(self.position_aware(lists), convention)

    def rank_form(self, lists: RankedLists) -> AdditiveForm:
        return self._ndcg.rank_form(self.position_aware(lists))

    @property
    def _ndcg(self) -> NDCG:
        return NDCG(gain="exp", cutoff=self.cutoff)


@dataclass(frozen=True)
class kERR(_TopK):
    """Kappa-ERR: ERR on position-aware labels, for truths that order their top k documents.

    Labels are as in kNDCG; the greatest label of the scale is k, the discount is 1/rank.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks that count; None takes the entire list.

    Raises
    ------
    MeasureError
        If documents of the top k have equal labels.

    References
    ----------
    Niu et al., Top-k Learning to Rank: Labeling, Ranking and Evaluation, SIGIR 2012, eq. 3.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.evaluate([2, 1], [1, 0], qid=[1, 1], measures="kERR")
    >>> result["kERR"]
    0.5
    """

    cutoff: int | None = None

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        relabeled = self.position_aware(lists)
        return err(relabeled, relabeled.max_labels, kernel_cutoff(self.cutoff))

    def rank_form(self, lists: RankedLists) -> CascadeForm:
        relabeled = self.position_aware(lists)
        return _stopping(relabeled, relabeled.max_labels, self.cutoff)
