"""Losses of document pairs: logistic (RankNet), exponential (RankBoost), hinge (RankSVM)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.kernels.losses import hinge
from firstpage.kernels.losses import pairwise as kernel
from firstpage.losses.levels import Levels, levels
from firstpage.losses.loss import Loss, Run, Target, Term, Traits, flat, safe_inverse
from firstpage.types import Array, Floats, Ints

Pairs = Literal["all", "cross"]
MANY = 8  # pairs a document from which on a hinge sorts instead of going through them
FEW = 10  # levels up to which it keeps a sum for each


@dataclass(frozen=True)
class _Pairwise(Loss):
    """Shared by the pairwise losses: which pairs there are, and what each weighs.

    k        only pairs whose better document is among the first k places
    pairs    "all" of those, or "cross": better among the first k, worse not (T x F).  Without k,
             cross pairs are those between positive labels and the others
    average  the mean over a query's pairs instead of their sum
    """

    k: int | None = None
    pairs: Pairs = "all"
    average: bool = False

    def __post_init__(self) -> None:
        if self.pairs not in ("all", "cross"):
            raise DataError(f"pairs must be 'all' or 'cross'; got {self.pairs!r}.")

    def _weighed(
        self, truth: Truth, weights: Floats | None
    ) -> tuple[Levels, Floats, Floats, Floats]:
        """Levels, what their documents weigh as better and as worse ones, pairs a query."""
        k = self.k
        found = levels(truth, weights, k)
        if self.pairs == "cross" and (k is None or np.isin(found.share, (0.0, 1.0)).all()):
            # Who is in the top is certain: two levels say it all, and open the kernel's fast way.
            inside = truth.labels > 0 if k is None else found.spread(found.share) > 0
            found = levels(Truth(inside.astype(np.float64), truth.offsets, truth.queries), weights)
            k = None
        upper = found.share
        lower = np.ones_like(upper) if self.pairs == "all" or k is None else 1.0 - upper
        # Pairs of a query: each level's weight times all lower weight above which it stands.
        low = np.concatenate([[0.0], np.cumsum(lower * found.total)])
        under = np.repeat(low[found.firsts[1:]], found.sizes) - low[1:]
        upper = np.where(found.lowest, 0.0, upper)
        count = found.per_query(upper * found.total * np.maximum(under, 0.0))
        if self.average:
            upper = upper * np.repeat(safe_inverse(count), found.sizes)
            count = (count > 0).astype(np.float64)
        return found, upper, lower, count


@dataclass(frozen=True)
class PairwiseLogistic(_Pairwise):
    """log(1 + exp(s_v - s_u)) for u better than v: RankNet's cross entropy.

    O(pairs) a query: O(nk) with k, O(n^2) for a full order.
    """

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        return _Logistic(*self._weighed(truth, weights))


@dataclass(frozen=True)
class PairwiseExponential(_Pairwise):
    """exp(s_v - s_u) for u better than v: RankBoost's loss.  O(n) a query, for it factorizes."""

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        return _Exponential(*self._weighed(truth, weights))


@dataclass(frozen=True)
class PairwiseHinge(_Pairwise):
    """max(0, 1 - s_u + s_v) for u better than v: RankSVM's loss.

    O(pairs) a query where they are few, as with k; O(n log n) for a full order.
    """

    traits: ClassVar[Traits] = Traits(smooth=False)

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        return _Hinge(*self._weighed(truth, weights))


@dataclass(frozen=True, eq=False)
class _Weighed:
    levels: Levels
    upper: Floats
    lower: Floats
    pairs: Floats  # their weight, a query

    def stiffness(self) -> Floats:
        return 0.5 * self.pairs

    def terms(self) -> list[Term] | None:
        return None

    def _common(self, lo: int, hi: int) -> tuple[Array, ...]:
        a, b = int(self.levels.offsets[lo]), int(self.levels.offsets[hi])
        found = self.levels
        return (
            found.order[a:b], found.weight[a:b], found.offsets[lo : hi + 1],
            found.firsts[lo : hi + 1], found.end, self.upper, self.lower,
        )  # fmt: skip

    def _longest(self, lo: int, hi: int) -> int:
        return int(np.diff(self.levels.offsets[lo : hi + 1]).max(initial=0))


class _Logistic(_Weighed):
    def terms(self) -> list[Term]:
        found = self.levels
        weight = found.by_row(found.weight)
        rows = {
            "up": found.spread(self.upper) * weight, "low": found.spread(self.lower) * weight,
            "end": found.spread(found.end.astype(np.float64)),
        }  # fmt: skip
        return [Term("pairs", rows, np.ones(len(found.offsets) - 1))]

    @cached_property
    def _even(self) -> int:
        return int((self.levels.weight == 1.0).all() and (self.lower == 1.0).all())

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        spare = [np.empty(self._longest(lo, hi)) for _ in range(4)]
        return kernel.pairwise_logistic.bind(
            scores, *self._common(lo, hi), self._even, *spare, values, grad
        )

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        spare = [np.empty(self._longest(lo, hi)) for _ in range(3)]
        return kernel.pairwise_logistic_curvature.bind(scores, *self._common(lo, hi), *spare, out)


class _Exponential(_Weighed):
    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        return self._bind(lo, hi, scores, values, grad, np.empty(0))

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        return self._bind(lo, hi, scores, np.empty(hi - lo), np.empty(len(scores)), out)

    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curve: Floats
    ) -> Run:
        logs = np.empty(int(self.levels.sizes[lo:hi].max(initial=1)))
        z = np.empty(len(scores))
        return kernel.pairwise_exponential.bind(
            scores, *self._common(lo, hi), z, logs, values, grad, curve
        )


class _Hinge(_Weighed):
    @cached_property
    def _documents(self) -> tuple[Floats, Floats, Ints]:
        """In true order, what each weighs as the better and as the worse one, and its level."""
        found, widths = self.levels, self.levels.widths
        first = np.repeat(found.firsts[:-1], found.sizes)
        number = np.repeat(np.arange(len(widths)) - first, widths)
        above = np.repeat(self.upper, widths) * found.weight
        return above, np.repeat(self.lower, widths) * found.weight, number.astype(np.int64)

    @cached_property
    def _ways(self) -> Ints:
        """How to go through the pairs of each query."""
        found = self.levels
        lengths = np.diff(found.offsets)
        under = np.repeat(lengths, found.sizes) - found.end
        each = (self.upper > 0) * found.widths * under
        pairs = found.per_query(each.astype(np.float64))
        sorts = np.where(found.sizes <= FEW, hinge.SWEEP, hinge.MERGE)
        ways: Ints = np.where(pairs > MANY * lengths, sorts, hinge.ENUMERATE).astype(np.int64)
        return ways

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        n, found = self._longest(lo, hi), self.levels
        here = slice(int(found.offsets[lo]), int(found.offsets[hi]))
        ends = found.offsets[lo : hi + 1]
        last = np.arange(here.start, here.stop) - np.repeat(ends[:-1], np.diff(ends))
        above, below, number = (each[here] for each in self._documents)
        levels = int(found.sizes[lo:hi].max(initial=0)) + 1
        z = np.empty(n)
        ranks, run, spare = (np.empty(n, np.int64) for _ in range(3))
        words, spare_words = np.empty(n, np.uint64), np.empty(n, np.uint64)
        return hinge.pairwise_hinge.bind(
            scores, found.order[here], ends, found.firsts[lo : hi + 1], found.end, above, below,
            number, self._ways[lo:hi], last, z, z.view(np.uint64), np.empty(n), np.empty(levels),
            np.empty((3, n)), ranks, np.empty(levels, np.int64), run, words, spare_words, spare,
            values, grad,
        )  # fmt: skip

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        return flat(out)
