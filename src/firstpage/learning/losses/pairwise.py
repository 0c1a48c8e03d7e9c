"""Losses of document pairs: logistic (RankNet), exponential (RankBoost), hinge (RankSVM)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from firstpage.core import BoundKernel, DataError, Floats, Ints, inherit_sections
from firstpage.core.kernels.losses import hinge, label_margin
from firstpage.core.kernels.losses import pairwise as kernel
from firstpage.data import Truth
from firstpage.learning.losses.base import (
    Loss,
    LossTarget,
    LossTerm,
    OneKernelTarget,
    Traits,
    safe_inverse,
    zero_curvature,
)
from firstpage.learning.losses.levels import (
    LabelLevels,
    LevelArrays,
    label_levels,
    level_arrays,
    level_labels,
)

PairSelection = Literal["all", "cross"]
SORTING_THRESHOLD = 8  # pairs per document above which a hinge sorts instead of enumerating pairs
MAX_SWEPT_LEVELS = 10  # levels up to which a sorting hinge holds a sum per level


@dataclass(frozen=True)
class _Pairwise(Loss):
    """Base class of the pairwise losses: which pairs there are, and their weights.

    Parameters
    ----------
    k : int, optional
        Take only pairs whose better document is among the first k of the truth.
    pairs : {"all", "cross"}, default "all"
        "all" takes all of these pairs; "cross" only those whose better document is among the first
        k and whose worse one is not.  Without `k`, cross pairs are those between documents of
        positive label and the others.
    average : bool, default False
        Take the mean over the pairs of a query instead of their sum.
    """

    k: int | None = None
    pairs: PairSelection = "all"
    average: bool = False

    def __init_subclass__(cls) -> None:
        inherit_sections(cls)

    def __post_init__(self) -> None:
        if self.pairs not in ("all", "cross"):
            raise DataError(f"pairs must be 'all' or 'cross'; got {self.pairs!r}.")

    def _weighted_levels(
        self, truth: Truth, weights: Floats | None, keep_levels: bool = False
    ) -> tuple[LabelLevels, Floats, Floats, Floats]:
        """Return the levels, the weights of their documents as the better and as the worse one of a
        pair, and the summed weight of the pairs per query.

        Cross pairs may need only two levels; `keep_levels` returns those of the truth.
        """
        k = self.k
        levels = label_levels(truth, weights, k)
        certain = k is None or np.isin(levels.top_probability, (0.0, 1.0)).all()
        if self.pairs == "cross" and certain and not keep_levels:
            # No tie crosses rank k: two levels describe all pairs, for which the kernel is fast.
            inside = (
                truth.labels > 0 if k is None else levels.per_document(levels.top_probability) > 0
            )
            two_levels = Truth(inside.astype(np.float64), truth.offsets, truth.queries)
            levels = label_levels(two_levels, weights)
            k = None
        upper = levels.top_probability
        lower = np.ones_like(upper) if self.pairs == "all" or k is None else 1.0 - upper
        if self.pairs == "cross" and k is None and keep_levels:
            upper = (_truth_labels(levels, truth) > 0).astype(np.float64)
            lower = 1.0 - upper
        # Pairs of a query: the weight of each level times the summed weight of the levels below it.
        cumulative = np.concatenate([[0.0], np.cumsum(lower * levels.total)])
        below = np.repeat(cumulative[levels.firsts[1:]], levels.sizes) - cumulative[1:]
        upper = np.where(levels.is_lowest, 0.0, upper)
        count = levels.per_query(upper * levels.total * np.maximum(below, 0.0))
        if self.average:
            upper = upper * np.repeat(safe_inverse(count), levels.sizes)
            count = (count > 0).astype(np.float64)
        return levels, upper, lower, count


@dataclass(frozen=True)
class PairwiseLogistic(_Pairwise):
    """Logistic loss of document pairs, the cross entropy of RankNet.

    The sum over pairs, u better than v, of log(1 + exp(s_v - s_u)).  The time per query is
    proportional to the number of pairs: O(n k) with `k`, O(n^2) for a full order.

    Raises
    ------
    DataError
        If `pairs` is neither "all" nor "cross".

    References
    ----------
    Burges et al. (2005), Learning to rank using gradient descent.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [2, 1, 0], [1, 1, 1])
    >>> values, _ = fp.extend.loss("PairwiseLogistic").value_grad(np.zeros(3), data.truth)
    >>> float(values[0].round(3))  # three pairs, each log 2
    2.079
    """

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        return _LogisticTarget(*self._weighted_levels(truth, weights))


@dataclass(frozen=True)
class _LabelMargin(_Pairwise):
    """Base class of the pairwise losses that may multiply score differences by label differences.

    Parameters
    ----------
    label_margin : bool, default False
        Multiply s_u - s_v by y_u - y_v, the difference of the labels (with `k`: of the labels k,
        k-1, .., 1 of the top k and 0 of the others), as printed for FocusedSVM and FocusedBoost.
        The better a document, the smaller the difference of scores that it demands.  All pairs are
        enumerated.

    References
    ----------
    Niu, Guo, Lan and Cheng (2012), section 3.2.2.
    """

    label_margin: bool = False

    def _margin_target(self, truth: Truth, weights: Floats | None, hinge: bool) -> LossTarget:
        levels, upper, lower, count = self._weighted_levels(truth, weights, keep_levels=True)
        labels = _truth_labels(levels, truth) if self.k is None else level_labels(levels, self.k)
        return _LabelMarginTarget(levels, upper, lower, count, labels, hinge)


def _truth_labels(levels: LabelLevels, truth: Truth) -> Floats:
    """Return the label of every level."""
    labels: Floats = truth.by_label[1][levels.starts]
    return labels


@dataclass(frozen=True)
class PairwiseExponential(_LabelMargin):
    """Exponential loss of document pairs, the loss of RankBoost.

    The sum over pairs, u better than v, of exp(s_v - s_u).  It factorizes, so that the time per
    query is O(n).

    Raises
    ------
    DataError
        If `pairs` is neither "all" nor "cross".

    References
    ----------
    Freund, Iyer, Schapire and Singer (2003), An efficient boosting algorithm for combining
    preferences.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [2, 1, 0], [1, 1, 1])
    >>> values, _ = fp.extend.loss("PairwiseExponential").value_grad(np.zeros(3), data.truth)
    >>> float(values[0])
    3.0
    """

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        if self.label_margin:
            return self._margin_target(truth, weights, hinge=False)
        return _ExponentialTarget(*self._weighted_levels(truth, weights))


@dataclass(frozen=True)
class PairwiseHinge(_LabelMargin):
    """Hinge loss of document pairs, the loss of RankSVM.

    The sum over pairs, u better than v, of max(0, 1 - s_u + s_v).  The time per query is
    proportional to the number of pairs where they are few, as with `k`, and O(n log n) for a full
    order.

    Raises
    ------
    DataError
        If `pairs` is neither "all" nor "cross".

    References
    ----------
    Joachims (2002), Optimizing search engines using clickthrough data.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [2, 1, 0], [1, 1, 1])
    >>> loss = fp.extend.loss("PairwiseHinge")
    >>> values, _ = loss.value_grad(np.array([2.0, 1.5, 0.0]), data.truth)
    >>> float(values[0])  # only the first pair is closer than the margin 1
    0.5
    """

    traits: ClassVar[Traits] = Traits(smooth=False)

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        if self.label_margin:
            return self._margin_target(truth, weights, hinge=True)
        return _HingeTarget(*self._weighted_levels(truth, weights))


class _PairArrays(LevelArrays):
    upper: Floats
    lower: Floats


@dataclass(frozen=True, eq=False)
class _PairwiseTarget(LossTarget):
    levels: LabelLevels
    upper: Floats  # weight per level as the better document of a pair
    lower: Floats  # and as the worse one
    pairs: Floats  # summed weight of the pairs per query

    def hessian_scale(self) -> Floats:
        return 0.5 * self.pairs

    def terms(self) -> list[LossTerm] | None:
        return None

    def _arrays(self, lo: int, hi: int) -> _PairArrays:
        """Return the levels of the queries lo:hi with their weights in pairs."""
        return {**level_arrays(self.levels, lo, hi), "upper": self.upper, "lower": self.lower}

    def _longest(self, lo: int, hi: int) -> int:
        return int(np.diff(self.levels.offsets[lo : hi + 1]).max(initial=0))


class _LogisticTarget(_PairwiseTarget):
    def terms(self) -> list[LossTerm]:
        levels = self.levels
        weight = levels.by_row(levels.weight)
        columns = {
            "upper": levels.per_document(self.upper) * weight,
            "lower": levels.per_document(self.lower) * weight,
            "end": levels.per_document(levels.end.astype(np.float64)),
        }
        return [LossTerm("pairs", columns, np.ones(len(levels.offsets) - 1))]

    @cached_property
    def _unit_weights(self) -> int:
        return int((self.levels.weight == 1.0).all() and (self.lower == 1.0).all())

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        z, exp_z, lower_weight, grad_sorted = np.empty((4, self._longest(lo, hi)))
        return kernel.pairwise_logistic.bind(
            scores,
            unit_weights=self._unit_weights,
            z=z,
            exp_z=exp_z,
            lower_weight=lower_weight,
            grad_sorted=grad_sorted,
            values=values,
            grad=grad,
            **self._arrays(lo, hi),
        )

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        z, lower_weight, hessian_sorted = np.empty((3, self._longest(lo, hi)))
        return kernel.pairwise_logistic_curvature.bind(
            scores,
            z=z,
            lower_weight=lower_weight,
            hessian_sorted=hessian_sorted,
            out=out,
            **self._arrays(lo, hi),
        )


class _ExponentialTarget(OneKernelTarget, _PairwiseTarget):
    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curvature: Floats
    ) -> BoundKernel:
        return kernel.pairwise_exponential.bind(
            scores,
            z=np.empty(len(scores)),
            logs=np.empty(int(self.levels.sizes[lo:hi].max(initial=1))),
            values=values,
            grad=grad,
            hessian=curvature,
            **self._arrays(lo, hi),
        )


@dataclass(frozen=True, eq=False)
class _LabelMarginTarget(OneKernelTarget, _PairwiseTarget):
    labels: Floats  # one per level
    hinge: bool  # else exponential

    def hessian_scale(self) -> Floats:
        """Return the scale with the largest squared margin of each query."""
        firsts, filled = self.levels.firsts, self.levels.sizes > 0
        margins = np.zeros(len(filled))
        ends = firsts[1:][filled] - 1
        margins[filled] = self.labels[firsts[:-1][filled]] - self.labels[ends]
        return 0.5 * self.pairs * margins**2

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        if self.hinge:
            return zero_curvature(out)
        return super().bind_curvature(lo, hi, scores, out)

    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curvature: Floats
    ) -> BoundKernel:
        z, lower_weight, grad_sorted, hessian_sorted = np.empty((4, self._longest(lo, hi)))
        return label_margin.label_margin_loss.bind(
            scores,
            label=self.labels,
            hinge=int(self.hinge),
            z=z,
            lower_weight=lower_weight,
            grad_sorted=grad_sorted,
            hessian_sorted=hessian_sorted,
            values=values,
            grad=grad,
            hessian=curvature,
            **self._arrays(lo, hi),
        )


class _HingeTarget(_PairwiseTarget):
    @cached_property
    def _documents(self) -> tuple[Floats, Floats, Ints]:
        """In true order, the weight of each document as the better and as the worse one of a pair,
        and the number of its level in the query."""
        levels, widths = self.levels, self.levels.widths
        first = np.repeat(levels.firsts[:-1], levels.sizes)
        number = np.repeat(np.arange(len(widths)) - first, widths)
        above = np.repeat(self.upper, widths) * levels.weight
        return above, np.repeat(self.lower, widths) * levels.weight, number.astype(np.int64)

    @cached_property
    def _algorithms(self) -> Ints:
        """The algorithm by which the kernel sums the pairs of each query."""
        levels = self.levels
        lengths = np.diff(levels.offsets)
        below = np.repeat(lengths, levels.sizes) - levels.end
        per_level = (self.upper > 0) * levels.widths * below
        pairs = levels.per_query(per_level.astype(np.float64))
        sorting = np.where(levels.sizes <= MAX_SWEPT_LEVELS, hinge.SWEEP, hinge.MERGE)
        many = pairs > SORTING_THRESHOLD * lengths
        algorithms: Ints = np.where(many, sorting, hinge.ENUMERATE).astype(np.int64)
        return algorithms

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        n, levels = self._longest(lo, hi), self.levels
        own = slice(int(levels.offsets[lo]), int(levels.offsets[hi]))
        ends = levels.offsets[lo : hi + 1]
        last_order = np.arange(own.start, own.stop) - np.repeat(ends[:-1], np.diff(ends))
        upper_weight, lower_weight, level_of = self._documents
        most_levels = int(levels.sizes[lo:hi].max(initial=0)) + 1
        z, grad_sorted = np.empty((2, n))
        ranks, run, workspace = np.empty((3, n), np.int64)
        words, word_workspace = np.empty((2, n), np.uint64)
        sums, starts = np.empty(most_levels), np.empty(most_levels, np.int64)
        bits, rows, method = z.view(np.uint64), np.empty((3, n)), self._algorithms[lo:hi]
        return hinge.pairwise_hinge.bind(
            scores, levels.order[own], levels.offsets[lo : hi + 1], levels.firsts[lo : hi + 1],
            levels.end, upper_weight[own], lower_weight[own], level_of[own], method, last_order, z,
            bits, grad_sorted, sums, rows, ranks, starts, run, words, word_workspace, workspace,
            values, grad,
        )  # fmt: skip

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        return zero_curvature(out)
