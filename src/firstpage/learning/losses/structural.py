"""Structural hinges: the loss computes the most violated ranking of each query exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from firstpage.core import (
    Array,
    Bools,
    BoundKernel,
    DataError,
    Floats,
    Ints,
    warn,
)
from firstpage.core.kernels.losses import average_precision_hinge
from firstpage.core.kernels.losses import structural as kernel
from firstpage.data import Truth, offsets_from_lengths
from firstpage.data.preferences import MeasureSource, refers_to_file
from firstpage.learning.losses.base import (
    Loss,
    LossTarget,
    LossTerm,
    Traits,
    safe_inverse,
    zero_curvature,
)
from firstpage.learning.losses.levels import LabelLevels, label_levels, query_sums, top_k_labels

DEFAULT_PRECISION_CUTOFF = 10
MAX_LABEL_RANGE = 20.0  # labels this far below the best gain a millionth: their loss is rounding
DELTA_PATTERN = re.compile(
    r"\s*(ndcg|precision|p)\s*(?:\((.*)\))?\s*(?:@\s*([1-9]\d{0,8}))?\s*", re.DOTALL | re.IGNORECASE
)
ADJUSTED_DISCOUNTS = (
    "{}: its discounts increase or are below 0, and the most violated ranking can only be found "
    "for discounts that never increase. The nearest such discounts are used: {}."
)


@dataclass(frozen=True)
class Delta:
    """A parsed measure such as "NDCG@10" or "NDCG(measure.json)@10"."""

    kind: Literal["ndcg", "precision", "file"]
    cutoff: int | None  # None: all ranks
    grades: tuple[int, ...] = ()  # of a measure file
    gains: tuple[float, ...] = ()  # of a measure file, one per grade
    discounts: tuple[float, ...] = ()  # of a measure file: above 0, never increasing
    note: str = ""  # how the discounts of the file were changed, if they were

    def discount_table(self, longest: int) -> Floats:
        """Return the discounts of lists of up to this many documents."""
        if self.kind == "file":
            return np.array(self.discounts[:longest])
        depth = longest if self.cutoff is None else min(self.cutoff, longest)
        if self.kind == "ndcg":
            discounts: Floats = 1.0 / np.log2(np.arange(2.0, depth + 2.0))
            return discounts
        return np.full(depth, 1.0 / (self.cutoff or DEFAULT_PRECISION_CUTOFF))

    def collapse_labels(self, labels: Floats, offsets: Ints) -> Floats:
        """Return labels that are equal where the measure does not distinguish them; the gains of
        the labels for a measure file."""
        if self.kind == "precision":
            return (labels > 0).astype(np.float64)
        if self.kind == "file":
            labels = self._file_gains(labels)
        top = np.repeat(_group_maxima(labels, offsets), np.diff(offsets))
        if self.kind == "file":
            threshold = top * 2.0**-MAX_LABEL_RANGE
        else:
            threshold = np.maximum(top - MAX_LABEL_RANGE, 0.0)
        return np.where(labels > threshold, labels, 0.0)

    def gains_of(self, labels: Floats, starts: Ints) -> Floats:
        """Return the gains of collapsed labels, for groups from one start to the next."""
        if self.kind != "ndcg":
            return labels
        top = np.repeat(_group_maxima(labels, starts), np.diff(starts))
        gains: Floats = np.exp2(labels - top) - np.exp2(-top)
        return gains

    def _file_gains(self, labels: Floats) -> Floats:
        grades = np.array(self.grades, np.float64)
        at = np.minimum(np.searchsorted(grades, labels), len(grades) - 1)
        unknown = (labels >= grades[0]) & (grades[at] != labels)
        if unknown.any():
            raise DataError(
                f"the measure file has gains of the grades {', '.join(map(str, self.grades))}, and "
                f"the data have a label {labels[unknown][0]:g}."
            )
        return np.where(labels < grades[0], 0.0, np.array(self.gains)[at])


def parse_delta(text: str) -> Delta:
    """Parse the name of a measure; a measure file is read here."""
    match = DELTA_PATTERN.fullmatch(text) if isinstance(text, str) else None
    argument = (match[2] or "").strip() if match else ""
    if match is None or (argument and (match[1].lower() != "ndcg" or not refers_to_file(argument))):
        raise DataError(
            "delta must be NDCG or Precision, as in 'NDCG@10', or of a measure file, as in "
            f"'NDCG(measure.json)@10'; got {text!r}."
        )
    cutoff = int(match[3]) if match[3] else None
    if match[1].lower() != "ndcg":
        return Delta("precision", cutoff or DEFAULT_PRECISION_CUTOFF)
    return _read_delta(MeasureSource.parse(argument), cutoff) if argument else Delta("ndcg", cutoff)


def _read_delta(source: MeasureSource, cutoff: int | None) -> Delta:
    """Read the gains and discounts of a measure file."""
    if source.form == "weights":
        raise DataError("delta needs gains and discounts: use form=gains, or no form.")
    utility = source.read()
    if cutoff is not None and cutoff > utility.n_positions:
        raise DataError(
            f"the cutoff of delta is {cutoff}, and {source.file} has discounts of "
            f"{utility.n_positions} ranks; choose a cutoff from 1 to {utility.n_positions}."
        )
    gains, discounts = utility.gains - utility.gains[0], utility.discounts[:cutoff]
    if (gains < 0).any() or not gains.any():
        raise DataError(
            f"{source.file}: no gain may be below that of the worst grade, and not all may be 0."
        )
    decreasing = _nearest_decreasing(discounts)
    if not decreasing[0] > 0:
        raise DataError(f"{source.file}: the first ranks have no discount above 0 to train for.")
    note = ""
    if not np.array_equal(decreasing, discounts):
        note = ADJUSTED_DISCOUNTS.format(source.file, ", ".join(f"{c:.3g}" for c in decreasing))
    positive = decreasing[decreasing > 0]  # ranks without a discount do not count
    return Delta(
        "file", cutoff, utility.grades, tuple(gains.tolist()), tuple(positive.tolist()), note
    )


def _nearest_decreasing(values: Floats) -> Floats:
    """Return the nearest numbers in squared error that never increase and are at least 0."""
    if (np.diff(values) <= 0).all() and values[-1] >= 0:
        return values
    from scipy.optimize import isotonic_regression  # slow to import, and rarely needed

    nearest: Floats = np.maximum(isotonic_regression(values, increasing=False).x, 0.0)
    return nearest


def _group_maxima(values: Floats, starts: Ints) -> Floats:
    """Return the maximum of each group; 0 for empty groups."""
    out = np.zeros(len(starts) - 1)
    filled = np.diff(starts) > 0
    if filled.any():
        out[filled] = np.maximum.reduceat(values, starts[:-1][filled])
    return out


Rescaling = Literal["margin", "slack"]
Reference = Literal["resort", "mean", "fixed"]


def certain_top_k_labels(truth: Truth, k: int) -> Floats:
    """Return the top-k labels k, k-1, .., 1, and 0 below; equal labels stay equal.

    A level that crosses rank k is left out, unless it is the first: which of its documents are in
    the top k is undecided, and a structural hinge has no expectation over ties.
    """
    levels = label_levels(truth, None, k)
    inside = levels.top_probability >= 1.0
    inside[levels.firsts[:-1][levels.sizes > 0]] = True
    labels: Floats = top_k_labels(truth, None, k)
    return np.where(levels.per_document(inside.astype(np.float64)) > 0, labels, 0.0)


def _refuse_weights(weights: Floats | None, name: str) -> None:
    if weights is not None and not (weights == 1.0).all():
        raise DataError(
            f"{name} takes no weights of documents inside a query; repeat the documents instead."
        )


@dataclass(frozen=True)
class AveragePrecisionHinge(Loss):
    """Structural hinge of average precision, the loss of SVM-MAP.

    The maximum over rankings of 1 - AP(ranking) + its score - the score of the true ranking.  The
    score of a ranking is the mean over relevant i and irrelevant j of s_i - s_j, with a minus where
    j is ranked above i.

    Parameters
    ----------
    k : int, optional
        The first k documents of the truth are relevant; None: those of a label above 0.
    cuts : bool, default False
        Take the order inside the top k: the mean over all boundaries between its levels, with the
        documents above relevant and those below not (FocusedSVM).

    Raises
    ------
    DataError
        If `cuts` is set without `k`; on use, if documents have weights other than 1.

    References
    ----------
    Yue, Finley, Radlinski and Joachims (2007), A support vector method for optimizing average
    precision.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [1, 0, 0], [1, 1, 1])
    >>> values, _ = fp.extend.loss("AveragePrecisionHinge").value_grad(np.zeros(3), data.truth)
    >>> float(values[0].round(3))  # the relevant document last: 1 - 1/3
    0.667
    """

    k: int | None = None
    cuts: bool = False
    traits: ClassVar[Traits] = Traits(smooth=False)

    def __post_init__(self) -> None:
        if self.cuts and self.k is None:
            raise DataError("cuts=True orders the top k, and k is missing; set k.")

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        _refuse_weights(weights, "average precision")
        labels = truth.labels if self.k is None else certain_top_k_labels(truth, self.k)
        if not self.cuts:
            labels = (labels > 0).astype(np.float64)
        levels = label_levels(Truth(labels, truth.offsets, truth.queries))
        if not self.cuts:
            return _AveragePrecisionTarget(levels, np.where(levels.sizes == 2, 2, 0))
        lowest = np.minimum.reduceat(np.append(labels, np.inf), truth.offsets[:-1])
        inside = levels.sizes - (lowest == 0)  # the level of label 0 is the rest
        counts = np.where(truth.lengths > 0, inside, 0).astype(np.int64)
        return _AveragePrecisionTarget(levels, counts)


@dataclass(frozen=True, eq=False)
class _AveragePrecisionTarget(LossTarget):
    levels: LabelLevels
    counts: Ints  # levels that take part, per query

    def hessian_scale(self) -> Floats:
        return (self.counts > 1).astype(np.float64)

    def terms(self) -> list[LossTerm] | None:
        return None

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        levels = self.levels
        order, counts = levels.order[levels.offsets[lo] : levels.offsets[hi]], self.counts[lo:hi]
        n = int(np.diff(levels.offsets[lo : hi + 1]).max(initial=0))
        harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 1))])
        z, nonrelevant, grad_sorted = np.empty((3, n))
        items, docs, position, workspace = np.empty((4, n), np.int64)
        words, word_workspace = np.empty((2, n), np.uint64)
        tail, stack = np.empty(n + 2), np.empty(4 * (n + 2).bit_length() + 16, np.int64)
        bits = z.view(np.uint64)
        return average_precision_hinge.bind(
            scores, order, levels.offsets[lo : hi + 1], levels.firsts[lo : hi + 1], counts,
            levels.end, harmonic, z, bits, tail, nonrelevant, grad_sorted, items, docs, stack,
            position, words, word_workspace, workspace, values, grad,
        )  # fmt: skip

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        return zero_curvature(out)


@dataclass(frozen=True)
class StructuralHinge(Loss):
    """Structural hinge of NDCG or precision, the loss of TopMargin and TopSlack.

    The maximum over rankings of Delta + score - true score (margin rescaling, TopMargin), or of
    Delta * (1 + score - true score) (slack rescaling, TopSlack), where Delta is 1 minus the
    measure of the ranking and its score sums the discounted scores of its documents.

    Parameters
    ----------
    delta : str, default "NDCG"
        The measure: "NDCG" or "Precision", with a cutoff as in "NDCG@10".  Without a cutoff NDCG
        counts all ranks and Precision 10.  "NDCG(measure.json)@10" has the gains and discounts of
        a measure file; discounts that increase are replaced by the nearest that do not.
    scaling : {"margin", "slack"}, default "margin"
        What Delta rescales.
    reference : {"resort", "mean", "fixed"}, default "resort"
        Which of the true rankings of equal labels is meant: the one of the highest score, their
        mean, or the one in the order of the data.
    k : int, optional
        Replace the labels by the top-k labels k, k-1, .., 1, 0, .., 0 of the truth.
    within : bool, default False
        Take only the documents of the top k (the listwise loss of FocusedSVM).

    Attributes
    ----------
    parsed_delta : Delta
        The parsed `delta`.  A measure file is read once, when the loss is created.

    Raises
    ------
    DataError
        If a parameter has none of its values, if `within` is set without `k`, or if a measure file
        cannot be used; on use, if documents have weights other than 1.

    References
    ----------
    Tsochantaridis, Joachims, Hofmann and Altun (2005), Large margin methods for structured and
    interdependent output variables.  Cheng, Sun and Xie (2014), TopRank: a novel top-k
    ranking method based on rank aggregation.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [1, 0, 0], [1, 1, 1])
    >>> loss = fp.extend.loss("StructuralHinge", delta="NDCG@1")
    >>> values, _ = loss.value_grad(np.zeros(3), data.truth)
    >>> float(values[0])
    1.0
    """

    delta: str = "NDCG"
    scaling: Rescaling = "margin"
    reference: Reference = "resort"
    k: int | None = None
    within: bool = False
    parsed_delta: Delta = field(init=False, repr=False)  # the file may change later
    traits: ClassVar[Traits] = Traits(smooth=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parsed_delta", parse_delta(self.delta))
        for name, choices in (
            ("scaling", ("margin", "slack")),
            ("reference", ("resort", "mean", "fixed")),
        ):
            if getattr(self, name) not in choices:
                text = " or ".join(map(repr, choices))
                raise DataError(f"{name} must be {text}; got {getattr(self, name)!r}.")
        if self.within and self.k is None:
            raise DataError("a loss within the top k needs k.")

    def target(self, truth: Truth, weights: Floats | None = None) -> StructuralTarget:
        _refuse_weights(weights, "a structural hinge")
        labels = truth.labels if self.k is None else certain_top_k_labels(truth, self.k)
        labels = self.parsed_delta.collapse_labels(labels, truth.offsets)
        if self.parsed_delta.note:
            warn(self.parsed_delta.note)
        levels = label_levels(Truth(labels, truth.offsets, truth.queries))
        rows = np.repeat(truth.offsets[:-1], truth.lengths) + levels.order
        inside = labels[rows] > 0 if self.within else np.ones(len(rows), bool)
        return StructuralTarget(self, levels, labels[rows][inside], levels.order[inside], inside)


class StructuralTarget(LossTarget):
    """A truth as a structural hinge reads it: gains, discounts, and the true ranking.

    The search of slack rescaling may miss the most violated ranking; that of margin rescaling is
    exact.
    """

    def __init__(
        self,
        loss: StructuralHinge,
        levels: LabelLevels,
        labels: Floats,
        docs: Array,
        inside: Bools,
    ) -> None:
        self._loss, self._levels, self._docs = loss, levels, docs
        counts = query_sums(inside.astype(np.float64), levels.offsets).astype(np.int64)
        self._starts = offsets_from_lengths(counts)
        self._discounts = loss.parsed_delta.discount_table(max(int(counts.max(initial=0)), 1))
        depth = len(self._discounts)
        rank = np.arange(len(labels)) - np.repeat(self._starts[:-1], counts)
        self._true_discounts: Floats = np.where(
            rank < depth, self._discounts[np.minimum(rank, depth - 1)], 0.0
        )
        gains = loss.parsed_delta.gains_of(labels, self._starts)
        self._gains = self._normalized_gains(gains, counts)
        if loss.reference == "mean":
            self._average_discounts(labels)
        self._frozen = loss.reference != "resort"
        self._upper_bounds = np.zeros(len(counts))

    @property
    def upper_bounds(self) -> Floats | None:
        return self._upper_bounds if self._loss.scaling == "slack" else None

    def _normalized_gains(self, gains: Floats, counts: Ints) -> Floats:
        """Return gains of which the ideal ranking collects 1 in discounted sum."""
        # Documents stand in descending order of their labels.
        ideal = query_sums(self._true_discounts * gains, self._starts)
        normalized: Floats = gains * np.repeat(safe_inverse(ideal), counts)
        return normalized

    def _average_discounts(self, labels: Floats) -> None:
        """Give documents of equal label the mean of their discounts."""
        new = np.ones(len(labels), bool)
        new[1:] = labels[1:] != labels[:-1]
        new[self._starts[:-1][np.diff(self._starts) > 0]] = True
        block = np.cumsum(new) - 1
        sums = np.bincount(block, self._true_discounts)
        self._true_discounts = (sums / np.bincount(block))[block]

    def freeze(self, scores: Floats) -> None:
        """Fix the true ranking to the one of the highest score under these scores."""
        self._bind_resort(0, len(self._starts) - 1, np.ascontiguousarray(scores, np.float64))()
        self._frozen = True

    def thaw(self) -> None:
        """Undo `freeze`."""
        self._frozen = self._loss.reference != "resort"

    def hessian_scale(self) -> Floats:
        return np.ones(len(self._starts) - 1)

    def terms(self) -> list[LossTerm] | None:
        return None

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        n, rows = self._extent(lo, hi)
        z, b, key = np.empty((3, n))
        method = kernel.MARGIN if self._loss.scaling == "margin" else kernel.CHORDS
        items, best_ranking, sort_workspace = np.empty((3, n), np.int64)
        words, word_workspace = np.empty((2, n), np.uint64)
        tree_values, tree = np.empty((5, n + 1)), np.empty((4, n + 1), np.int64)
        result, best, a = np.empty(2), np.empty(4), self._discounts
        bits, bounds = key.view(np.uint64), self._upper_bounds[lo:hi]
        hinge = kernel.structural_hinge.bind(
            scores, self._docs[rows], self._starts[lo : hi + 1], self._levels.offsets[lo : hi + 1],
            self._gains[rows], self._true_discounts[rows], a, method, z, b, key, bits, items,
            best_ranking, words, word_workspace, sort_workspace, result, best, tree_values, tree,
            values, bounds, grad,
        )  # fmt: skip
        resort = self._bind_resort(lo, hi, scores)

        def run() -> None:
            if not self._frozen:
                resort()
            hinge()

        return run

    def _extent(self, lo: int, hi: int) -> tuple[int, slice]:
        """Return the length of the longest list of the queries lo:hi, and their rows."""
        longest = int(np.diff(self._starts[lo : hi + 1]).max(initial=0))
        return longest, slice(int(self._starts[lo]), int(self._starts[hi]))

    def _bind_resort(self, lo: int, hi: int, scores: Floats) -> BoundKernel:
        n, rows = self._extent(lo, hi)
        z, a, levels = np.empty(n), self._discounts, self._levels
        items, workspace = np.empty((2, n), np.int64)
        words, word_workspace = np.empty((2, n), np.uint64)
        bits = z.view(np.uint64)
        return kernel.best_reference.bind(
            scores, self._docs[rows], self._starts[lo : hi + 1], levels.offsets[lo : hi + 1],
            levels.firsts[lo : hi + 1], levels.end, a, z, bits, items, words, word_workspace,
            workspace, self._true_discounts[rows],
        )  # fmt: skip

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        return zero_curvature(out)
