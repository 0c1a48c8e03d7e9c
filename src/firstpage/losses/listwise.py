"""Losses of whole lists: Plackett-Luce (ListMLE), cross entropy (ListNet), cosine, squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.kernels.losses import listwise as kernel
from firstpage.losses.levels import Levels, expected_places, levels, query_sums
from firstpage.losses.loss import Loss, Run, Target, Term, Traits, safe_inverse
from firstpage.types import Array, Floats, Ints


@dataclass(frozen=True)
class PlackettLuce(Loss):
    """-log P(true order): each place is won among all documents not yet placed (ListMLE).

    Read as deep as the truth is ordered, or `k` places deep: a full order gives ListMLE, a top-k
    truth top-k ListMLE.  Equal labels compete for their places together; the lowest label, which
    is preferred to nothing, adds nothing.  `average` takes the mean over the places.  O(n).
    """

    k: int | None = None
    average: bool = False

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        found = levels(truth, weights, self.k)
        upper = np.where(found.lowest, 0.0, found.share)
        if self.average:
            places = found.per_query(upper * found.total)
            upper = upper * np.repeat(safe_inverse(places), found.sizes)
        return _PlackettLuce(found, upper, upper * found.total)


@dataclass(frozen=True, eq=False)
class _PlackettLuce:
    levels: Levels
    upper: Floats
    mass: Floats

    def stiffness(self) -> Floats:
        return self.levels.per_query(self.mass)

    def terms(self) -> list[Term]:
        found = self.levels
        weight, pull = found.by_row(found.weight), found.spread(self.upper)
        rows = {"weight": weight, "pull": pull * weight, "mass": found.at_starts(self.mass)}
        return [Term("plackett_luce", rows, np.ones(len(found.offsets) - 1))]

    def _common(self, lo: int, hi: int) -> list[Array]:
        found = self.levels
        a, b = int(found.offsets[lo]), int(found.offsets[hi])
        return [
            found.order[a:b], found.weight[a:b], found.offsets[lo : hi + 1],
            found.firsts[lo : hi + 1], found.end,
        ]  # fmt: skip

    def _spare(self, lo: int, hi: int) -> list[Floats]:
        rows = int(self.levels.offsets[hi] - self.levels.offsets[lo])
        return [np.empty(rows), np.empty(int(self.levels.sizes[lo:hi].max(initial=1)))]

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        return kernel.plackett_luce.bind(
            scores, *self._common(lo, hi), self.upper, self.mass, *self._spare(lo, hi), values, grad
        )

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        return kernel.plackett_luce_curvature.bind(
            scores, *self._common(lo, hi), self.mass, *self._spare(lo, hi), out
        )


def relevance(truth: Truth, weights: Floats | None, k: int | None) -> Floats:
    """The numbers that ListNet and RankCosine compare scores with: labels, or top-k labels."""
    return truth.labels if k is None else expected_places(levels(truth, weights, k), k)


def softmax(values: Floats, weights: Floats, offsets: Ints) -> Floats:
    """weight * exp(value), divided by its sum over the query; 0 where nothing weighs."""
    lengths = np.diff(offsets)
    heavy = np.where(weights > 0, values, -np.inf)
    tops = np.zeros(len(lengths))
    tops[lengths > 0] = np.maximum.reduceat(heavy, offsets[:-1][lengths > 0])
    top = np.repeat(np.where(np.isfinite(tops), tops, 0.0), lengths)
    out = weights * np.exp(np.where(weights > 0, values - top, 0.0))
    found: Floats = out * np.repeat(safe_inverse(query_sums(out, offsets)), lengths)
    return found


@dataclass(frozen=True)
class SoftmaxCrossEntropy(Loss):
    """- sum of softmax(labels / temperature) * log softmax(scores): ListNet's top-one form.

    With `k`, labels are the top-k map k, k-1, .. 1, 0, .. 0 of the truth.  O(n).
    """

    k: int | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise DataError(f"temperature must be above 0; got {self.temperature}.")

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        psi = relevance(truth, weights, self.k) / self.temperature
        weight = np.ones(len(psi)) if weights is None else weights.astype(np.float64)
        return TopOne(psi, weight, truth.offsets, np.ones(len(truth)))


class TopOne:
    """Softmax cross entropy toward `psi`, among documents of positive weight."""

    def __init__(self, psi: Floats, weight: Floats, offsets: Ints, factor: Floats) -> None:
        self.weight, self.offsets, self.factor = weight, offsets, factor
        self.share = softmax(psi, weight, offsets)

    def stiffness(self) -> Floats:
        return self.factor

    def terms(self) -> list[Term]:
        return [Term("softmax", {"weight": self.weight, "share": self.share}, self.factor)]

    def entropy(self) -> Floats:
        """The least value that scores can reach, a query (before the factor)."""
        ones = np.ones_like(self.share)
        copies = np.divide(self.share, self.weight, out=ones, where=self.share > 0)
        return self._sums(-self.share * np.log(copies))

    def at_zero(self) -> Floats:
        """The value where all scores are equal."""
        total = self._sums(self.weight)
        return np.log(total, out=np.zeros_like(total), where=total > 0)

    def _sums(self, values: Floats) -> Floats:
        return query_sums(values, self.offsets)

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        a, b = int(self.offsets[lo]), int(self.offsets[hi])
        return kernel.softmax_cross_entropy.bind(
            scores, self.share[a:b], self.weight[a:b], self.offsets[lo : hi + 1],
            self.factor[lo:hi], values, grad,
        )  # fmt: skip

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        a, b = int(self.offsets[lo]), int(self.offsets[hi])
        return kernel.softmax_curvature.bind(
            scores, self.weight[a:b], self.offsets[lo : hi + 1], self.factor[lo:hi], out
        )


@dataclass(frozen=True)
class Cosine(Loss):
    """(1 - cosine of scores and labels) / 2: RankCosine.  In [0, 1]; its scale is free.

    With `k`, labels are the top-k map as in ListNet.  Adding a number to all scores does change
    it: features should be centered in each query (`normalize="standard"`).  Undefined where all
    scores are 0: lengths below `floor` count as that.
    """

    k: int | None = None
    floor: float = 1e-6
    traits: ClassVar[Traits] = Traits(convex=False)

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        psi = relevance(truth, weights, self.k)
        weight = np.ones(len(psi)) if weights is None else weights.astype(np.float64)
        lengths = np.diff(truth.offsets)
        length = np.sqrt(query_sums(weight * psi**2, truth.offsets))
        unit = psi * np.repeat(safe_inverse(length), lengths)
        return _Cosine(unit, weight, truth.offsets, self.floor)


@dataclass(frozen=True, eq=False)
class _Cosine:
    unit: Floats
    weight: Floats
    offsets: Ints
    floor: float

    def stiffness(self) -> Floats:
        return np.ones(len(self.offsets) - 1)

    def terms(self) -> list[Term]:
        floor = np.full(len(self.offsets) - 1, self.floor)
        return [Term("cosine", {"weight": self.weight, "unit": self.unit}, floor)]

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        return self._bind(lo, hi, scores, values, grad, np.empty(hi - lo))

    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, lengths: Floats
    ) -> Run:
        a, b = int(self.offsets[lo]), int(self.offsets[hi])
        return kernel.cosine.bind(
            scores, self.unit[a:b], self.weight[a:b], self.offsets[lo : hi + 1], self.floor,
            values, grad, lengths,
        )  # fmt: skip

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        """The loss is not convex; by one score it bends by at most 0.58 / length^2."""
        lengths = np.empty(hi - lo)
        run = self._bind(lo, hi, scores, np.empty(hi - lo), np.empty(len(scores)), lengths)
        counts = np.diff(self.offsets[lo : hi + 1])
        a, b = int(self.offsets[lo]), int(self.offsets[hi])

        def curvature() -> None:
            run()
            out[:] = self.weight[a:b] * np.repeat(0.58 / lengths**2, counts)

        return curvature


@dataclass(frozen=True)
class SquaredError(Loss):
    """Half the squared difference of score and label; its mean over the query's documents.

    With `k`, labels are the top-k map k, k-1, .. 1, 0, .. 0.  `average=False` sums instead.
    """

    k: int | None = None
    average: bool = True
    traits: ClassVar[Traits] = Traits(quadratic=True)

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        weight = np.ones(len(truth.labels)) if weights is None else weights.astype(np.float64)
        factor = (
            safe_inverse(query_sums(weight, truth.offsets)) if self.average else np.ones(len(truth))
        )
        return _SquaredError(relevance(truth, weights, self.k), weight, truth.offsets, factor)


@dataclass(frozen=True, eq=False)
class _SquaredError:
    labels: Floats
    weight: Floats
    offsets: Ints
    factor: Floats

    def stiffness(self) -> Floats:
        return self.factor * query_sums(self.weight, self.offsets)

    def terms(self) -> list[Term]:
        return [Term("squared", {"weight": self.weight, "label": self.labels}, self.factor)]

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        a, b = int(self.offsets[lo]), int(self.offsets[hi])
        return kernel.squared_error.bind(
            scores, self.labels[a:b], self.weight[a:b], self.offsets[lo : hi + 1],
            self.factor[lo:hi], values, grad,
        )  # fmt: skip

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        a, b = int(self.offsets[lo]), int(self.offsets[hi])
        counts = np.diff(self.offsets[lo : hi + 1])
        curve = self.weight[a:b] * np.repeat(self.factor[lo:hi], counts)
        return lambda: out.__setitem__(slice(None), curve)
