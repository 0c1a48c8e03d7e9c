"""Structural hinges: the most violated ranking of each query, found exactly inside the loss."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.data.preferences.utility import MeasureSource, refers_to_file
from firstpage.data.truth import Truth
from firstpage.errors import DataError, FirstpageWarning
from firstpage.kernels.losses import structural as kernel
from firstpage.kernels.losses.structural import average_precision_hinge
from firstpage.losses.levels import Levels, expected_places, levels, query_sums
from firstpage.losses.loss import Loss, Run, Target, Term, Traits, flat, safe_inverse
from firstpage.types import Array, Bools, Floats, Ints, Words

PLACES = 10  # of Precision, where the text does not say
FALL = 20.0  # labels so far below the best gain a millionth: their losses would be rounding
FORM = re.compile(
    r"\s*(ndcg|precision|p)\s*(?:\((.*)\))?\s*(?:@\s*([1-9]\d{0,8}))?\s*", re.DOTALL | re.IGNORECASE
)
MENDED = (
    "{}: its discounts rise or go below 0, and the most violated ranking can only be found where "
    "they fall. The nearest that fall are used: {}."
)


@dataclass(frozen=True)
class Delta:
    """A text such as "NDCG@10" or "NDCG(measure.json)@10", read.

    cutoff     None: all places
    grades, gains, discounts   of a measure file; the last falling, and above 0
    note       what was done to the discounts, if anything
    """

    kind: Literal["ndcg", "precision", "file"]
    cutoff: int | None
    grades: tuple[int, ...] = ()
    gains: tuple[float, ...] = ()
    discounts: tuple[float, ...] = ()
    note: str = ""

    def places(self, longest: int) -> Floats:
        """The discounts of lists of up to so many documents."""
        if self.kind == "file":
            return np.array(self.discounts[:longest])
        depth = longest if self.cutoff is None else min(self.cutoff, longest)
        if self.kind == "ndcg":
            found: Floats = 1.0 / np.log2(np.arange(2.0, depth + 2.0))
            return found
        return np.full(depth, 1.0 / (self.cutoff or PLACES))

    def classes(self, labels: Floats, offsets: Ints) -> Floats:
        """Labels, equal where the measure sees no difference; of a file, their gains."""
        if self.kind == "precision":
            return (labels > 0).astype(np.float64)
        if self.kind == "file":
            labels = self._gains(labels)
        top = np.repeat(_greatest(labels, offsets), np.diff(offsets))
        least = top * 2.0**-FALL if self.kind == "file" else np.maximum(top - FALL, 0.0)
        return np.where(labels > least, labels, 0.0)

    def worth(self, classes: Floats, starts: Ints) -> Floats:
        """Gains of what `classes` gave, for groups from one start to the next."""
        if self.kind != "ndcg":
            return classes
        top = np.repeat(_greatest(classes, starts), np.diff(starts))
        found: Floats = np.exp2(classes - top) - np.exp2(-top)
        return found

    def _gains(self, labels: Floats) -> Floats:
        grades = np.array(self.grades, np.float64)
        at = np.minimum(np.searchsorted(grades, labels), len(grades) - 1)
        off = (labels >= grades[0]) & (grades[at] != labels)
        if off.any():
            raise DataError(
                f"the measure file has gains of the grades {', '.join(map(str, self.grades))}, and "
                f"the data hold a label {labels[off][0]:g}."
            )
        return np.where(labels < grades[0], 0.0, np.array(self.gains)[at])


def delta(text: str) -> Delta:
    """What a text names; a measure file is read here."""
    match = FORM.fullmatch(text) if isinstance(text, str) else None
    inside = (match[2] or "").strip() if match else ""
    if match is None or (inside and (match[1].lower() != "ndcg" or not refers_to_file(inside))):
        raise DataError(
            "delta must be NDCG or Precision, as in 'NDCG@10', or of a measure file, as in "
            f"'NDCG(measure.json)@10'; got {text!r}."
        )
    cutoff = int(match[3]) if match[3] else None
    if match[1].lower() != "ndcg":
        return Delta("precision", cutoff or PLACES)
    return _of_file(MeasureSource.parse(inside), cutoff) if inside else Delta("ndcg", cutoff)


def _of_file(source: MeasureSource, cutoff: int | None) -> Delta:
    if source.form == "weights":
        raise DataError("delta needs gains and discounts: form=gains, or no form.")
    utility = source.read()
    if cutoff is not None and cutoff > utility.n_positions:
        raise DataError(
            f"the cut-off of delta is {cutoff}, and {source.file} has discounts of "
            f"{utility.n_positions} places; choose one from 1 to {utility.n_positions}."
        )
    gains, given = utility.gains - utility.gains[0], utility.discounts[:cutoff]
    if (gains < 0).any() or not gains.any():
        raise DataError(f"{source.file}: no gain may be below that of the worst grade, nor all 0.")
    falling = _falling(given)
    if not falling[0] > 0:
        raise DataError(f"{source.file}: the first places have no discount above 0 to train for.")
    note = ""
    if not np.array_equal(falling, given):
        note = MENDED.format(source.file, ", ".join(f"{c:.3g}" for c in falling))
    kept = falling[falling > 0]  # places without a discount do not count
    return Delta("file", cutoff, utility.grades, tuple(gains.tolist()), tuple(kept.tolist()), note)


def _falling(values: Floats) -> Floats:
    """The nearest numbers, by squares, that never rise and are never below 0."""
    if (np.diff(values) <= 0).all() and values[-1] >= 0:
        return values
    from scipy.optimize import isotonic_regression  # slow to load, and seldom needed

    found: Floats = np.maximum(isotonic_regression(values, increasing=False).x, 0.0)
    return found


def _greatest(values: Floats, starts: Ints) -> Floats:
    """Of each group; 0 for groups without members."""
    out = np.zeros(len(starts) - 1)
    filled = np.diff(starts) > 0
    if filled.any():
        out[filled] = np.maximum.reduceat(values, starts[:-1][filled])
    return out


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

    def terms(self) -> list[Term] | None:
        return None

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
        self, loss: StructuralHinge, found: Levels, labels: Floats, docs: Array, inside: Bools
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

    def terms(self) -> list[Term] | None:
        return None

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
