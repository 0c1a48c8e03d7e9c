"""The focused loss: order inside the top, and the top above the rest, in one loss (FocusedRank)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from firstpage.core import Bools, BoundKernel, DataError, Floats, check_number
from firstpage.data import Truth, offsets_from_lengths
from firstpage.learning.losses.base import Loss, LossTarget, LossTerm, Traits, safe_inverse
from firstpage.learning.losses.levels import LabelLevels, label_levels, top_k_labels
from firstpage.learning.losses.listwise import TopOneTarget
from firstpage.learning.losses.pairwise import PairwiseHinge, PairwiseLogistic
from firstpage.learning.losses.permutation import MAX_LENGTH, PermutationTarget
from firstpage.learning.losses.structural import AveragePrecisionHinge, StructuralHinge


@dataclass(frozen=True)
class Focused(Loss):
    """A listwise loss inside the top k and a pairwise loss between the top k and the rest.

    beta * listwise(top k, in order) + (1 - beta) * pairwise(top k above the rest).  Each of the two
    losses should be scaled to be 1 where all scores are equal and 0 at its infimum, so that `beta`
    means the same for any k.  ``fp.extend.loss("Focused(k, beta)")`` creates that of FocusedNet.

    Parameters
    ----------
    listwise : Loss
        The loss of the order inside the top k.
    pairwise : Loss
        The loss of the pairs of a document inside the top k and one outside.
    beta : float, default 0.5
        The weight of the listwise loss, from 0 to 1.

    Raises
    ------
    DataError
        If `beta` is not a number from 0 to 1.

    References
    ----------
    Niu, Guo, Lan and Cheng (2012), Top-k learning to rank: labeling, ranking and evaluation.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(4), [2, 1, 0, 0], [1, 1, 1, 1])
    >>> values, _ = fp.extend.loss("Focused(k=2, beta=0.5)").value_grad(np.zeros(4), data.truth)
    >>> float(values[0].round(3))
    1.0
    """

    listwise: Loss
    pairwise: Loss
    beta: float = 0.5

    def __post_init__(self) -> None:
        check_number(self, "beta", 0)
        if self.beta > 1:
            raise DataError(f"beta must be from 0 to 1; got {self.beta}.")

    @property
    def traits(self) -> Traits:
        return self.listwise.traits & self.pairwise.traits

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        losses = [(self.beta, self.listwise), (1 - self.beta, self.pairwise)]
        return _WeightedSum([(b, loss.target(truth, weights)) for b, loss in losses if b > 0])


@dataclass(frozen=True, eq=False)
class _WeightedSum(LossTarget):
    """A weighted sum of targets."""

    weighted_targets: list[tuple[float, LossTarget]]

    def hessian_scale(self) -> Floats:
        scales = [weight * target.hessian_scale() for weight, target in self.weighted_targets]
        total: Floats = np.sum(scales, axis=0)
        return total

    def terms(self) -> list[LossTerm] | None:
        """Return the terms of all targets; None if one of them has none."""
        weighted = [(weight, target.terms()) for weight, target in self.weighted_targets]
        if any(terms is None for _, terms in weighted):
            return None
        return [term.times(weight) for weight, terms in weighted for term in terms or ()]

    def skip_draws(self, evaluations: int) -> None:
        for _, target in self.weighted_targets:
            target.skip_draws(evaluations)

    def set_evaluation(self, number: int) -> None:
        for _, target in self.weighted_targets:
            target.set_evaluation(number)

    def number_queries(self, first: int) -> None:
        for _, target in self.weighted_targets:
            target.number_queries(first)

    def check_derivatives(self, curvature: bool = False) -> None:
        for _, target in self.weighted_targets:
            target.check_derivatives(curvature)

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        buffers = [(np.empty_like(values), np.empty_like(grad)) for _ in self.weighted_targets]
        kernels = [
            (weight, target.bind_slice(lo, hi, scores, v, g), v, g)
            for (weight, target), (v, g) in zip(self.weighted_targets, buffers, strict=True)
        ]

        def run() -> None:
            values[:] = 0.0
            grad[:] = 0.0
            for weight, kernel, v, g in kernels:
                kernel()
                np.add(values, weight * v, out=values)
                np.add(grad, weight * g, out=grad)

        return run

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        kernels = []
        for weight, target in self.weighted_targets:
            buffer = np.empty_like(out)
            kernels.append((weight, target.bind_curvature(lo, hi, scores, buffer), buffer))

        def run() -> None:
            out[:] = 0.0
            for weight, kernel, buffer in kernels:
                kernel()
                np.add(out, weight * buffer, out=out)

        return run


@dataclass(frozen=True)
class TopList(Loss):
    """The order inside the top k: cross entropy of its permutations, scaled to 1 at equal scores.

    Permutations are used in queries whose top the truth orders strictly, if k is at most 12.  In
    the others the top-one form is used, where documents that are in the top k with some probability
    count with that probability.

    Parameters
    ----------
    k : int, default 10
        The depth of the top.

    References
    ----------
    Niu, Guo, Lan and Cheng (2012), Top-k learning to rank: labeling, ranking and evaluation.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> from firstpage.learning.losses.focused import TopList
    >>> data = fp.Dataset.from_arrays(np.eye(3), [2, 1, 0], [1, 1, 1])
    >>> values, _ = TopList(k=2).value_grad(np.zeros(3), data.truth)
    >>> float(values[0].round(3))
    1.0
    """

    k: int = 10

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        levels = label_levels(truth, weights, self.k)
        strict = self._strictly_ordered(levels, weights)
        targets: list[tuple[float, LossTarget]] = []
        if strict.any():
            targets.append((1.0, _normalized(self._permutations(truth, levels, strict))))
        if not strict.all():
            probability = levels.per_document(levels.top_probability)
            psi = top_k_labels(truth, weights, self.k)
            weight = probability if weights is None else probability * weights
            top_one = TopOneTarget(psi, weight, truth.offsets, np.ones(len(truth)))
            targets.append((1.0, _normalized(top_one, ~strict)))
        return _WeightedSum(targets)

    def _strictly_ordered(self, levels: LabelLevels, weights: Floats | None) -> Bools:
        """Return which queries have a strictly ordered top that permutations can handle."""
        if self.k > MAX_LENGTH or (weights is not None and not np.all(weights == 1.0)):
            return np.zeros(len(levels.offsets) - 1, bool)
        tied = (levels.total > 1.0) & (levels.top_probability > 0.0)
        strict: Bools = levels.per_query(tied.astype(np.float64)) == 0
        return strict

    def _permutations(self, truth: Truth, levels: LabelLevels, strict: Bools) -> PermutationTarget:
        sizes = np.where(strict, np.minimum(truth.lengths, self.k), 0)
        firsts = offsets_from_lengths(sizes)
        rank = np.arange(len(levels.order)) - np.repeat(truth.offsets[:-1], truth.lengths)
        top = rank < np.repeat(sizes, truth.lengths)
        psi = (self.k - rank[top]).astype(np.float64)
        return PermutationTarget(psi, levels.order[top], firsts, truth.offsets, np.ones(len(truth)))


class _CrossEntropyTarget(LossTarget, Protocol):
    factor: Floats

    def entropy(self) -> Floats: ...

    def at_zero(self) -> Floats: ...


def _normalized(target: _CrossEntropyTarget, included: Bools | None = None) -> LossTarget:
    """Scale a target to 1 where all scores are equal and to 0 at the entropy.

    Queries that are not included have the value 0.
    """
    minimum = target.entropy()
    span = target.at_zero() - minimum
    if included is not None:
        span[~included] = 0.0
    span[span < 1e-9] = 0.0  # a target without an order, up to rounding
    target.factor = safe_inverse(span)
    return _Shifted(target, target.factor * minimum)


@dataclass(frozen=True, eq=False)
class _Shifted(LossTarget):
    """A target from whose values a constant per query is subtracted."""

    target: LossTarget
    offset: Floats

    def hessian_scale(self) -> Floats:
        return self.target.hessian_scale()

    def terms(self) -> list[LossTerm] | None:
        terms = self.target.terms()
        if terms is None or len(terms) != 1:
            return None
        return [replace(terms[0], offset=self.offset)]

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats
    ) -> BoundKernel:
        kernel = self.target.bind_slice(lo, hi, scores, values, grad)
        offset = self.offset[lo:hi]

        def run() -> None:
            kernel()
            np.subtract(values, offset, out=values)

        return run

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> BoundKernel:
        return self.target.bind_curvature(lo, hi, scores, out)


@dataclass(frozen=True)
class Scaled(Loss):
    """A loss multiplied by a number.

    Parameters
    ----------
    loss : Loss
        The loss.
    factor : float
        The number.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> from firstpage.learning.losses.focused import Scaled
    >>> data = fp.Dataset.from_arrays(np.eye(2), [1, 0], [1, 1])
    >>> values, _ = Scaled(fp.extend.loss("PairwiseHinge"), 0.5).value_grad(np.zeros(2), data.truth)
    >>> float(values[0])
    0.5
    """

    loss: Loss
    factor: float

    @property
    def traits(self) -> Traits:
        return self.loss.traits

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        return _WeightedSum([(self.factor, self.loss.target(truth, weights))])


def focused_svm(k: int, beta: float, list_loss: str = "ap", label_margin: bool = False) -> Focused:
    """Return the loss of FocusedSVM: hinges of the order inside the top k, and of its pairs with
    the rest.

    As printed in the paper, the order inside the top would be measured by average precision with
    all of its documents relevant, which is 1 for every order.  So it is measured at every cut of
    the top ("ap"), or by NDCG ("ndcg").
    """
    listwise: Loss
    if list_loss == "ap":
        listwise = AveragePrecisionHinge(k, cuts=True)
    elif list_loss == "ndcg":
        listwise = StructuralHinge(k=k, within=True, reference="mean")
    else:
        raise DataError(f"list_loss must be 'ap' or 'ndcg'; got {list_loss!r}.")
    pairwise = PairwiseHinge(k=k, pairs="cross", average=True, label_margin=label_margin)
    return Focused(listwise, pairwise, beta)


def focused_net(
    k: int = 10, beta: float = 0.5, listwise: Loss | None = None, pairwise: Loss | None = None
) -> Focused:
    """Return the loss of FocusedNet: permutations of the top k, and logistic pairs of the top k
    with the rest; `listwise` and `pairwise` replace these."""
    pairs = PairwiseLogistic(k=k, pairs="cross", average=True)
    return Focused(listwise or TopList(k), pairwise or Scaled(pairs, 1 / float(np.log(2))), beta)
