"""Structural hinges: the most violated ranking of each query, found exactly inside the loss."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.data.truth import Truth
from firstpage.errors import DataError, FirstpageWarning
from firstpage.kernels.losses import structural as kernel
from firstpage.kernels.losses.structural import average_precision_hinge
from firstpage.losses.delta import Delta, delta
from firstpage.losses.levels import Levels, expected_places, levels, query_sums
from firstpage.losses.loss import Loss, Run, Target, Traits, flat, safe_inverse
from firstpage.types import Bools, Floats, Ints, Words

Scaling = Literal["margin", "slack"]
Reference = Literal["resort", "mean", "fixed"]
Search = Literal["chords", "golden"]


def whole_top(truth: Truth, k: int) -> Floats:
    """Labels of the top k as k, k-1, .. 1 and 0 below; equal labels stay equal.

    A level that does not fit into the first k places whole is left out, unless it is the first:
    who of its documents is in the top nobody knows, and a hinge cannot take a chance for that.
    """
    found = levels(truth, None, k)
    whole = found.share >= 1.0
    whole[found.firsts[:-1][found.sizes > 0]] = True
    places: Floats = expected_places(found, k)
    return np.where(found.spread(whole.astype(np.float64)) > 0, places, 0.0)


def _unweighted(weights: Floats | None, what: str) -> None:
    if weights is not None and not (weights == 1.0).all():
        raise DataError(f"{what} knows no weights of documents inside a query; repeat them.")


@dataclass(frozen=True)
class AveragePrecisionHinge(Loss):
    """max over rankings of 1 - AP(ranking) + its score - that of the true one: SVM-MAP's loss.

    Labels above 0 are relevant; with k, the first k places.  With `cuts`, the order inside the top
    k: the mean over all boundaries between its levels, relevant above and not below (FocusedSVM).
    The score of a ranking is the mean over relevant i and others j of +-(s_i - s_j).
    """

    k: int | None = None
    cuts: bool = False
    traits: ClassVar[Traits] = Traits(smooth=False)

    def __post_init__(self) -> None:
        if self.cuts and self.k is None:
            raise DataError("cuts order the top k: k is missing.")

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        _unweighted(weights, "average precision")
        labels = truth.labels if self.k is None else whole_top(truth, self.k)
        if not self.cuts:
            labels = (labels > 0).astype(np.float64)
        found = levels(Truth(labels, truth.offsets, truth.queries))
        if not self.cuts:
            return _Cuts(found, np.where(found.sizes == 2, 2, 0))
        lowest = np.minimum.reduceat(np.append(labels, np.inf), truth.offsets[:-1])
        inside = found.sizes - (lowest == 0)  # the level of 0 is the rest
        return _Cuts(found, np.where(truth.lengths > 0, inside, 0).astype(np.int64))


@dataclass(frozen=True, eq=False)
class _Cuts:
    levels: Levels
    counts: Ints  # levels that take part, a query

    def stiffness(self) -> Floats:
        return (self.counts > 1).astype(np.float64)

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        found = self.levels
        a, b = int(found.offsets[lo]), int(found.offsets[hi])
        n = int(np.diff(found.offsets[lo : hi + 1]).max(initial=0))
        harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 1))])
        z = np.empty(n)
        floats = [np.empty(n + 2), np.empty(n), np.empty(n)]  # tail, others, slope
        stack = np.empty(4 * (n + 2).bit_length() + 16, np.int64)
        return average_precision_hinge.bind(
            scores, found.order[a:b], found.offsets[lo : hi + 1], found.firsts[lo : hi + 1],
            self.counts[lo:hi], found.end, harmonic, z, z.view(np.uint64), *floats,
            np.empty(n, np.int64), np.empty(n, np.int64), stack, np.empty(n, np.int64),
            *_sorting(n), values, grad,
        )  # fmt: skip

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        return flat(out)


def _sorting(n: int) -> tuple[Words, Words, Ints]:
    return np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.int64)


@dataclass(frozen=True)
class StructuralHinge(Loss):
    """Over rankings, the greatest Delta + score - true score (margin scaling: TopMargin), or
    Delta * (1 + score - true score) (slack scaling: TopSlack).

    delta      "NDCG" or "Precision", with a cut-off as in "NDCG@10"; Delta = 1 - that measure.
               NDCG counts all places if none is given, Precision 10.  "NDCG(measure.json)@10" has
               the gains and discounts of that file; discounts that rise are made to fall
    reference  which of the true rankings of equal labels is meant: the one that scores best
               ("resort"), their "mean", or the "fixed" one in the order of the data
    search     how slack scaling looks for the ranking: by "chords", then branch and bound, or by
               the paper's "golden" section
    k          labels are the top-k map k, k-1, .. 1, 0, .. 0
    within     only the top k takes part (FocusedSVM's list loss)
    """

    delta: str = "NDCG"
    scaling: Scaling = "margin"
    reference: Reference = "resort"
    search: Search = "chords"
    k: int | None = None
    within: bool = False
    read: Delta = field(init=False, repr=False)  # a file is read once, and may change later
    traits: ClassVar[Traits] = Traits(smooth=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "read", delta(self.delta))
        for name, known in (
            ("scaling", ("margin", "slack")), ("reference", ("resort", "mean", "fixed")),
            ("search", ("chords", "golden")),
        ):  # fmt: skip
            if getattr(self, name) not in known:
                text = " or ".join(map(repr, known))
                raise DataError(f"{name} must be {text}; got {getattr(self, name)!r}.")
        if self.within and self.k is None:
            raise DataError("a loss within the top k needs k.")

    def target(self, truth: Truth, weights: Floats | None = None) -> Structural:
        _unweighted(weights, "a structural hinge")
        labels = truth.labels if self.k is None else whole_top(truth, self.k)
        labels = self.read.classes(labels, truth.offsets)
        if self.read.note:
            warnings.warn(self.read.note, FirstpageWarning, stacklevel=2)
        found = levels(Truth(labels, truth.offsets, truth.queries))
        rows = np.repeat(truth.offsets[:-1], truth.lengths) + found.order
        inside = labels[rows] > 0 if self.within else np.ones(len(rows), bool)
        return Structural(self, found, labels[rows][inside], found.order[inside], inside)


class Structural:
    """A truth as a structural hinge reads it: gains, discounts, and the true ranking.

    `bounds` are, after a run, at least the true value of every query: the search of slack scaling
    may miss the most violated ranking.
    """

    def __init__(
        self, loss: StructuralHinge, found: Levels, labels: Floats, docs: Any, inside: Bools
    ) -> None:
        self._loss, self._levels, self._docs = loss, found, docs
        counts = query_sums(inside.astype(np.float64), found.offsets).astype(np.int64)
        self._starts = offsets_from_lengths(counts)
        self._a = loss.read.places(max(int(counts.max(initial=0)), 1))
        place, depth = np.arange(len(labels)) - np.repeat(self._starts[:-1], counts), len(self._a)
        self._own: Floats = np.where(place < depth, self._a[np.minimum(place, depth - 1)], 0.0)
        self._gains = self._normal(loss.read.worth(labels, self._starts), counts)
        if loss.reference == "mean":
            self._average(labels)
        self._frozen = loss.reference != "resort"
        self.bounds = np.zeros(len(counts))

    def _normal(self, gain: Floats, counts: Ints) -> Floats:
        """Gains of which the ideal ranking collects 1."""
        ideal = query_sums(self._own * gain, self._starts)  # documents stand by falling label
        found: Floats = gain * np.repeat(safe_inverse(ideal), counts)
        return found

    def _average(self, labels: Floats) -> None:
        """Documents of one label share their discounts."""
        new = np.ones(len(labels), bool)
        new[1:] = labels[1:] != labels[:-1]
        new[self._starts[:-1][np.diff(self._starts) > 0]] = True
        block = np.cumsum(new) - 1
        self._own = (np.bincount(block, self._own) / np.bincount(block))[block]

    def freeze(self, scores: Floats) -> None:
        """From now on the true ranking is the one that these scores like best."""
        self._bind_resort(0, len(self._starts) - 1, np.ascontiguousarray(scores, np.float64))()
        self._frozen = True

    def thaw(self) -> None:
        """As before any freezing."""
        self._frozen = self._loss.reference != "resort"

    def stiffness(self) -> Floats:
        return np.ones(len(self._starts) - 1)

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        n, here = self._room(lo, hi)
        z, b, key = np.empty(n), np.empty(n), np.empty(n)
        slack = kernel.CHORDS if self._loss.search == "chords" else kernel.GOLDEN_SECTION
        way = kernel.MARGIN if self._loss.scaling == "margin" else slack
        run = kernel.structural_hinge.bind(
            scores, self._docs[here], self._starts[lo : hi + 1],
            self._levels.offsets[lo : hi + 1], self._gains[here], self._own[here], self._a, way,
            z, b, key, key.view(np.uint64), np.empty(n, np.int64), np.empty(n, np.int64),
            *_sorting(n), np.empty(2), np.empty(4), np.empty((5, n + 1)),
            np.empty((4, n + 1), np.int64), values, self.bounds[lo:hi], grad,
        )  # fmt: skip
        again = self._bind_resort(lo, hi, scores)

        def either() -> None:
            if not self._frozen:
                again()
            run()

        return either

    def _room(self, lo: int, hi: int) -> tuple[int, slice]:
        longest = int(np.diff(self._starts[lo : hi + 1]).max(initial=0))
        return longest, slice(int(self._starts[lo]), int(self._starts[hi]))

    def _bind_resort(self, lo: int, hi: int, scores: Floats) -> Run:
        n, here = self._room(lo, hi)
        z = np.empty(n)
        return kernel.resort.bind(
            scores, self._docs[here], self._starts[lo : hi + 1],
            self._levels.offsets[lo : hi + 1], self._levels.firsts[lo : hi + 1], self._levels.end,
            self._a, z, z.view(np.uint64), np.empty(n, np.int64), *_sorting(n), self._own[here],
        )  # fmt: skip

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        return flat(out)
